"""`ewsg bench factors`: planned coordinates are the same posterior, settings are tuned, and factors are ratios."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from ewsg import problems
from ewsg.errors import InputError
from ewsg.lab.accuracy import factors, factors_report
from ewsg.lab.accuracy.methods import METHODS


@pytest.fixture(scope="module")
def skewed():
    problem = problems.load("skewed")
    return problem, problems.answer("skewed", problem)


def test_planned_coordinates_are_the_same_posterior_and_start(skewed):
    problem, answer = skewed
    center, root = np.array([0.3, -0.2]), np.array([[0.5, 0.0], [0.2, 2.0]])
    view = factors.in_coordinates(problem, answer, center, root)
    z = jnp.asarray([0.4, -0.7], jnp.float32)
    there = jnp.asarray(center + root @ np.asarray(z), jnp.float32)
    np.testing.assert_allclose(view.problem.observe(z), there, rtol=1e-5)
    np.testing.assert_allclose(view.problem.observe(jnp.asarray(view.answer.start)), answer.start, rtol=1e-4, atol=1e-5)
    indices = jnp.arange(5)
    pulled = root.T @ np.asarray(problem.target.force(there, indices))
    np.testing.assert_allclose(view.problem.target.force(z, indices), pulled, rtol=1e-3)


@pytest.mark.parametrize("name", factors.IN_PLANNED)
def test_methods_of_planned_coordinates_take_the_same_data_per_step(skewed, name):
    problem, answer = skewed
    built = factors.IN_PLANNED[name](problem, np.asarray(answer.start), 0.1)
    gradients = int(built.estimator.cost(problem.target.num_data).datum_gradients)
    assert gradients == (96 if name == "second order + sequential" else problem.data_per_step)  # 4 × 2 × 12 pairs


@pytest.mark.slow
def test_the_best_setting_is_taken_and_nothing_is_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(factors, "_OWN_FACTORS", ((1.0,), (1.0,)))
    monkeypatch.setattr(factors, "_PLANNED_SETTINGS", ((0.03, 0.9), (1.0,)))
    chosen = ["SGHMC, BAOAB", "leverage"]
    results = factors.compare_factors(tmp_path, ["gaussian"], chosen, num_seeds=1, scale="smoke")
    assert [(row["coordinates"], row["method"]) for row in results["rows"]] == [
        ("own", "SGHMC, BAOAB"),
        ("planned", "SGHMC, BAOAB"),
        ("planned", "leverage"),
    ]
    noisy, calm = (row["seeds"][0]["error"][-1] for row in results["rows"][1:])
    assert calm < 0.6 * noisy
    assert [row["step_size"] for row in results["rows"][1:]] == [0.03, 0.9]
    monkeypatch.setattr(factors, "run_with", None)
    assert factors.compare_factors(tmp_path, ["gaussian"], chosen, num_seeds=1, scale="smoke") == results
    assert (tmp_path / "figure-seconds.png").stat().st_size > 10_000


@pytest.mark.untyped
def test_a_method_that_fails_everywhere_is_a_row_without_numbers(skewed, monkeypatch):
    problem, answer = skewed
    view = factors.View(problem, answer, (1.0,), (1.0,))
    monkeypatch.setattr(factors, "_error", lambda *_: None)

    class Folder:
        def part(self, name, settings, compute):
            return compute()

    row = factors._row(Folder(), view, "skewed", "own", "SGHMC", 1, "smoke")
    assert row["seeds"] == []
    assert math.isnan(factors_report.error([row], "skewed", "own", "SGHMC"))


def test_factors_are_errors_without_over_errors_with():
    seed = {"cost": [1.0], "steps": 1, "gradients_per_chain": 1.0, "microseconds_per_step": 1.0}
    rows = [
        {"problem": name, "coordinates": "planned", "method": method, "seeds": [seed | {"error": [9.0, error]}]}
        for method, errors in {"control variate": (0.2, 0.8), "leverage": (0.1, 0.1)}.items()
        for name, error in zip(("a", "b"), errors, strict=True)
    ]
    text = factors_report.tables(rows, Console(width=150, quiet=True))
    assert "| leverage, with a control variate | 2.00 | 8.00 | 4.00 |" in text
    assert "planned coordinates |" not in text  # of the factors: it needs rows that are absent


def test_unknown_names_are_refused_before_anything_runs(tmp_path):
    for options in ({"names": ["pimas"]}, {"methods": ["SGHCM"]}, {"scale": "huge"}):
        with pytest.raises(InputError, match="unknown"):
            factors.compare_factors(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_pairs_in_a_plan_are_compared_with_the_same_data():
    """Every factor names rows that exist."""
    known = METHODS.keys() | factors.IN_PLANNED.keys()
    for _, without, added in factors_report.FACTORS:
        assert {without[1], added[1]} <= known
