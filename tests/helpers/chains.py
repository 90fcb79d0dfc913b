"""Long chains: their last draws, and the laws that they must have."""

import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.special

import ewsg
from ewsg.integrators.baoab import BAOAB

CHAINS = 20_000


def last_draws(target, estimator, integrator, num_steps, init=None, num_chains=CHAINS, seed=0):
    run = ewsg.sample(
        target,
        estimator,
        integrator,
        init=jnp.zeros(2) if init is None else init,
        num_chains=num_chains,
        num_steps=num_steps,
        discard=0,
        thin=num_steps,
        seed=seed,
    )
    assert run.ok.all()
    return np.asarray(run.draws, np.float64)[:, -1], run


def assert_covariance(draws, expected, deviations=4.5):
    """Every entry of the sample covariance within its Monte-Carlo error: Var S_ij = (S_ii S_jj + S_ij²)/m."""
    sample = np.cov(draws.T)
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(draws))
    assert np.all(np.abs(sample - expected) < deviations * error), (sample, expected, error)


def gaussian_kl(draws, centres):
    """KL(target ‖ Gaussian fit of the samples)."""
    exact, sample = np.eye(2) / len(centres), np.cov(draws.T)
    difference = draws.mean(0) - centres.mean(0)
    inverse = np.linalg.inv(sample)
    trace = np.trace(inverse @ exact) + difference @ inverse @ difference
    return 0.5 * (trace - 2 + np.log(np.linalg.det(sample) / np.linalg.det(exact)))


def stationary(kind, curvature, h, gamma, temperature, noise=0.0):
    """The stationary covariance of (θ, r) on V = λθ²/2 with gradient noise of variance `noise`, composed by hand."""

    def drift(t):
        return np.array([[1, t], [0, 1.0]]), np.zeros((2, 2))

    def kick():
        return np.array([[1, 0], [-h * curvature, 1.0]]), h**2 * noise * np.array([[0, 0], [0, 1.0]])

    def ou(t):
        eta = np.exp(-gamma * t)
        return np.array([[1, 0], [0, eta]]), temperature * (1 - eta**2) * np.array([[0, 0], [0, 1.0]])

    def flow(t):
        generator = np.array([[0, 1], [0, -gamma]])
        propagator = scipy.linalg.expm(generator * t)
        source = np.diag([0, 2 * gamma * temperature])

        def spread(s):
            return scipy.linalg.expm(generator * s) @ source @ scipy.linalg.expm(generator * s).T

        return propagator, scipy.integrate.quad_vec(spread, 0, t)[0]

    pieces = [kick(), drift(h / 2), ou(h), drift(h / 2)] if kind is BAOAB else [flow(h / 2), kick(), flow(h / 2)]
    matrix, covariance = np.eye(2), np.zeros((2, 2))
    for a, q in pieces:
        matrix, covariance = a @ matrix, a @ covariance @ a.T + q
    return scipy.linalg.solve_discrete_lyapunov(matrix, covariance)
