"""NOGIN: exact for Gaussian targets with Gaussian noise, by linear algebra on the steps that are taken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

import ewsg
from ewsg.estimators.midpoint_friction import _midpoint
from ewsg.interface import Kick

pytestmark = pytest.mark.untyped  # a stub stands for the target

HESSIAN = np.array([[2.0, 0.6], [0.6, 0.7]])
NOISE = np.array([[5.0, -3.0], [-3.0, 9.0]])  # does not commute with the Hessian
H, GAMMA, T = 0.4, 1.5, 0.3


def force_of(estimator, rows):
    """The estimator with a minibatch whose forces are −Aθ + rows."""

    class Stub:
        num_data = 10**9

        def draw(self, key, batch_size, replace):
            return jnp.arange(batch_size)

        def forces(self, position, indices):
            return -(jnp.asarray(HESSIAN) @ position)[None] + rows

    return lambda key, kick, state: estimator.estimate(key, Stub(), kick, state)


def rows_with(mean, covariance):
    """Three rows with this mean and Cov(mean of three) = covariance in the sample's estimate."""
    root = np.linalg.cholesky(covariance)
    corners = np.array([[1.0, 0.0], [-0.5, np.sqrt(0.75)], [-0.5, -np.sqrt(0.75)]])
    deviations = corners @ root.T * np.sqrt(4.0)  # Σ corners cornersᵀ = 1.5 I; divided by b − 1 and b: I/4
    return jnp.asarray(np.asarray(mean) + deviations)


def linear_map(integrator, estimator):
    """M, and the columns by which the force's noise and the injected noise enter, from steps of the integrator."""

    def step(x, kicked, noise):
        phase = ewsg.integrators.Phase(jnp.asarray(x[:2]), jnp.asarray(x[2:]))
        ask = force_of(estimator, rows_with(kicked, NOISE))

        def asked(key, kick, state):
            shown = None if kick.noise is None else jnp.asarray(noise)
            force, state, info = ask(key, kick._replace(noise=shown), state)
            change = 0.0 if kick.noise is None else kick.noise_scale * (jnp.asarray(noise) - kick.noise)
            return force + change / kick.step_size, state, info  # the integrator adds its own noise: exchanged here

        moved = integrator.step(jax.random.key(0), phase, jnp.int32(0), asked, ())[0]
        return np.concatenate([moved.position, moved.momentum])

    zero = np.zeros(2)
    origin = step(np.zeros(4), zero, zero)
    matrix = np.stack([step(x, zero, zero) - origin for x in np.eye(4)], axis=1)
    by_force = np.stack([step(np.zeros(4), x, zero) - origin for x in np.eye(2)], axis=1)
    by_noise = np.stack([step(np.zeros(4), zero, x) - origin for x in np.eye(2)], axis=1)
    return matrix, by_force, by_noise


@pytest.mark.parametrize("temperature", [1.0, T])
@pytest.mark.parametrize("h", [0.1, H, 1.2])
def test_nogin_is_exact_for_a_gaussian_with_gaussian_noise(temperature, h):
    """Stationary Cov(θ) = T A⁻¹ for steps up to the stability limit of 1.35, noise ratios of 0.5 to 40."""
    with jax.enable_x64(True):
        move = ewsg.ABOBA(h, GAMMA, temperature)
        matrix, by_force, by_noise = linear_map(move, ewsg.MidpointFriction(3))
    law = solve_discrete_lyapunov(matrix, by_force @ NOISE @ by_force.T + by_noise @ by_noise.T)
    np.testing.assert_allclose(law[:2, :2], temperature * np.linalg.inv(HESSIAN), rtol=1e-6)


def test_without_the_friction_it_is_far_off():
    with jax.enable_x64(True):
        matrix, by_force, by_noise = linear_map(ewsg.ABOBA(H, GAMMA, T), ewsg.MidpointFriction(3, factor=0.0))
    law = solve_discrete_lyapunov(matrix, by_force @ NOISE @ by_force.T + by_noise @ by_noise.T)
    assert law[0, 0] > 2 * T * np.linalg.inv(HESSIAN)[0, 0]


def kicked(kick, rows):
    """The momentum after the kick, written out as equation (1 + κ) r' = (η − κ) r + h·mean + noise."""
    eta = 1.0 if kick.noise is None else float(jnp.sqrt(1 - kick.noise_scale**2 / kick.temperature))
    covariance = np.cov(np.asarray(rows).T) / len(rows)
    kappa = float(kick.step_size) ** 2 * covariance / (2 * float(kick.temperature) * (1 + eta))
    push = eta * kick.momentum + kick.step_size * np.mean(rows, axis=0)
    push = push if kick.noise is None else push + kick.noise_scale * kick.noise
    return np.linalg.solve(np.eye(2) + kappa, push - kappa @ kick.momentum)


@pytest.mark.parametrize("inside", [True, False])
def test_a_kick_preserves_the_momentum(inside):
    """Both with damping and noise inside the kick, and as one that is followed by them (BAOAB)."""
    eta = 0.8 if inside else 1.0
    scale = float(np.sqrt(T * (1 - 0.8**2)))
    with jax.enable_x64(True):
        r, noise = jnp.array([0.7, -1.1]), jnp.array([0.2, 0.5])
        kick = Kick(jnp.zeros(2), r, (1 - 0.8) * r, noise if inside else None, 0.4, scale, T, 0)
        rows = rows_with([0.3, -0.4], NOISE)
        force, _, info = force_of(ewsg.MidpointFriction(3), rows)(jax.random.key(0), kick, ())
        after = eta * r + 0.4 * force + (scale * noise if inside else 0.0)
        np.testing.assert_allclose(after, kicked(kick, rows), rtol=1e-5)
        np.testing.assert_allclose(force - info.drag, [0.3, -0.4], rtol=1e-6)


def test_the_smaller_of_two_systems_is_solved():
    rng = np.random.default_rng(0)
    for shape in ((3, 5), (5, 3)):
        factor, vector = rng.normal(size=shape).astype(np.float32), rng.normal(size=shape[1]).astype(np.float32)
        expected = np.linalg.solve(np.eye(shape[1]) + factor.T @ factor, vector)
        np.testing.assert_allclose(_midpoint(jnp.asarray(factor), jnp.asarray(vector)), expected, rtol=1e-4, atol=1e-6)


def test_one_datum_is_refused():
    with pytest.raises(ewsg.errors.InputError, match="at least 2"):
        ewsg.MidpointFriction(1)
    with pytest.raises(ewsg.errors.InputError, match="momentum"):
        ewsg.MidpointFriction(2).check(10, has_momentum=False)
