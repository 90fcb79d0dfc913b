"""Theorem 3: errors of time averages, and the three terms of their bound."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from theorems import NUM_DRAWS, as_if_collected, chains, square

from ewsg import theory
from ewsg.errors import InputError


def autoregression(num_chains: int, num_draws: int, coefficient: float, mean: float) -> np.ndarray:
    """Stationary chains of variance one."""
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((num_draws, num_chains))
    values = np.empty((num_draws, num_chains))
    values[0] = noise[0]
    for k in range(1, num_draws):
        values[k] = coefficient * values[k - 1] + math.sqrt(1 - coefficient**2) * noise[k]
    return mean + values.T


def test_running_errors_of_an_autoregression():
    coefficient, shift, step = 0.9, 0.2, 0.05
    values = autoregression(4_000, 1_000, coefficient, mean=1.0 + shift)
    errors = theory.running_errors(values, exact=1.0, time_step=step)
    counts = errors.time / step
    assert counts[0] == 1
    assert counts[-1] == pytest.approx(1_000)
    c = coefficient
    variance = ((1 + c) / (1 - c) - 2 * c * (1 - c**counts) / (counts * (1 - c) ** 2)) / counts
    assert np.all(np.abs(errors.mse - variance - shift**2) < 4 * errors.standard_error)
    assert np.all(np.abs(errors.bias - shift) < 4 * errors.bias_error)
    np.testing.assert_allclose(errors.bias_error, np.sqrt(variance / 4_000), rtol=0.1)
    np.testing.assert_allclose(errors.squared_bias[-1], shift**2, atol=8 * shift * errors.bias_error[-1])
    np.testing.assert_allclose(np.diag(errors.covariance), errors.standard_error**2)
    assert errors.covariance[-2, -1] > 0.8 * errors.covariance[-1, -1]


def test_running_errors_fall_as_one_over_time():
    values = autoregression(2_000, 2_000, 0.5, mean=0.0)
    errors = theory.running_errors(values, exact=0.0)
    late = errors.time > 30
    slope = theory.fit_slope(errors.time[late], errors.mse[late], errors.covariance[np.ix_(late, late)])
    assert slope.low < -1 < slope.high
    assert slope.high - slope.low < 0.15


def test_running_errors_need_chains():
    with pytest.raises(InputError, match="two chains or more"):
        theory.running_errors(np.zeros((1, 5)), 0.0)


def test_squared_errors_of_a_run_are_those_of_its_values():
    errors = theory.squared_errors(chains(), square, exact=1.0)
    expected = theory.running_errors(chains().draws.astype(float) ** 2, 1.0, time_step=0.2)
    np.testing.assert_allclose(errors.mse, expected.mse, rtol=1e-4)
    assert errors.time[-1] == pytest.approx(NUM_DRAWS * 4 * 0.05)
    collected = theory.squared_errors(as_if_collected(chains()), None, exact=1.0)
    np.testing.assert_allclose(collected.mse, errors.mse, rtol=1e-5)


def test_squared_errors_count_time_in_sum_units():
    errors = theory.squared_errors(chains(units="mean"), square, exact=0.0)
    assert errors.time[-1] == pytest.approx(NUM_DRAWS * 4 * 0.05 / math.sqrt(12))


def test_squared_errors_refuse_failed_chains_schedules_and_vectors():
    with pytest.raises(InputError, match="10000 of 10000 chains failed"):
        theory.squared_errors(chains(step_size=5.0), square, 0.0)
    scheduled = chains().settings | {"integrator_in_sum_units": {"step_size": {"component": "Polynomial"}}}
    with pytest.raises(InputError, match="constant step size"):
        theory.squared_errors(dataclasses.replace(chains(), settings=scheduled), square, 0.0)
    with pytest.raises(InputError, match="one scalar for each draw"):
        theory.squared_errors(chains(), lambda theta: (theta, theta), 0.0)
    with pytest.raises(InputError, match=r"shape \(chain, draw\)"):
        theory.squared_errors(chains(), lambda theta: jnp.stack([theta, theta]), 0.0)


def planted(constants, noise: float):
    time, step_size = (a.ravel() for a in np.meshgrid(np.geomspace(1, 1e3, 8), [0.01, 0.03, 0.1, 0.3]))
    trace = np.full_like(time, 40.0)
    c1, c2, c3 = constants
    terms = np.stack([c1 / time, c2 * step_size * trace / time, c3 * step_size**2])
    mse = terms.sum(axis=0)
    error = noise * mse
    observed = mse + error * np.random.default_rng(9).standard_normal(len(mse))
    return (time, step_size, trace, observed, error), terms


def test_three_terms_are_recovered_from_planted_constants():
    constants = (2.0, 0.5, 0.03)
    observations, terms = planted(constants, noise=0.02)
    fit = theory.mse_terms(*observations)
    np.testing.assert_allclose(fit.constants, constants, rtol=0.05)
    assert all(low < c < high for low, c, high in zip(fit.low, constants, fit.high, strict=True))
    assert all(high - low < 0.3 * c for low, c, high in zip(fit.low, constants, fit.high, strict=True))
    np.testing.assert_allclose([fit.dynamics, fit.subsampling, fit.bias], terms, rtol=0.05)
    assert 0.4 < fit.misfit < 1.8
    time, step_size, trace, mse, error = observations
    bent = mse * np.where(step_size == 0.03, 1.3, 1.0)
    assert theory.mse_terms(time, step_size, trace, bent, error).misfit > 5


def test_a_missing_term_is_fitted_as_zero_and_full_gradients_leave_c2_open():
    observations, _ = planted((2.0, 0.0, 0.03), noise=0.02)
    fit = theory.mse_terms(*observations)
    assert fit.constants.subsampling < 0.01
    assert fit.low.subsampling == 0
    time, step_size, _, mse, error = observations
    without = theory.mse_terms(time, step_size, 0.0, mse, np.diag(error**2))
    assert math.isnan(without.constants.subsampling)
    assert without.constants.dynamics == pytest.approx(2.0, rel=0.05)


def test_terms_that_the_design_cannot_tell_apart_are_refused():
    (time, _, trace, mse, error), _ = planted((2.0, 0.5, 0.03), noise=0.02)
    with pytest.raises(InputError, match="vary both T and h"):
        theory.mse_terms(time, 0.1, trace, mse, error)
