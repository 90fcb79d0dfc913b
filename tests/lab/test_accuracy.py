"""The accuracy benchmark: its error measure, its table, and that it goes on where it stopped."""

import contextlib
import importlib.util
import json
import os
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure

import ewsg
from ewsg import problems
from ewsg.lab.accuracy import benchmark, measures, report
from ewsg.lab.accuracy.methods import EVALUATED_TWICE, METHODS, PLAN
from ewsg.problems import Answer

CHOSEN = ["SGHMC", "paired, sequential", "full gradient"]


def test_the_error_of_exact_draws_is_that_of_monte_carlo():
    """m independent draws: mean off by 1/√m, sd by 1/√(2m), in units of the sd."""
    mean, sd = np.array([3.0, -1.0]), np.array([0.5, 20.0])
    draws = mean + sd * np.random.default_rng(0).normal(size=(4000, 200, 2))
    curve = measures.error_curve(draws, Answer(mean, np.diag(sd**2), mean, {}))
    assert curve[-1][0] == 200
    for length, error in curve[-4:]:
        m = length - length // 2
        assert error == pytest.approx(np.sqrt(1.5 / m), rel=0.04)


def test_a_bias_stays_in_the_error():
    draws = 1.5 * np.random.default_rng(0).normal(size=(200, 5000, 1)) + 0.4
    curve = measures.error_curve(draws, Answer(np.zeros(1), np.eye(1), np.zeros(1), {}))
    assert curve[-1][1] == pytest.approx(np.hypot(0.4, 0.5), rel=0.01)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench")
    results = benchmark.compare(out, ["gaussian"], CHOSEN, num_seeds=1, scale="smoke", grid=(1.0, 2.0))
    return out, results


@pytest.mark.slow
def test_rows_have_equal_cost_and_the_right_order(finished):
    _, results = finished
    rows = {row["method"]: row for row in results["rows"] if row["factor"] == 1.0}
    budget = benchmark.SCALES["smoke"][1] * 4
    assert all(row["gradients_per_chain"] == budget for row in rows.values())
    assert rows["full gradient"]["steps"] == budget // 50
    assert rows["SGHMC"]["sd_ratio_median"] > 1.15
    assert rows["paired, sequential"]["sd_ratio_median"] == pytest.approx(1, abs=0.08)
    assert rows["SGHMC"]["cost"][-1] == budget


@pytest.mark.slow
def test_table_figure_and_numbers_are_written(finished):
    out, results = finished
    assert json.loads((out / "results.json").read_text())["rows"] == results["rows"]
    text = (out / "table.md").read_text()
    assert all(f"| {name} |" in text for name in CHOSEN)
    assert (out / "figure.png").stat().st_size > 10_000
    assert (out / "figure.svg").is_file()


@pytest.mark.slow
def test_what_is_done_is_not_run_again(finished, monkeypatch):
    out, results = finished
    monkeypatch.setattr(benchmark, "sample", None)
    again = benchmark.compare(out, ["gaussian"], CHOSEN, num_seeds=1, scale="smoke", grid=(1.0, 2.0))
    assert again["rows"] == results["rows"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["pimas"]}, "unknown problem 'pimas'; did you mean 'pima'"),
        ({"methods": ["SGHCM"]}, "unknown method 'SGHCM'; did you mean 'SGHMC'"),
        ({"methods": ["SGHCM"]}, "; paired, sequential; "),
        ({"scale": "huge"}, "unknown scale 'huge'"),
    ],
)
def test_unknown_names_are_refused_before_anything_runs(tmp_path, options, message):
    with pytest.raises(ewsg.errors.InputError, match=message):
        benchmark.compare(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.untyped
def test_a_plan_is_paid_first():
    """Half of the draws of a chain: the plan's share, the discarded steps, and half of the others."""
    run = SimpleNamespace(
        settings={"num_steps": 100, "discard": 20}, cost=SimpleNamespace(planning_gradients=400), ok=np.ones(4, bool)
    )
    assert measures._cost(run, 1100.0, 0.0) == pytest.approx(100 + 200)
    assert measures._cost(run, 1100.0, 0.5) == pytest.approx(100 + 600)
    assert measures._cost(run, 1100.0, 1.0) == pytest.approx(1100)


def test_the_table_says_that_a_plan_has_a_step_of_its_own():
    numbers = ("kl", "kl_floor", "sd_ratio_median", "sd_ratio_worst", "mean_max", "ksd", "ess_per_million")
    row = dict.fromkeys(numbers, 1.0) | {"error": [0.5], "cost": [1.0], "microseconds_per_step": 1.0}
    header, rows = report._rows({name: [report.Cell(1.0, [row])] for name in ("SGHMC", PLAN)})
    where = header.index("at step")
    assert [cells[where] for cells in rows] == ["1", "its own"]


def test_a_figure_of_methods_that_it_leaves_out_shows_them(tmp_path, monkeypatch):
    row = {"problem": "gaussian", "method": "SGLRW", "factor": 1.0, "error": [0.5, 0.4], "cost": [1.0, 2.0]}
    results = {"rows": [row], "problems": {"gaussian": {"title": "a title", "num_data": 50}}}
    drawn = []

    @contextlib.contextmanager
    def drawing(*_, **__):
        figure = Figure(layout="constrained")
        yield figure, figure.subplots()
        drawn.extend(len(line.get_xdata()) for line in figure.axes[0].get_lines())

    monkeypatch.setattr(report.figures, "drawing", drawing)
    report.draw(results, tmp_path / "figure")
    assert 2 in drawn


@pytest.mark.slow
def test_a_plan_is_given_no_step_and_stays_within_its_budget(tmp_path):
    results = benchmark.compare(tmp_path / "out", ["gaussian"], [PLAN], num_seeds=1, scale="laptop", first_seed=7)
    (row,) = results["rows"]
    assert row["step_size"] is None
    assert row["seed"] == 7
    assert row["gradients_per_chain"] <= row["budget"]
    assert row["gradients_per_chain"] > 0.98 * row["budget"]
    assert row["error"][-1] < 0.07


def test_a_posterior_without_a_plan_is_a_row_that_says_so(monkeypatch):
    def refuse(*_, **__):
        raise ewsg.errors.NoPlan("no mode")

    monkeypatch.setattr(benchmark, "sample_planned", refuse)
    problem = problems.load("gaussian")
    found = benchmark._run(
        problem, problems.answer("gaussian", problem), None, seed=0, step_size=None, chains=8, budget=10
    )
    assert found == {"refused": "no mode"}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_takes_the_same_data_a_step(name):
    """`select` takes gradients of half of its data."""
    problem = problems.load("gaussian")
    built = METHODS[name](problem, jnp.zeros(2), 0.01)
    if isinstance(built, ewsg.AbstractKernel):
        assert ewsg.compose(problem.target, built).num_steps(400) == 100
        return
    gradients = int(built.estimator.cost(50).datum_gradients)
    special = {"full gradient": 50, "paired, select": 2} | dict.fromkeys(EVALUATED_TWICE, 8)
    assert gradients == special.get(name, 4)


def test_processes_are_pinned_only_where_that_is_possible(monkeypatch):
    path = Path(__file__).parents[2] / "benchmarks" / "machine.py"
    spec = importlib.util.spec_from_file_location("machine", path)
    machine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(machine)
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    assert machine.cores() == list(range(os.cpu_count()))
    machine.stay_on({0})
    users = [script.name for script in path.parent.glob("*.py") if "sched_" in script.read_text()]
    assert users == ["machine.py"]
