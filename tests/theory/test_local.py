"""Theorem 2: EWSG's weights, the traces under them, when they are smaller, and when they are not."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from theorems import gaussian_gradients, linear_target, origin

import ewsg
from ewsg import theory
from ewsg.errors import InputError
from ewsg.interface import Kick
from ewsg.theory.local import trace_of, weights_of

FRICTION = 1.5
STEP = 0.3


def kick_at(position: jax.Array, momentum: jax.Array, temperature: float) -> Kick:
    noise_scale = math.sqrt(2 * FRICTION * temperature * STEP)
    decay = STEP * FRICTION * momentum
    return Kick(position, momentum, decay, jnp.zeros_like(position), STEP, noise_scale, temperature)


@pytest.mark.parametrize(
    ("temperature", "choice", "settings"),
    [
        (1.0, "momentum", {"exact": True}),
        (0.3, "zero", {"exact": True}),
        (0.3, "momentum", {"chain_length": 40, "evaluate": "streamed"}),
    ],
)
def test_ewsg_weights_are_the_law_of_the_estimator(temperature, choice, settings):
    target = linear_target(1.5 * gaussian_gradients(6, 2) + 0.5)
    position, momentum = origin(2), jnp.array([0.7, -1.1])
    estimator = ewsg.Exponential(batch_size=1, x=choice, **settings)
    kick = kick_at(position, momentum, temperature)
    draws = 20_000
    keys = jax.random.split(jax.random.key(1), draws)
    chosen = jax.jit(jax.vmap(lambda key: estimator.estimate(key, target, kick, ())[2].indices[0]))(keys)
    x = theory.momentum_x(momentum, STEP, FRICTION, temperature) if choice == "momentum" else jnp.zeros(2)
    weights = theory.ewsg_weights(target, position, x, STEP, FRICTION, temperature)
    assert weights.max() > 1.5 * weights.min()
    assert stats.chisquare(np.bincount(chosen, minlength=6), draws * weights).pvalue > 1e-4


def test_ewsg_weights_do_not_overflow():
    gradients = np.array([[0.0], [1e4], [1e4 + 1e-3]])
    weights = weights_of(gradients, np.zeros(1), step_size=1.0, noise=1.0)
    np.testing.assert_allclose(weights, [0, 1 / (1 + math.exp(10)), 1 / (1 + math.exp(-10))], rtol=1e-3)


def test_local_covariance_is_about_the_mean_under_the_weights():
    target = linear_target(gaussian_gradients(9, 3) + 2.0)
    weights = np.random.default_rng(3).dirichlet(np.ones(9))
    gradients = theory.datum_gradients(target, origin(3))
    covariance = theory.local_covariance(target, origin(3), weights)
    np.testing.assert_allclose(covariance, np.cov(gradients.T, aweights=weights, ddof=0), rtol=1e-10)
    with pytest.raises(InputError, match="9 probabilities"):
        theory.local_covariance(target, origin(3), np.ones(9))


def test_local_traces_agree_with_their_parts():
    target = linear_target(gaussian_gradients(30, 2) + 0.4)
    momentum = jnp.array([1.0, -0.5])
    traces = theory.local_traces(target, origin(2), momentum, STEP, FRICTION, 0.7)
    gradients = theory.datum_gradients(target, origin(2))
    x = theory.momentum_x(momentum, STEP, FRICTION, 0.7)
    weights = theory.ewsg_weights(target, origin(2), x, STEP, FRICTION, 0.7)
    assert traces.uniform == pytest.approx(np.var(gradients, axis=0).sum())
    assert traces.exponential == pytest.approx(np.trace(theory.local_covariance(target, origin(2), weights)))
    assert traces.optimal == theory.optimal_weights(target, origin(2)).trace < traces.uniform
    assert traces.bias == pytest.approx(np.linalg.norm(weights @ gradients - gradients.mean(axis=0)))
    assert math.isnan(theory.local_traces(target, origin(2), momentum, STEP, FRICTION, 0.7, False).optimal)


def test_local_functions_refuse_vectors_unlike_the_position_and_bad_settings():
    target = linear_target(gaussian_gradients(5, 2))
    with pytest.raises(InputError, match="must have the shape of the position"):
        theory.ewsg_weights(target, origin(2), jnp.zeros(3), STEP, FRICTION)
    with pytest.raises(InputError, match="step_size must be positive"):
        theory.local_traces(target, origin(2), origin(2), -1.0, FRICTION)


def changes(draw, step_size: float, repeats: int) -> np.ndarray:
    """Theorem 2's Δ over the uniform trace, for i.i.d. n∇V_i ~ draw, thermal momenta and x = √h γ r/σ."""
    rng = np.random.default_rng(5)
    results = []
    for _ in range(repeats):
        gradients = draw(rng)
        uniform = np.full(len(gradients), 1 / len(gradients))
        x = math.sqrt(step_size * FRICTION / 2) * rng.standard_normal(gradients.shape[1])
        weights = weights_of(gradients, x, step_size, math.sqrt(2 * FRICTION))
        before = trace_of(gradients, uniform)
        results.append((trace_of(gradients, weights) - before) / before)
    return np.array(results)


def z_score(values: np.ndarray) -> float:
    return np.mean(values) / (np.std(values) / math.sqrt(len(values)))


def test_theorem_2_as_its_proof_has_it_weights_independent_of_the_gradients():
    """E[Δ] = −½ E‖b_i − b_j‖² (Σ p_i² − 1/n) < 0 when p is chosen before the gradients are drawn."""
    rng = np.random.default_rng(0)
    n, d = 12, 3
    weights = rng.dirichlet(np.full(n, 2.0))
    draws = [rng.uniform(-1, 1, (n, d)) for _ in range(4_000)]
    delta = np.array([trace_of(g, weights) - trace_of(g, np.full(n, 1 / n)) for g in draws])
    expected = -0.5 * (2 * d / 3) * (np.sum(weights**2) - 1 / n)
    assert z_score(delta - expected) == pytest.approx(0, abs=4)
    assert z_score(delta) < -20


def test_theorem_2_holds_for_gradients_whose_errors_are_equally_long():
    delta = changes(lambda rng: rng.choice([-1.0, 1.0], (20, 3)), step_size=1.0, repeats=800)
    assert z_score(delta) < -10


def test_theorem_2_holds_when_the_tilt_leaves_few_data():
    delta = changes(lambda rng: rng.uniform(-1, 1, (20, 3)), step_size=20.0, repeats=300)
    assert z_score(delta) < -10


@pytest.mark.parametrize("step_size", [0.01, 0.1])
def test_theorem_2_fails_for_bounded_symmetric_gradients_and_small_steps(step_size):
    """A counterexample to E[Δ] < 0: EWSG's weights depend on the gradients, they prefer long ones."""
    delta = changes(lambda rng: rng.uniform(-1, 1, (20, 3)), step_size, repeats=1_500)
    assert z_score(delta) > 10


def test_theorem_2_sign_follows_skewness():
    def left_skewed(rng):
        return 1 - 2 * (rng.beta(0.5, 2.0, (20, 3)) - 0.2)

    def right_skewed(rng):
        return 1 + 2 * (rng.beta(0.5, 2.0, (20, 3)) - 0.2)

    assert z_score(changes(left_skewed, 0.05, 1_000)) < -10
    assert z_score(changes(right_skewed, 0.05, 1_000)) > 10


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_change_is_of_first_order_in_the_step_with_the_stated_coefficient(temperature):
    target = linear_target(np.random.default_rng(2).gamma(2.0, size=(25, 2)))
    momentum = jnp.array([0.4, -1.3])
    steps = np.array([1e-4, 3e-4, 1e-3])
    settings = [(target, origin(2), momentum, h, FRICTION, temperature) for h in steps]
    traces = [theory.local_traces(*setting, with_optimal=False) for setting in settings]
    delta = np.array([t.exponential - t.uniform for t in traces])
    predicted = [theory.first_order_change(*setting) for setting in settings]
    np.testing.assert_allclose(delta, predicted, rtol=0.02)
    assert theory.fit_slope(steps, np.abs(delta)).value == pytest.approx(1, abs=0.01)
    assert theory.fit_slope(steps, [t.bias for t in traces]).value == pytest.approx(1, abs=0.01)
