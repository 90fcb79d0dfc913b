"""pSGLD: the update by hand, the limit of a constant preconditioner, Γ, and the metric that estimators see."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg import _random
from ewsg.integrators.overdamped import Overdamped
from ewsg.integrators.preconditioned import Preconditioned, PreconditionedPhase
from ewsg.sampler import SamplerState


def last_draws(target, estimator, integrator, num_steps, num_chains, init=None):
    run = ewsg.sample(
        target,
        estimator,
        integrator,
        init=jnp.zeros(2) if init is None else init,
        num_chains=num_chains,
        num_steps=num_steps,
        discard=0,
        thin=num_steps,
    )
    assert run.ok.all()
    return np.asarray(run.draws, np.float64)[:, -1]


@pytest.mark.parametrize(
    ("temperature", "units"), [pytest.param(1.0, "sum", marks=pytest.mark.slow), (0.3, "sum"), (0.3, "mean")]
)
def test_steps_by_hand(gaussian, temperature, units):
    """Li et al.'s Alg. 1 in float64 with the same keys and minibatches, ε = 2h; v starts at the first ḡ∘ḡ."""
    h, alpha, regularization, n = 2e-3, 0.9, 0.05, 50
    integrator = Preconditioned(h, alpha, regularization, temperature=temperature, units=units)
    epsilon = 2 * h / (n if units == "mean" else 1)
    sampler = ewsg.compose(gaussian, ewsg.Uniform(3), integrator)
    state = sampler.init(jax.random.key(0), jnp.array([0.3, -0.2]))
    theta, v = np.array([0.3, -0.2], np.float32).astype(np.float64), None
    for key in jax.random.split(jax.random.key(1), 8):
        state, info = sampler.step(jax.random.clone(key), state)
        noise = np.asarray(_random.normal_like(jax.random.split(key)[1], jnp.zeros(2)), np.float64)
        batch = np.asarray(gaussian.data.arrays, np.float64)[np.asarray(info.estimate.indices)]
        mean = batch.mean(0) - theta
        v = mean**2 if v is None else alpha * v + (1 - alpha) * mean**2
        p = 1 / (regularization + np.sqrt(v))
        theta = theta + epsilon / 2 * p * n * mean + np.sqrt(epsilon * temperature * p) * noise
        np.testing.assert_allclose(state.phase.position, theta, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.phase.second_moment, v, rtol=1e-4, atol=1e-6)
    assert state.phase.momentum is None


def test_defaults_are_the_papers():
    integrator = Preconditioned(1e-3)
    assert (integrator.alpha, integrator.regularization, integrator.curvature) == (0.99, 1e-5, False)


def test_constant_preconditioner_is_sgld_on_a_rescaled_problem(gaussian, centres):
    """α = 1 keeps P; then θ = √P φ where φ is SGLD for ℓ(√P φ), draw for draw."""
    h, temperature = 1e-3, 0.3
    sampler = ewsg.compose(gaussian, ewsg.Uniform(3), Preconditioned(h, 1.0, 0.1, temperature=temperature))
    state = sampler.init(jax.random.key(0), jnp.array([0.3, -0.2]))
    state, _ = sampler.step(jax.random.key(1), state)
    root = jnp.sqrt(1 / (0.1 + jnp.sqrt(state.phase.second_moment)))
    scaled = ewsg.Target(lambda phi, c: gaussian_log_likelihood(root * phi, c), None, centres)
    plain = ewsg.compose(scaled, ewsg.Uniform(3), Overdamped(h, temperature))
    other = plain.init(jax.random.key(2), state.phase.position / root)
    step, plain_step = jax.jit(sampler.step), jax.jit(plain.step)
    for key in jax.random.split(jax.random.key(3), 30):
        state, _ = step(jax.random.clone(key), state)
        other, _ = plain_step(key, other)
        np.testing.assert_allclose(state.phase.position, root * other.phase.position, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
def test_constant_preconditioner_stationary_variance(gaussian, centres, temperature):
    """S = (1 − hPn)² S + 2hTP for each coordinate, P from the gradient at the common start."""
    h, chains, start = 2e-3, 20_000, np.array([0.5, -2.0])
    p = 1 / (0.2 + np.abs(centres.mean(0) - start))
    exact = 2 * h * temperature * p / (1 - (1 - h * p * 50) ** 2)
    integrator = Preconditioned(h, 1.0, 0.2, temperature=temperature)
    draws = last_draws(gaussian, ewsg.Full(), integrator, 150, chains, jnp.asarray(start, jnp.float32))
    assert draws.var(0) / exact == pytest.approx(1.0, abs=4.5 * np.sqrt(2 / chains))
    assert draws.mean(0) == pytest.approx(centres.mean(0), abs=0.01)


def test_moving_preconditioner_against_a_simulation(gaussian, centres):
    """α = 0.9, minibatches of 2: mean and variance after 150 steps agree with another implementation's."""
    h, alpha, chains, n = 2e-3, 0.9, 20_000, 50
    rng = np.random.default_rng(0)
    theta, v = np.zeros((chains, 2)), None
    for _ in range(150):
        mean = centres.astype(np.float64)[rng.integers(n, size=(chains, 2))].mean(1) - theta
        v = mean**2 if v is None else alpha * v + (1 - alpha) * mean**2
        p = 1 / (1e-5 + np.sqrt(v))
        theta = theta + h * p * n * mean + np.sqrt(2 * h * p) * rng.normal(size=theta.shape)
    draws = last_draws(gaussian, ewsg.Uniform(2), Preconditioned(h, alpha), 150, chains)
    error = np.sqrt(2 * theta.var(0) / chains)
    assert np.all(np.abs(draws.mean(0) - theta.mean(0)) < 4.5 * error)
    assert draws.var(0) / theta.var(0) == pytest.approx(1.0, abs=4.5 * 2 / np.sqrt(chains))
    assert np.all(theta.var(0) * n > 1.05)  # hotter than the target, so that this could have failed


def test_metric_enters_the_weights_of_exponential():
    """n = 6, x = 0: P(i) ∝ exp(½ (h/2T) Σ_j P_j G_ij²), with P of the gradients so far."""
    centres = np.array([[1.0, 0.0], [-1.5, 0.3], [0.2, 2.0], [0.5, -1.0], [-0.4, -0.6], [0.1, 0.9]], np.float32)
    target = ewsg.Target(gaussian_log_likelihood, None, centres)
    h, temperature, draws = 0.01, 0.3, 40_000
    second, position = np.array([0.04, 4.0]), np.array([0.1, -0.1])
    g = 6 * (centres.astype(np.float64) - position)

    def law(p):
        weights = np.exp(0.5 * h / (2 * temperature) * (p * g**2).sum(1))
        return weights / weights.sum()

    expected, flat = law(1 / (0.1 + np.sqrt(second))), law(np.ones(2))
    estimator = ewsg.Exponential(1, x="zero", exact=True)
    integrator = Preconditioned(h, 0.9, 0.1, temperature=temperature)
    sampler = ewsg.compose(target, estimator, integrator)
    for step, probabilities in ((1, expected), (0, flat)):
        phase = PreconditionedPhase(jnp.asarray(position, jnp.float32), None, jnp.asarray(second, jnp.float32))
        state = SamplerState(phase, (), jnp.int32(step))
        keys = jax.random.split(jax.random.key(step), draws)
        indices = jax.jit(jax.vmap(lambda key, state=state: sampler.step(key, state)[1].estimate.indices[0]))(keys)
        found = np.bincount(np.asarray(indices), minlength=6) / draws
        error = np.sqrt(probabilities * (1 - probabilities) / draws)
        assert np.all(np.abs(found - probabilities) < 4.5 * error)
    assert np.abs(expected - flat).max() > 0.1


def moments(density, grid):
    weights = density(grid) / density(grid).sum()
    return (weights * grid**2).sum()


def test_gamma_restores_the_target_of_a_preconditioner_that_follows_the_position():
    """α = 0 and exact gradients: P(θ) = 1/(λ + |ḡ(θ)|).

    Without Γ the Itô diffusion θ' = −PV' + √(2PT) dW has the density (λ + |ḡ|) exp(−V/T), with Γ exp(−V/T).
    """
    n, regularization, temperature, chains = 4, 0.2, 0.3, 20_000
    target = ewsg.Target(lambda t, c: -0.5 * jnp.sum((t - c) ** 2), None, np.zeros((n, 1), np.float32))
    grid = np.linspace(-3, 3, 100_001)
    with_gamma = moments(lambda x: np.exp(-n * x**2 / 2 / temperature), grid)
    without = moments(lambda x: (regularization + np.abs(x)) * np.exp(-n * x**2 / 2 / temperature), grid)
    assert without > 1.3 * with_gamma
    for curvature, exact in ((True, with_gamma), (False, without)):
        integrator = Preconditioned(1e-3, 0.0, regularization, curvature, temperature)
        draws = last_draws(target, ewsg.Full(), integrator, 1000, chains, jnp.zeros(1))
        tolerance = 0.02 + 4.5 * np.sqrt(3 / chains)  # of the discretisation, and of Monte Carlo
        assert np.mean(draws**2) == pytest.approx(exact, rel=tolerance)


@pytest.mark.parametrize("step", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_gamma_is_estimated_without_bias(step):
    """Its mean over sign vectors is ∂P_i/∂θ_i by automatic differentiation, for a coupled, non-quadratic pytree."""
    data = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)

    def log_likelihood(p, x):
        return -jnp.cosh(p["a"] * x[0] + jnp.dot(p["b"], x[1:]) - 0.3)

    target = ewsg.Target(log_likelihood, lambda p: -0.1 * jnp.sum(p["b"] ** 4), data)
    h, alpha, temperature = 0.1, 0.6, 0.3
    position = {"a": jnp.array(0.4), "b": jnp.array([-0.7, 0.2])}
    second = {"a": jnp.array(0.3), "b": jnp.array([0.1, 0.6])}

    def metric(p):
        weight = 1 - alpha if step else 1.0
        mean = jax.tree.map(lambda f: f / 7, target.full_force(p))
        return jax.tree.map(lambda v, g: 1 / (0.05 + jnp.sqrt(v + weight * (g**2 - v))), second, mean)

    jacobian = jax.jacfwd(metric)(position)
    exact = {"a": jacobian["a"]["a"], "b": jnp.diag(jacobian["b"]["b"])}
    state = SamplerState(PreconditionedPhase(position, None, second), (), jnp.int32(step))
    keys = jax.random.split(jax.random.key(0), 4000)

    def moved(curvature):
        sampler = ewsg.compose(target, ewsg.Full(), Preconditioned(h, alpha, 0.05, curvature, temperature))
        return jax.jit(jax.vmap(lambda key: sampler.step(key, state)[0].phase.position))(jax.random.clone(keys))

    for one, other, value in zip(*map(jax.tree.leaves, (moved(True), moved(False), exact)), strict=True):
        gamma = (np.asarray(one, np.float64) - np.asarray(other)) / (h * temperature)
        error = gamma.std(0) / np.sqrt(len(keys)) + 1e-3
        assert np.all(np.abs(gamma.mean(0) - np.asarray(value)) < 4.5 * error)
        assert np.all(np.abs(np.asarray(value)) > 10 * error)


@pytest.mark.parametrize(
    ("estimator", "gradients", "curvature", "directional"),
    [
        (ewsg.Uniform(7), 7, False, 0),
        (ewsg.Uniform(7), 7, True, 7),
        (ewsg.Exponential(2, 3, x="zero", evaluate="streamed"), 8, True, 8),
    ],
    ids=str,
)
def test_cost_is_counted_by_hand(gaussian, estimator, gradients, curvature, directional):
    integrator = Preconditioned(1e-4, curvature=curvature)
    run = ewsg.sample(gaussian, estimator, integrator, init=jnp.zeros(2), num_chains=3, data_passes=3, thin=1)
    steps = 150 // gradients
    assert run.cost.datum_gradients == 3 * steps * gradients
    assert run.cost.datum_directional == 3 * steps * directional
    assert "kinetic_temperature" not in run.stats


def test_resumed_equals_uninterrupted_on_a_pytree(gaussian, tmp_path):
    target = ewsg.Target(
        lambda p, c: gaussian_log_likelihood(jnp.stack([p["a"], p["b"][0]]), c), None, gaussian.data.arrays
    )
    options = {"init": {"a": 0.1, "b": jnp.zeros(1)}, "num_chains": 3, "discard": 10, "thin": 7}
    integrator = Preconditioned(ewsg.schedules.Polynomial(0.02), curvature=True, temperature=0.3, units="mean")
    whole = ewsg.sample(target, ewsg.Reshuffled(7), integrator, num_steps=96, **options)
    ewsg.sample(target, ewsg.Reshuffled(7), integrator, num_steps=40, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", target, num_steps=56)
    jax.tree.map(np.testing.assert_array_equal, resumed.draws, whole.draws)
    jax.tree.map(np.testing.assert_array_equal, resumed.checkpoint.carry, whole.checkpoint.carry)


def test_a_coordinate_without_gradient_moves_by_noise_alone():
    """P = 1/λ there; Γ is 0, not NaN."""
    target = ewsg.Target(lambda t, c: -0.5 * (t[0] - c) ** 2, None, np.arange(3.0, dtype=np.float32))
    for curvature in (False, True):
        sampler = ewsg.compose(target, ewsg.Full(), Preconditioned(0.1, 0.9, 0.5, curvature))
        state = sampler.init(jax.random.key(0), jnp.zeros(2))
        moved = sampler.step(jax.random.key(1), state)[0].phase.position
        noise = _random.normal_like(jax.random.split(jax.random.key(1))[1], jnp.zeros(2))
        assert float(moved[1]) == pytest.approx(float(jnp.sqrt(2 * 0.1 / 0.5) * noise[1]), rel=1e-5)


def test_refusals(gaussian):
    with pytest.raises(ewsg.errors.InputError, match="alpha must be at most 1"):
        Preconditioned(0.1, alpha=1.5)
    with pytest.raises(ewsg.errors.InputError, match="regularization must be positive"):
        Preconditioned(0.1, regularization=0.0)
    with pytest.raises(ewsg.errors.InputError, match="needs a momentum"):
        ewsg.compose(gaussian, ewsg.Exponential(2), Preconditioned(0.1))
    alone = Preconditioned(0.1)
    state = alone.init(jax.random.key(0), jnp.zeros(2))
    force = ewsg.compose(gaussian, ewsg.Uniform(2), alone).estimator
    with pytest.raises(ewsg.errors.InputError, match=r"use ewsg\.compose"):
        alone.step(
            jax.random.key(1), state, jnp.int32(0), lambda key, kick, s: force.estimate(key, gaussian, kick, s), ()
        )


def test_a_step_too_large_is_named(gaussian):
    """At the mode P is about n/√(λ_max T), so that hPλ_max < 2 reads h·n·√(λ_max/T) < 2: here h < 0.0057."""
    ratio, condition = ewsg.compose(gaussian, ewsg.Full(), Preconditioned(0.0057, temperature=1.0)).stability(50.0)
    assert float(ratio) == pytest.approx(1.0, rel=0.02)
    assert "√(λ_max · T)/n" in condition
