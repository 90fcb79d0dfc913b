"""Covariance friction: exact stationary laws, and EWSG-VR on the paper's Gaussian."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from chains import assert_covariance, gaussian_kl
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.estimators.covariance_friction import CovarianceFriction


@pytest.fixture(scope="module")
def stretched():
    """Twenty centres with unequal, correlated spread."""
    rng = np.random.default_rng(1)
    centres = (rng.normal(size=(20, 2)) @ np.array([[1.0, 0.6], [0.0, 0.4]])).astype(np.float32)
    return ewsg.Target(gaussian_log_likelihood, None, centres), 20**2 * np.cov(centres.T.astype(np.float64), bias=True)


def stationary_covariance(noise, friction, n, h, gamma, temperature):
    """S = A S Aᵀ + Q of Euler–Maruyama with friction γI + `friction` and gradient covariance `noise`."""
    eye = np.eye(2)
    a = np.block([[eye, h * eye], [-h * n * eye, (1 - h * gamma) * eye - h * friction]])
    q = np.zeros((4, 4))
    q[2:, 2:] = 2 * gamma * temperature * h * eye + h**2 * noise
    return scipy.linalg.solve_discrete_lyapunov(a, q)[:2, :2]


def last_draws(target, estimator, integrator, num_steps, num_chains):
    run = ewsg.sample(
        target,
        estimator,
        integrator,
        init=jnp.zeros(2),
        num_chains=num_chains,
        num_steps=num_steps,
        discard=0,
        thin=num_steps,
    )
    return np.asarray(run.draws, np.float64)[:, -1], run


@pytest.mark.parametrize(
    ("inner", "factor", "form", "temperature"),
    [
        (ewsg.Uniform(1), 1.0, "full", 1.0),
        (ewsg.Uniform(1), 1.0, "full", 0.3),
        (ewsg.Uniform(4, replace=False), 16 / 19 / 4, "diagonal", 0.3),
    ],
    ids=str,
)
def test_stationary_law_is_exact(stretched, inner, factor, form, temperature):
    """Cov(g) of a quadratic potential is constant, so calibrations are exact and the friction matrix is known."""
    target, covariance = stretched
    h, gamma, noise = 0.02, 4.0, factor * covariance
    friction = h / (2 * temperature) * (noise if form == "full" else np.diag(np.diag(noise)))
    exact = stationary_covariance(noise, friction, 20, h, gamma, temperature)
    hot = stationary_covariance(noise, 0 * noise, 20, h, gamma, temperature)
    assert hot[0, 0] > 1.1 * exact[0, 0]
    estimator = CovarianceFriction(inner, period=1, form=form)
    draws, run = last_draws(target, estimator, ewsg.Underdamped(h, gamma, temperature), 300, 6_000)
    assert run.ok.all()
    assert_covariance(draws, exact)
    assert np.all(run.stats["projected"] == 0)


def test_running_mean_reaches_the_stationary_law(stretched):
    """decay = 1, as in CCAdL: the mean over 500 steps is within a few per cent of the covariance."""
    target, covariance = stretched
    h, gamma, temperature = 0.02, 4.0, 0.3
    noise = covariance / 5
    exact = stationary_covariance(noise, h / (2 * temperature) * noise, 20, h, gamma, temperature)
    estimator = CovarianceFriction(ewsg.Uniform(5), mode="running", decay=1.0)
    draws, run = last_draws(target, estimator, ewsg.Underdamped(h, gamma, temperature), 500, 4_000)
    assert run.ok.all()
    assert_covariance(draws, exact)


def test_ewsg_vr_on_the_papers_gaussian(gaussian, centres):
    """30 data passes, L = 1, b = 1, M = 1, γ = 10: what holds of the supplement's figure, and what does not.

    h = 0.05, as printed: h·Γ has eigenvalues 2.7 and 3.3, beyond Euler–Maruyama's 2 + h²n/2, and all chains diverge.
    """

    def outcome(estimator, h, chains=3_000):
        """(KL, its standard error) with Var ln s = 2/m for each variance s, or how the chains ended."""
        integrator = ewsg.Underdamped(h, 10.0, momentum="zero")
        sampler = ewsg.compose(gaussian, estimator, integrator)
        draws, run = last_draws(gaussian, estimator, integrator, sampler.num_steps(1500), chains)
        assert run.cost.data_passes == 30
        if not run.ok.all():
            return set(run.status)
        ratios = 1 / 50 / np.linalg.eigvalsh(np.cov(draws.T))
        return gaussian_kl(draws, centres), np.sqrt(np.sum((ratios - 1) ** 2) / (2 * chains)) + 5 / (2 * chains)

    plain = ewsg.Exponential(1, 1)
    eigenvalues = np.linalg.eigvalsh(50**2 * np.cov(centres.T, bias=True))
    assert np.all(0.05 * (10 + 0.05 / 2 * eigenvalues) > 2 + 0.05**2 * 50 / 2)
    assert outcome(CovarianceFriction(plain), 0.05, chains=50) <= {"diverged", "nonfinite"}
    # From Alg. 1 and 2 written in NumPy, 10,000 and 40,000 chains; plain EWSG at h = 0.05 has 0.93 (test_gaussian.py).
    for estimator, h, reference in (
        (CovarianceFriction(plain, bound=1.0), 0.05, 0.2448),
        (plain, 0.03, 0.467),
        (CovarianceFriction(plain), 0.03, 0.0508),
        (CovarianceFriction(ewsg.Uniform(1)), 0.03, 0.0027),
    ):
        value, error = outcome(estimator, h)
        assert abs(value - reference) < 4.5 * error + 0.03 * reference, (estimator, value, error)
        assert error < 0.1 * reference or reference < 0.01


def test_configurational_temperature_leaves_the_friction_out(gaussian):
    """On a Gaussian it is n·Var(θ); with the friction counted as a force it would read about 0.7."""
    run = ewsg.sample(
        gaussian,
        CovarianceFriction(ewsg.Uniform(1), passes=1),
        ewsg.Underdamped(step_size=0.02, friction=10.0),
        init=jnp.zeros(2),
        num_chains=2000,
        num_steps=1000,
        discard=300,
        thin=50,
    )
    spread = 50 * run.draws.var((0, 1)).mean()
    assert spread == pytest.approx(1.0, abs=0.08)
    assert run.stats["configurational_temperature"].mean() == pytest.approx(spread, abs=0.06)
