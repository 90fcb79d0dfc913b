"""SGNHT: the update by hand and by BlackJAX's, and friction that finds the heat of subsampling by itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg import _random
from ewsg.integrators.thermostat import Thermostat


@pytest.fixture(scope="module")
def round_target():
    """Forty centres whose population covariance is the identity."""
    rng = np.random.default_rng(3)
    raw = rng.normal(size=(40, 2))
    raw -= raw.mean(0)
    centres = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T, bias=True))).T
    return ewsg.Target(gaussian_log_likelihood, None, centres.astype(np.float32))


@pytest.fixture(scope="module")
def long_target(round_target):
    """The same with gradient noise that is sixteen times as strong along the first axis."""
    centres = np.asarray(round_target.data.arrays) * np.array([2.0, 0.5], np.float32)
    return ewsg.Target(gaussian_log_likelihood, None, centres)


@pytest.mark.parametrize("units", ["sum", "mean"])
@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("per_coordinate", [False, True])
def test_steps_by_hand(gaussian, per_coordinate, temperature, units):
    """The same keys and minibatches, the equations in float64, in mean units for ∇V/n at temperature T/n."""
    h, friction, inertia = 0.02, 3.0, 0.7
    scale, t = (50, temperature / 50) if units == "mean" else (1, temperature)
    integrator = Thermostat(h, friction, temperature, per_coordinate, inertia, units)
    sampler = ewsg.compose(gaussian, ewsg.Uniform(3), integrator)
    state = sampler.init(jax.random.key(0), jnp.array([0.3, -0.2]))
    theta, r, xi = (np.asarray(leaf, np.float64) for leaf in state.phase)
    r, xi = r / np.sqrt(scale), xi / np.sqrt(scale)
    assert xi == pytest.approx(friction)
    for key in jax.random.split(jax.random.key(1), 6):
        state, info = sampler.step(jax.random.clone(key), state)
        noise = np.asarray(_random.normal_like(jax.random.split(key)[1], jnp.zeros(2)), np.float64)
        batch = np.asarray(gaussian.data.arrays, np.float64)[np.asarray(info.estimate.indices)]
        force = 50 * (batch.mean(0) - theta) / scale
        r = r - h * xi * r + h * force + np.sqrt(2 * friction * h * t) * noise
        theta = theta + h * r
        xi = xi + h / inertia * ((r**2 if per_coordinate else np.mean(r**2)) - t)
        expected = (theta, r * np.sqrt(scale), xi * np.sqrt(scale))
        for found, value in zip(state.phase, expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)


def test_momentum_and_thermostat_move_as_in_blackjax(gaussian):
    """The same update but for the position, which BlackJAX moves by the old momentum."""
    from blackjax.sgmcmc import diffusions

    h, friction, temperature = 0.02, 3.0, 0.5
    sampler = ewsg.compose(gaussian, ewsg.Full(), Thermostat(h, friction, temperature))
    state = sampler.init(jax.random.key(0), jnp.array([0.3, -0.2]))
    state = sampler.step(jax.random.key(5), state)[0]
    key = jax.random.key(1)
    ours = sampler.step(jax.random.clone(key), state)[0].phase
    noise = _random.normal_like(jax.random.split(key)[1], jnp.zeros(2))
    pushed = gaussian.full_force(state.phase.position) + jnp.sqrt(2 * friction * temperature / h) * noise
    theirs = diffusions.sgnht(0.0)(jax.random.key(2), *state.phase, pushed, h, temperature)
    np.testing.assert_allclose(ours.momentum, theirs[1], rtol=1e-5)
    np.testing.assert_allclose(ours.thermostat, theirs[2], rtol=1e-6)
    np.testing.assert_allclose(ours.position - h * ours.momentum, theirs[0] - h * state.phase.momentum, rtol=1e-4)


def stationary(target, integrator, chains=500, time=24.0):
    """Variance of the position over the target's, per coordinate, and kinetic temperature over T."""
    h, temperature = integrator.step_size, integrator.temperature
    run = ewsg.sample(
        target,
        ewsg.Uniform(1),
        integrator,
        init=jnp.zeros(2),
        num_chains=chains,
        num_steps=int(time / h),
        discard=0.5,
        thin=50,
    )
    assert run.ok.all()
    variance = np.mean(np.asarray(run.draws, np.float64) ** 2, axis=(0, 1)) * target.num_data / temperature
    return variance, run.stats["kinetic_temperature"].mean() / temperature, run


@pytest.mark.parametrize(("per_coordinate", "temperature"), [(False, 1.0), (True, 0.3)])
def test_the_thermostat_absorbs_the_heat_of_subsampling(round_target, per_coordinate, temperature):
    """Cov(g) = 1,600 I: Underdamped is hot by 1 + h·1600/(2γT) and more; the thermostat's friction rises to match."""
    h, friction = 0.004, 3.0
    hot, warm, _ = stationary(round_target, ewsg.Underdamped(h, friction, temperature))
    excess = h * 40**2 / (2 * friction * temperature)
    assert np.all(hot > 1 + 0.9 * excess)
    assert warm > 1 + 0.9 * excess
    integrator = Thermostat(h, friction, temperature, per_coordinate, inertia=0.05)
    variance, kinetic, run = stationary(round_target, integrator)
    assert kinetic == pytest.approx(1.0, abs=0.01)
    assert variance == pytest.approx(1.0, abs=0.06)
    xi = np.asarray(run.checkpoint.carry.chains.state.phase.thermostat).mean()
    assert xi == pytest.approx(friction * (1 + excess), rel=0.1)


def test_one_thermostat_per_coordinate_for_uneven_noise(long_target):
    """A single ξ gets the mean right and both coordinates wrong; one each gets both right."""
    single, kinetic, _ = stationary(long_target, Thermostat(0.002, 3.0, inertia=0.05))
    assert kinetic == pytest.approx(1.0, abs=0.02)
    assert single[0] > 1.3
    assert single[1] < 0.75
    each, kinetic, _ = stationary(long_target, Thermostat(0.002, 3.0, per_coordinate=True, inertia=0.05))
    assert kinetic == pytest.approx(1.0, abs=0.02)
    assert each == pytest.approx(1.0, abs=0.08)


def test_exact_forces_without_thermostat_motion_solve_the_lyapunov_equation(round_target):
    """With a thermostat too heavy to move, θ' = θ + h r' has a linear stationary law."""
    import scipy.linalg

    h, friction, temperature, n = 0.05, 4.0, 0.3, 40
    kick = np.array([-h * n, 1 - h * friction])
    matrix = np.array([[1.0, 0.0] + h * kick, kick])
    noise = 2 * friction * temperature * h * np.outer([h, 1.0], [h, 1.0])
    exact = scipy.linalg.solve_discrete_lyapunov(matrix, noise)[0, 0]
    run = ewsg.sample(
        round_target,
        ewsg.Full(),
        Thermostat(h, friction, temperature, inertia=1e8),
        init=jnp.zeros(2),
        num_chains=20_000,
        num_steps=200,
        discard=0,
        thin=200,
    )
    assert run.draws[:, -1].var(0) == pytest.approx(exact, rel=4.5 * np.sqrt(2 / 20_000))


def test_the_kick_shows_the_present_friction(gaussian):
    """EWSG's x = decay/noise scale then uses ξ r, so its weights follow the thermostat."""
    seen = []

    class Watching(ewsg.estimators.AbstractEstimator):
        def estimate(self, key, target, kick, state):
            seen.append(kick)
            return ewsg.Uniform(2).estimate(key, target, kick, state)

        def cost(self, num_data):
            return ewsg.Uniform(2).cost(num_data)

        def noise_factor(self, num_data):
            return 0.5

    for per_coordinate in (False, True):
        sampler = ewsg.compose(gaussian, Watching(), Thermostat(0.02, 3.0, 0.3, per_coordinate))
        state = sampler.init(jax.random.key(0), jnp.zeros(2))
        state, _ = sampler.step(jax.random.key(1), state)
        sampler.step(jax.random.key(2), state)
        kick = seen[-1]
        np.testing.assert_allclose(kick.decay, 0.02 * state.phase.thermostat * state.phase.momentum, rtol=1e-6)
        np.testing.assert_array_equal(kick.momentum, state.phase.momentum)
        assert float(kick.noise_scale) == pytest.approx(np.sqrt(2 * 3.0 * 0.3 * 0.02))


def test_resumed_equals_uninterrupted_on_a_pytree(gaussian, tmp_path):
    target = ewsg.Target(
        lambda p, c: gaussian_log_likelihood(jnp.stack([p["a"], p["b"][0]]), c), None, gaussian.data.arrays
    )
    options = {"init": {"a": 0.1, "b": jnp.zeros(1)}, "num_chains": 3, "discard": 10, "thin": 7}
    integrator = Thermostat(ewsg.schedules.Polynomial(0.02), 4.0, 0.3, per_coordinate=True, momentum="zero")
    whole = ewsg.sample(target, ewsg.Exponential(2, 2), integrator, num_steps=96, **options)
    assert whole.cost.datum_gradients == 3 * 96 * 6
    ewsg.sample(target, ewsg.Exponential(2, 2), integrator, num_steps=40, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", target, num_steps=56)
    jax.tree.map(np.testing.assert_array_equal, resumed.draws, whole.draws)
    jax.tree.map(np.testing.assert_array_equal, resumed.checkpoint.carry, whole.checkpoint.carry)


def test_stability_limit(round_target):
    """λ = 40, A = 4: h²·40 + 8h = 4 at h = 0.2317; just below it chains stay, just above they run away."""
    limit = (np.sqrt(4.0**2 + 4 * 40) - 4.0) / 40
    for factor, ends in ((0.97, {"ok"}), (1.03, {"diverged", "nonfinite"})):  # which, depends on how fast it explodes
        integrator = Thermostat(factor * limit, 4.0, 1e-6, inertia=1e8)
        ratio, condition = integrator.stability(40.0)
        assert float(ratio) == pytest.approx(factor, rel=1e-5)
        assert "λ_max" in condition
        run = ewsg.sample(round_target, ewsg.Full(), integrator, init=jnp.ones(2), num_steps=1000, num_chains=2)
        assert set(run.status) <= ends


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"friction": 0.0}, "friction must be positive"),
        ({"friction": 1.0, "inertia": 0.0}, "inertia must be positive"),
        ({"friction": 1.0, "momentum": "warm"}, "unknown momentum of Thermostat"),
        ({"friction": 1.0, "per_cordinate": True}, "did you mean 'per_coordinate'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ewsg.errors.InputError, match=message):
        Thermostat(step_size=0.1, **settings)
