"""What is shipped, what is declared, and what the worlds of CI are pinned to."""

import ast
import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ewsg.cli import worlds as _worlds

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
FILES = {"default": "constraints.txt", "oldest": "constraints-oldest.txt", "newest": "constraints-newest.txt"}
SITE = "constraints-docs.txt"


def requirements(extra: str = "") -> dict[str, Requirement]:
    """What the core or an extra needs, with the extras that an extra includes."""
    found = {}
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]):
        if requirement.name == "ewsg":
            for part in requirement.extras:
                found |= requirements(part)
        else:
            found[canonicalize_name(requirement.name)] = requirement
    return found


def pins(world: str) -> dict[str, str]:
    lines = (ROOT / FILES.get(world, SITE)).read_text(encoding="utf-8").splitlines()
    matches = [re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)", line) for line in lines if line[:1] != "#"]
    assert all(matches), "a constraints file has names and versions, no addresses"
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def script(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("world", FILES)
def test_every_direct_dependency_is_pinned_as_pyproject_allows(world):
    pinned = pins(world)
    for name, requirement in (requirements() | requirements("dev")).items():
        assert requirement.specifier.contains(pinned[name]), f"{world}: {name} {pinned[name]}"
    assert pinned["jax"] == pinned["jaxlib"]
    assert pinned["jax"] not in _worlds.EXCLUDED["jax"]


def test_the_oldest_world_is_at_the_lower_bounds():
    pinned = pins("oldest")
    for name, requirement in (requirements() | requirements("all")).items():
        (bound,) = [one.version for one in requirement.specifier if one.operator == ">="]
        assert Requirement(f"{name}=={bound}").specifier.contains(pinned[name])


def test_the_site_is_built_with_the_versions_that_are_tested():
    site, tested = pins("docs"), pins("default")
    for name, requirement in (requirements() | requirements("docs")).items():
        assert requirement.specifier.contains(site[name]), f"{name} {site[name]}"
    assert {name: site[name] for name in site.keys() & tested.keys()} == {
        name: tested[name] for name in site.keys() & tested.keys()
    }
    assert not (requirements("docs").keys() - requirements("all").keys()) & requirements("dev").keys()


@pytest.mark.parametrize("world", FILES)
def test_doctor_knows_the_versions_of_the_constraints(world):
    header = (ROOT / FILES[world]).read_text(encoding="utf-8").splitlines()[0]
    python = re.search(r"Python (\d+\.\d+)", header)
    assert python is not None
    assert python[1] == _worlds.WORLDS[world]["python"]
    assert _worlds.name(pins(world)) == world


def test_the_releases_that_pyproject_excludes_are_those_that_doctor_refuses():
    for name, versions in _worlds.EXCLUDED.items():
        refused = {one.version for one in requirements()[name].specifier if one.operator == "!="}
        assert refused == set(versions)


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """Who provides which package: all installed metadata are read."""
    return importlib.metadata.packages_distributions()


def provided_by(module: str) -> set[str]:
    package = module.split(".")[0]
    return set(map(canonicalize_name, distributions().get(package, [package])))


def test_everything_imported_is_declared():
    """The core imports what it depends on; everything else goes through `require`, which names an extra that has it."""
    imported, required = set(), set()
    for path in (ROOT / "ewsg").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names):
                    imported |= {(path.parent.name, alias.name.split(".")[0]) for alias in names}
                case ast.ImportFrom(module=str(module), level=0):
                    imported.add((path.parent.name, module.split(".")[0]))
                case ast.Call(ast.Name("require"), [ast.Constant(module)], [ast.keyword("extra", ast.Constant(extra))]):
                    required.add((module, extra))
    known = {*sys.stdlib_module_names, "ewsg"}
    undeclared = {
        (room, name) for room, name in imported if name not in known and not provided_by(name) & {*requirements()}
    }
    checked = {
        ("cli", "typer"),
        ("cli", "platformdirs"),
        ("modules", "flax"),
        ("sklearn", "sklearn"),
    }  # by the rooms' doors
    assert undeclared == checked
    assert len({extra for _, extra in required}) >= 5
    assert [one for one in required if not provided_by(one[0]) & {*requirements(one[1])}] == []


def test_the_core_is_what_sampling_needs_and_all_is_everything():
    assert len(requirements()) == 8
    for extra in PROJECT["optional-dependencies"].keys() - {"test", "dev", "docs", "torch"}:  # PyTorch is gigabytes
        assert requirements(extra).keys() <= requirements("all").keys()
        assert not requirements(extra).keys() & requirements().keys()
    assert not requirements("torch").keys() & requirements("dev").keys()
    assert requirements("all").keys() < requirements("test").keys() < requirements("dev").keys()


def test_what_the_wheel_must_hold_is_inside_the_package():
    """Hatch puts the whole folder into the wheel, but for what .gitignore names."""
    assert (ROOT / "ewsg" / "py.typed").is_file()
    assert "wheel" not in PYPROJECT["tool"]["hatch"]["build"]["targets"]
    answers = {path.stem for path in (ROOT / "ewsg" / "problems" / "answers_npz").glob("*.npz")}
    assert {"pima", "parkinsons", "poisson", "hierarchical", "network", "softmax", "skewed"} <= answers


def test_the_source_archive_holds_what_its_tests_read():
    include = PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for pattern in include:
        assert list(ROOT.glob(pattern.removeprefix("/"))), f"nothing matches {pattern}"
    wanted = {"ewsg", "tests", "docs", "tools", "benchmarks", ".ci", "Makefile", "CONTRIBUTING.md", "constraints*.txt"}
    assert wanted <= {pattern.removeprefix("/") for pattern in include}
    assert PROJECT["readme"] == "README.md"  # which hatch includes by itself, as it does the licence


def test_ci_checks_annotations_as_the_tests_run():
    """Seen before: beartype was installed, and nothing used it."""
    assert "beartype" in requirements("dev")
    assert "--jaxtyping-packages 'ewsg,beartype." in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^\s*stage make test-types", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)


def test_an_interpreter_that_does_not_run_is_passed_over(tmp_path, monkeypatch):
    worlds = script("tools/worlds.py")
    promise = tmp_path / "python3.13"
    promise.write_text("#!/bin/sh\nexit 127\n")
    promise.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert worlds.interpreter("newest") is None
    real = tmp_path / "versions" / "3.13.0" / "bin" / "python3.13"
    real.parent.mkdir(parents=True)
    real.symlink_to(sys.executable)
    assert worlds.interpreter("newest") == str(real)


def test_lower_bounds_are_read_from_pyproject():
    bounds = script("tools/worlds.py").lower_bounds()
    assert "jax==0.8" in bounds
    assert "pyright==1.1.400" in bounds
    wanted = requirements() | requirements("dev") | requirements("docs")
    assert {canonicalize_name(bound.partition("==")[0]) for bound in bounds} == wanted.keys()


def test_benchmarks_run_where_the_system_has_no_affinity(monkeypatch):
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    machine = script("benchmarks/machine.py")
    assert machine.cores() == [0, 1, 2]
    machine.stay_on([0])
    assert not machine.peak_bytes() < 2**20  # it may be no number
