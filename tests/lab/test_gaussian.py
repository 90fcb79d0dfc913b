"""Experiments on the Gaussian: known values."""

import pytest
from laboratory import work

import ewsg
from ewsg.lab.experiments.gaussian import shared, time_averages


def test_kl_after_thirty_passes(tmp_path):
    """The value of an independent implementation for these centres (tests/statistical/test_gaussian.py)."""
    here = work(tmp_path / "x", chains=4000, data_passes=30)
    row = shared.kl_curve(here, "EWSG", ewsg.recipes.ewsg(1, 0.05, 10.0), 42)
    assert row["value"]["kl"][-1] == pytest.approx(0.93, rel=0.1)
    assert row["value"]["passes"] == list(range(1, 31))
    assert row["cost"]["data_passes"] == 30
    assert here.cost["datum_gradients"] == 4000 * 1500


def test_settling_ignores_noise():
    assert shared.settled([1, 2, 3, 4], [9.0, 1.4, 1.1, 1.0], 0.0) == 2
    assert shared.settled([1, 2, 3, 4], [0.9, 0.012, 0.004, 0.001], 0.01) == 2
    assert shared.settled([1, 2], [1.0, 1.0], 0.0) == 1


def test_time_averages_of_the_full_gradient_are_exact(tmp_path):
    h, steps, thin = 0.01, 200, 4
    run = ewsg.sample(
        time_averages.target(),
        ewsg.recipes.full_gradient(h, shared.FRICTION),
        init=time_averages.start,
        num_chains=4000,
        num_steps=steps + 200,
        discard=200,
        thin=thin,
    )
    found, exact = (
        time_averages.Spread(**time_averages.spread(time_averages.phi(run))),
        time_averages.full_gradient(h, steps, thin),
    )
    assert found.bias == pytest.approx(exact.bias, abs=4 * found.bias_error)
    assert found.variance == pytest.approx(exact.variance, abs=4 * found.variance_error)
    assert found.mse == pytest.approx(found.bias**2 + found.variance)


def test_exact_bias_of_sghmc():
    """To first order in h: (h/2γ)·n²·var(c)/n over the full gradient's own."""
    h = 1e-6
    noise = time_averages.data().astype(float).var(0).mean() * shared.NUM_DATA**2
    expected = (
        time_averages.EXACT * h * noise / (2 * shared.FRICTION)
        + time_averages.stationary(h)[1][0, 0]
        - time_averages.EXACT
    )
    assert time_averages.uniform_bias(h) == pytest.approx(expected, rel=1e-3)
