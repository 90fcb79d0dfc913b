"""c-SGBD: its probabilities against the full gradient's, its estimate of the noise by hand, and its stationary law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import ewsg
from ewsg.errors import InputError

COLD = 0.3


@pytest.mark.parametrize("temperature", [1.0, COLD])
def test_normal_noise_leaves_the_probabilities_as_they_are(temperature):
    """Averaged over N(force, τ²), τz/T = 1.4: within 0.02 of the full gradient's, where SGBD's are off by 0.05."""
    method = ewsg.CorrectedBarker(2, 0.01, temperature)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights, z = weights / weights.sum(), 0.2
    sd = 1.4 * temperature / z
    force = np.linspace(-2, 2, 9) * sd
    noisy = jnp.asarray(force[:, None] + sd * nodes, jnp.float32)
    size, spread = jnp.full_like(noisy, z), jnp.full_like(noisy, sd)
    exact = expit(z * force / temperature)
    corrected = np.asarray(method.upward(size, noisy, spread)) @ weights
    vanilla = np.asarray(method.plain().upward(size, noisy, 1.0)) @ weights
    assert np.abs(corrected - exact).max() < 0.02
    assert np.abs(vanilla - exact).max() > 0.05
    quiet = method.upward(size, noisy, 0 * spread)
    np.testing.assert_allclose(quiet, method.plain().upward(size, noisy, 1.0), rtol=1e-6)


def test_the_direction_is_certain_where_the_noise_is_too_large_to_correct():
    method = ewsg.CorrectedBarker(2, 0.01)
    size, force = jnp.array([0.2, 0.2, -0.2, 0.2]), jnp.array([3.0, -3.0, 3.0, jnp.nan])
    found = np.asarray(method.upward(size, force, jnp.full(4, 1.702 / 0.2 * 1.01)))
    assert found[:3].tolist() == [1, 0, 0]
    assert np.isnan(found[3])


def test_the_noise_is_averaged_and_costs_are_counted_by_hand():
    """sd² = (n − b)/((n − 1) b) · sample variance of n·gradient, τ without the weight of its start at 0."""
    data = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
    target = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, data)
    h = 1e-3
    sampler = ewsg.compose(target, ewsg.CorrectedBarker(3, h, COLD, decay=0.8))
    state = sampler.init(jax.random.key(0), jnp.zeros(2))
    assert sampler.noise_ratio(jax.random.key(1), state) == 0
    step, by_hand = jax.jit(type(sampler).step), np.zeros(2)
    for t in range(4):
        state, info = step(sampler, jax.random.key(t), state)
        chosen = data[np.asarray(info.estimate.indices)]
        np.testing.assert_allclose(info.force, 7 * (chosen - np.asarray(info.evaluated_at)).mean(0), rtol=1e-5)
        by_hand = 0.8 * by_hand + 0.2 * 7 * np.sqrt((7 - 3) / (6 * 3)) * chosen.std(0, ddof=1)
        np.testing.assert_allclose(state.estimator, by_hand, rtol=1e-5)
        ratio = h / (2 * COLD) * np.mean((by_hand / (1 - 0.8 ** (t + 1))) ** 2)
        assert sampler.noise_ratio(jax.random.key(1), state) == pytest.approx(ratio, rel=1e-5)
    assert len(set(np.asarray(info.estimate.indices).tolist())) == 3
    assert sampler.num_steps(20) == 6


def test_the_first_step_knows_its_noise():
    """τ of step 1 is that of its own batch: so large here that every step follows its force, which is never upward."""
    target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.array([-1.0, 0.0, 1.0]))
    size = 1.2 * 1.702 / (3 * np.sqrt(0.5) / 2)  # τ is at least 3√(1/2)/2
    sampler = ewsg.compose(target, ewsg.CorrectedBarker(2, size**2 / 2, spread=0.0))
    start = sampler.init(jax.random.key(0), jnp.array(0.6))
    first = jax.vmap(lambda key: sampler.step(key, start)[0].phase.position)
    np.testing.assert_allclose(first(jax.random.split(jax.random.key(1), 64)), 0.6 - size, rtol=1e-5)


def variance_of(upward, h, curvature, temperature, noise, points=601):
    """The stationary variance on V = λθ²/2 with normal noise of the force, on a grid; `upward` of sizes and forces."""
    unit = np.sqrt(2 * h * temperature / 1.01)
    x = 7 * np.sqrt(temperature / curvature) * np.linspace(-1, 1, points)
    step = x[None] - x[:, None]
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    odds = sum(
        weight * upward(step, -curvature * x[:, None] + noise * node)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True)
    )
    kernel = (norm.pdf(step, unit, 0.1 * unit) + norm.pdf(step, -unit, 0.1 * unit)) * odds
    kernel /= kernel.sum(1, keepdims=True)
    for _ in range(11):
        kernel = kernel @ kernel
    return float(kernel[points // 2] @ x**2)


def test_the_stationary_law_is_nearly_that_of_the_full_gradient():
    """Against quadrature: noise with τz/T = 1.2 makes SGBD's variance 1.28 times the full gradient's, c-SGBD's 1.06."""
    n, b = 100, 16
    data = norm.ppf((np.arange(n) + 0.5) / n).astype(np.float32)[:, None]
    target = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, data)
    noise = n * np.std(data) * np.sqrt((n - b) / (n - 1) / b)
    h = (1.2 * COLD / noise) ** 2 / (2 * COLD)
    every = round(2 / (h * n))  # steps between draws: two relaxation times

    def plain(z, force):
        return expit(z * force / COLD)

    def corrected(z, force):
        inside = np.maximum(1.702**2 - (noise * z / COLD) ** 2, 1e-12)
        return expit(1.702 * z * force / COLD / np.sqrt(inside))

    exact = variance_of(plain, h, n, COLD, 0.0)
    for method, odds, low, high in (
        ((ewsg.CorrectedBarker(b, h, COLD), None), corrected, 1.03, 1.07),
        ((ewsg.Uniform(b, replace=False), ewsg.Barker(h, COLD)), plain, 1.2, 1.3),
    ):
        expected = variance_of(odds, h, n, COLD, noise)
        assert low < expected / exact < high
        lengths = {"num_steps": 13 * every, "discard": 3 * every, "thin": every}
        run = ewsg.sample(target, *method, init=jnp.zeros(1), num_chains=300, seed=0, **lengths)
        error = np.sqrt(2 / 3000) * 1.1  # draws are correlated by e^−2
        assert np.var(np.asarray(run.draws, np.float64)) == pytest.approx(expected, rel=0.01 + 3 * error)


def test_what_does_not_fit_is_refused(gaussian):
    with pytest.raises(InputError, match="batch_size 51 is larger than the number of data 50"):
        ewsg.compose(gaussian, ewsg.CorrectedBarker(51, 0.01))
    wrong = {"decay": (1.0, "below 1"), "spread": (-1.0, "spread"), "batch_size": (1, "batch_size")}
    for name, (value, message) in wrong.items():
        with pytest.raises(InputError, match=message):
            ewsg.CorrectedBarker(**({"batch_size": 2, "step_size": 0.1} | {name: value}))
