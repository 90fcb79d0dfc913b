"""One colour and one marker for each method, in every figure."""

import ast
from pathlib import Path

import pytest

from ewsg.lab import demo
from ewsg.lab.accuracy import methods, report
from ewsg.lab.experiments import mean_convergence, misspecified, vr_logistic
from ewsg.lab.experiments.covertype import experiment as covertype
from ewsg.lab.experiments.gaussian import kl, m, time_averages, vr, x
from ewsg.lab.experiments.networks import index_chain, report as networks
from ewsg.lab.styles import SAME, STYLES, is_known, style

ROOT = Path(__file__).parents[2]
FIGURES = {
    "demo": demo.methods(),
    "accuracy": report.SHOWN,
    "gaussian-kl": kl._BUILD,
    "gaussian-m": [*map(m._label, m.LENGTHS), "paired (ours)"],
    "gaussian-x": [*x.CHOICES, "SGHMC", "paired (ours)"],
    "vr-gaussian": vr._methods(0.1),
    "mse": time_averages.methods(0.1),
    "speed": mean_convergence._methods(0.1),
    "misspecified": misspecified._NAMES,
    "blr-covertype": [*covertype._BUILD, "FlyMC"],
    "bnn": networks.METHODS,
    "bnn-m": ["SGHMC", *(f"EWSG, b = {b}" for b in {b for b, _ in index_chain.PRINTED})],
    "vr-logistic": vr_logistic._methods(0.1),
    "theorems": ["uniform weights", "EWSG's weights", "best unbiased weights"],
}


@pytest.mark.parametrize("figure", FIGURES)
def test_every_method_of_a_figure_has_its_own_look(figure):
    names = list(FIGURES[figure])
    assert [name for name in names if not is_known(name)] == []
    assert len({style(name)[:2] for name in names}) == len(names)


def test_every_method_of_the_benchmark_is_in_the_table():
    assert methods.METHODS.keys() <= STYLES.keys()


def test_no_two_methods_share_colour_and_marker():
    assert len({look[:2] for look in STYLES.values()}) == len(STYLES)
    assert set(SAME.values()) <= STYLES.keys()
    assert not SAME.keys() & STYLES.keys()


def test_methods_that_are_not_ours_look_like_none_of_ours():
    own = [style("my_module:my_method", number) for number in range(6)]
    assert len({look[:2] for look in own}) == 6
    assert not {look[:2] for look in own} & {look[:2] for look in STYLES.values()}


def test_colours_are_named_in_one_file_only():
    """Greys, for what is no method, are written as "0.5"."""
    found = []
    for path in [*(ROOT / "ewsg" / "lab").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_colour = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("#")
            if is_colour and len(node.value) == 7 and path.name != "styles.py":
                found.append((path.name, node.value))
    assert found == []
