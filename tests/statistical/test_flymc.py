"""FlyMC: the joint law of position and indicators."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fireflies import ROWS, TANGENT, assert_mean, indicators, run_by_hand
from skewed import assert_skewed_law, last_draws

import ewsg
from ewsg.kernels import FlyMC, GaussianTaylorBound, LogisticBound

CHAINS = 10_000
GRID = np.linspace(-14.0, 14.0, 6001)


@pytest.fixture(scope="module")
def three():
    """Three data of a logistic regression with one coefficient."""
    return ewsg.models.logistic(np.abs(ROWS), ROWS[:, 0] > 0)


def log_gaps(theta):
    """ℓ_i − log B_i of the three data with the bound tangent at TANGENT, in float64, by the formula."""
    s, xi = ROWS.astype(np.float64) * theta, ROWS * 4.0
    curvature = np.tanh(xi / 2) / (4 * xi)
    bound = -np.log1p(np.exp(-xi)) + (s - xi) / 2 - curvature * (s**2 - xi**2)
    return -np.logaddexp(0, -s) - bound


def joint(temperature):
    """p(θ, z) on the grid × {0, 1}³, by enumeration: {z: weights over the grid}, of total 1."""
    log_likelihoods = -np.logaddexp(0, -ROWS.astype(np.float64) * GRID) / temperature
    gaps = np.maximum(log_gaps(GRID), 0) / temperature
    prior = -(GRID**2) / (2 * 2.5**2) / temperature
    weights = {}
    for z in itertools.product((0, 1), repeat=3):
        bright = np.array(z)[:, None] == 1
        share = np.where(bright, -np.expm1(-gaps), np.exp(-gaps))  # (L − B)/L or B/L
        weights[z] = np.exp(prior + log_likelihoods.sum(0)) * share.prod(0)
    total = sum(w.sum() for w in weights.values())
    return {z: w / total for z, w in weights.items()}


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_indicators_have_their_law_at_a_fixed_position(three, temperature):
    """All eight states of z, given θ, after each of the three has been drawn anew several times, one at a time."""
    sampler = ewsg.compose(three, FlyMC(LogisticBound(TANGENT), 1e-30, resample=1, temperature=temperature))
    start = run_by_hand(sampler, lambda key: jnp.array([-1.2]), CHAINS, 0)
    later = run_by_hand(sampler, lambda key: jnp.array([-1.2]), CHAINS, 9)
    dark = np.exp(-log_gaps(np.array([-1.2]))[:, 0] / temperature)
    assert np.all((dark > 0.03) & (dark < 0.9))
    assert np.mean(np.any(indicators(start) != indicators(later), axis=1)) > 0.3
    for state in (start, later):
        z = indicators(state)
        for pattern in itertools.product((0, 1), repeat=3):
            expected = np.prod(np.where(np.array(pattern) == 1, 1 - dark, dark))
            assert_mean(np.all(z == np.array(pattern), axis=1).astype(float), expected)


@pytest.mark.parametrize(("resample", "temperature"), [(1, 1.0), (1, 0.4), (1.0, 1.0)])
def test_joint_law(three, resample, temperature):
    """E θ^k, E z_i, E z_i z_j, E θ z_i, E θ² z_i and E z₁z₂z₃ against quadrature over θ and enumeration of z."""
    kernel = FlyMC(LogisticBound(TANGENT), 1.5, resample=resample, temperature=temperature)
    state = run_by_hand(ewsg.compose(three, kernel), lambda key: jax.random.normal(key, (1,)), CHAINS, 150)
    theta, z = np.asarray(state.phase.position, np.float64)[:, 0], indicators(state).astype(float)
    exact = joint(temperature)

    def expectation(function):
        return sum(np.sum(weights * function(GRID, np.array(pattern))) for pattern, weights in exact.items())

    for power in (1, 2, 3):
        assert_mean(theta**power, expectation(lambda t, _, power=power: t**power))
    for i in range(3):
        assert 0.2 < expectation(lambda t, z, i=i: z[i]) < 0.98
        assert_mean(z[:, i], expectation(lambda t, z, i=i: z[i]))
        assert_mean(theta * z[:, i], expectation(lambda t, z, i=i: t * z[i]))
        assert_mean(theta**2 * z[:, i], expectation(lambda t, z, i=i: t**2 * z[i]))
        assert_mean(z[:, i] * z[:, i - 1], expectation(lambda t, z, i=i: z[i] * z[i - 1]))
    assert_mean(z.prod(1), expectation(lambda t, z: z.prod()))


def test_carried_density_is_that_of_the_state(three):
    """After many steps the two carried parts of log p(θ, z) are what they are when computed anew."""
    sampler = ewsg.compose(three, FlyMC(LogisticBound(TANGENT), 1.5, resample=1))
    state = run_by_hand(sampler, lambda key: jax.random.normal(key, (1,)), CHAINS, 200)
    theta = np.asarray(state.phase.position, np.float64)[:, 0]
    weights = np.log(np.expm1(np.maximum(log_gaps(theta), 1e-12))).T
    expected = np.sum(np.where(indicators(state), weights, 0), axis=1)
    np.testing.assert_allclose(state.estimator.bright_sum.value(), expected, rtol=1e-3, atol=2e-3)
    base = jax.vmap(sampler._base)(state.phase.position)
    np.testing.assert_allclose(state.estimator.base, base, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("remainder", "temperature"), [("datum", 1.0), ("largest", 0.3)])
def test_skewed_posterior(skewed, remainder, temperature):
    """Mean, sd, skewness and correlation against quadrature in two dimensions."""
    kernel = FlyMC(GaussianTaylorBound(remainder), 0.8 * temperature**0.5, resample=0.5, temperature=temperature)
    draws, run = last_draws(skewed, kernel, 300, num_chains=CHAINS)
    assert_skewed_law(draws, temperature)
    assert run.stats["bound_violations"].max() == 0
    assert 0.05 < run.stats["bright"].mean() < 4.5
