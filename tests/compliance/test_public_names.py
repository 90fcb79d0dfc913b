"""The table of public names, `ewsg/__init__.pyi`, says where everything is, and nothing is left out of it."""

import importlib
import subprocess
import sys
from pathlib import Path

import ewsg
from ewsg._core.component import registered
from ewsg.collect import AbstractCollector


def test_every_component_of_the_package_is_public():
    for role in (ewsg.AbstractEstimator, ewsg.AbstractIntegrator, ewsg.AbstractKernel):
        for cls in registered(role):
            assert getattr(ewsg, cls.__name__) is cls
    assert issubclass(ewsg.collect.Moments, AbstractCollector)


def test_names_are_where_the_table_says():
    for name, home in ewsg._HOMES.items():
        if home is None:
            assert getattr(ewsg, name) is importlib.import_module(f"ewsg.{name}")
        else:
            assert getattr(ewsg, name) is getattr(importlib.import_module(f"ewsg.{home}"), name)
    assert dir(ewsg) == ewsg.__all__ == sorted(ewsg._HOMES)


def test_one_line_in_a_room_makes_a_name_public_there_and_in_ewsg():
    for room in (ewsg.estimators, ewsg.integrators, ewsg.kernels):
        lines = Path(room.__file__).with_name("public.py").read_text().splitlines()
        names = [line.split()[-1] for line in lines if line.startswith("from")]
        assert names
        for name in names:
            assert getattr(ewsg, name) is getattr(room, name)


def test_rooms_are_reachable_from_a_fresh_import_that_does_not_wait_for_jax():
    code = "import ewsg, sys; assert 'jax' not in sys.modules; ewsg.estimators.Paired; ewsg.random.split; ewsg.tree.dot"
    subprocess.run([sys.executable, "-c", code], check=True)
