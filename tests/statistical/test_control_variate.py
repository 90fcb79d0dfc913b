"""Control variates: stationary laws without minibatch noise, and with what noise is left."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
from anchors import wrapped
from chains import CHAINS, assert_covariance, last_draws

import ewsg
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.svrg import SVRG


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_underdamped_stationary_law(gaussian, centres, kind, temperature):
    """S = A S Aᵀ + Q without any minibatch covariance."""
    n, h, gamma, eye = len(centres), 0.02, 5.0, np.eye(2)
    a = np.block([[eye, h * eye], [-h * n * eye, (1 - h * gamma) * eye]])
    q = scipy.linalg.block_diag(0 * eye, 2 * gamma * temperature * h * eye)
    exact = scipy.linalg.solve_discrete_lyapunov(a, q)[:2, :2]
    integrator = ewsg.Underdamped(step_size=h, friction=gamma, temperature=temperature)
    draws, _ = last_draws(gaussian, wrapped(kind, ewsg.Uniform(1)), integrator, 300)
    assert_covariance(draws, exact)
    assert np.all(np.abs(draws.mean(0) - centres.mean(0)) < 4.5 * np.sqrt(np.diag(exact) / CHAINS))


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_overdamped_stationary_law(gaussian, centres, kind, temperature):
    n, h = len(centres), 0.005
    exact = 2 * h * temperature / (1 - (1 - h * n) ** 2) * np.eye(2)
    integrator = ewsg.Overdamped(step_size=h, temperature=temperature)
    draws, _ = last_draws(gaussian, wrapped(kind, ewsg.Uniform(1)), integrator, 80)
    assert_covariance(draws, exact)


def test_skewed_posterior_with_noise_left():
    """Ten Poisson counts with unequal exposures e_i, θ the log rate: e^θ ~ Gamma(Σy, Σe), skewed, and not quadratic.

    One datum a step heats it by half; with an anchor the chain is that of the full gradient, up to the noise left.
    """
    exposures = np.array([0.1, 0.2, 0.2, 0.3, 0.3, 0.5, 0.7, 1.2, 1.5, 3.0], np.float32)
    counts = np.array([0, 0, 0, 0, 0, 0, 0, 0, 4, 4], np.float32)
    data = {"e": exposures, "y": counts}
    target = ewsg.Target(lambda t, d: d["y"] * t[0] - d["e"] * jnp.exp(t[0]), None, data)
    shape = counts.sum()
    mean = scipy.special.digamma(shape) - np.log(exposures.sum())
    variance, third = scipy.special.polygamma([1, 2], shape)
    start = jnp.array([mean], jnp.float32)
    estimators = {
        "full": ewsg.Full(),
        "plain": ewsg.Uniform(1),
        "svrg": SVRG(ewsg.Uniform(1), 5),
        "fixed": ControlVariate(ewsg.Uniform(1), start=start),
    }
    found = {}
    for name, estimator in estimators.items():
        x = last_draws(target, estimator, ewsg.Underdamped(step_size=0.02, friction=3.0), 400, init=start)[0][:, 0]
        skewness = np.mean((x - x.mean()) ** 3) / x.std() ** 3
        found[name] = (x.mean() - mean) / np.sqrt(variance), x.var() / variance, skewness
    error = 4.5 * np.array([1, np.sqrt(3), np.sqrt(15)]) / np.sqrt(CHAINS)
    exact = np.array([0.0, 1.05, third / variance**1.5])  # 5 % from the step size
    assert np.all(np.abs(found["full"] - exact) < error), found
    assert np.all(np.abs(found["svrg"] - exact) < error), found
    assert np.all(np.abs(np.subtract(found["svrg"], found["full"])) < 0.01)  # they share their noise
    assert 1.05 < found["fixed"][1] < 1.15
    assert found["plain"][1] > 1.4
