"""The findings on a run: errors of means and sds, and what speaks against the draws."""

import numpy as np
import pytest

from ewsg.planning import findings
from ewsg.result.cost import RunCost
from ewsg.result.run import Run

CHAINS, DRAWS, DIMENSION = 32, 400, 5


def made(seed=0, draws=DRAWS, **changes):
    """A run of independent draws of N(0, I) and of their diagnostics, some of them changed."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(CHAINS, draws, DIMENSION))
    stats = {
        "virial": z**2,
        "virial_slope": z * (DIMENSION + 1 - (z**2).sum(2, keepdims=True)),
        "refused": np.zeros((CHAINS, draws)),
        "noise_ratio": np.full((CHAINS, draws), 0.1),
        "tilt_second": np.full((CHAINS, draws), 0.01),
        "tilt_lean": np.full((CHAINS, draws), 0.01),
        "tilt_squared_share": np.full((CHAINS, draws), 1e-5),
    }
    settings = {"num_steps": 10 * draws, "discard": 0, "temperature": 1.0}
    stats |= {name: change(stats[name]) for name, change in changes.items()}
    return Run(z, stats, np.array(["ok"] * CHAINS), RunCost(), settings)


def test_errors_are_those_of_independent_draws():
    found = findings.judge(made(), 0.05, "weight")
    exact = 1 / np.sqrt(CHAINS * DRAWS)
    np.testing.assert_allclose(found.mean_error, exact, rtol=0.5)
    np.testing.assert_allclose(found.sd_error, exact / np.sqrt(2), rtol=0.5)
    assert found.error == max(found.mean_error.max(), found.sd_error.max())
    assert found.objections == ()


def test_errors_of_chains_that_stay_apart_are_large():
    run = made()
    run.draws[:] += 0.5 * np.random.default_rng(1).normal(size=(CHAINS, 1, DIMENSION))
    found = findings.judge(run, 0.05, None)
    np.testing.assert_allclose(found.mean_error, 0.5 / np.sqrt(1.25) / np.sqrt(CHAINS), rtol=0.5)


def hot(values):
    values = values.copy()
    values[..., 2] *= 1.2
    return values


@pytest.mark.parametrize(
    ("changes", "objections"),
    [
        ({"virial": hot}, ("virial",)),
        ({"virial": lambda values: values * 1.12}, ("virial",)),
        ({"virial": lambda values: values * 1.02}, ()),
        ({"virial_slope": lambda values: values + 1.0}, ("slope",)),
        ({"refused": lambda values: values + 2e-4}, ("refused",)),
        ({"refused": lambda values: values + 5e-5}, ()),
        ({"tilt_squared_share": lambda values: values * 6000}, ("tilts",)),
    ],
)
def test_objections(changes, objections):
    assert findings.judge(made(**changes), 0.05, "weight").objections == objections


def test_a_coarse_accuracy_allows_more():
    assert findings.judge(made(virial=hot), 0.3, "weight").objections == ()


def test_a_long_run_is_not_judged_by_biases_far_below_the_accuracy():
    """A slope that is certain, and harmless: the score grows with the length, the limit too."""

    def slight(values):
        return values + 0.08

    short, long = (made(draws=draws, virial_slope=slight) for draws in (30, 3000))
    assert findings.judge(long, 0.05, "weight").slope > 3.5
    assert findings.judge(long, 0.05, "weight").objections == ()
    assert findings.judge(short, 0.05, "weight").objections == ()


def test_a_short_run_is_judged_by_what_is_far_off_only():
    assert findings.judge(made(draws=20, virial=hot), 0.05, "weight").objections == ()
    assert findings.judge(made(draws=20, virial=lambda values: values * 2), 0.05, "weight").objections == ("virial",)


def test_false_alarms_are_rare():
    alarms = sum(bool(findings.judge(made(seed, draws=100), 0.05, "weight").objections) for seed in range(100))
    assert alarms <= 8
