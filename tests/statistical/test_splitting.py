"""BAOAB and UBU: exact Gaussian laws of the discretised chains, weak order 2."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from chains import CHAINS, stationary

import ewsg
from ewsg.integrators.baoab import BAOAB
from ewsg.integrators.ubu import UBU


@pytest.fixture(scope="module")
def line():
    data = np.array([-1.0, 0.5, 2.0, -0.3, 0.8, -2.0], np.float32)
    return ewsg.Target(lambda t, x: -0.5 * (t[0] - x) ** 2, None, data), data


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("estimator", [ewsg.Full(), ewsg.Uniform(2)], ids=str)
@pytest.mark.parametrize("kind", [BAOAB, UBU])
@pytest.mark.parametrize(("h", "gamma", "steps"), [(0.3, 1.5, 100), (0.1, 8.0, 300), (0.05, 0.4, 800)])
def test_stationary_law(line, kind, estimator, temperature, h, gamma, steps):
    """γh/2 on both sides of where UBU's noise is computed by its series."""
    target, data = line
    n = len(data)
    noise = 0.0 if isinstance(estimator, ewsg.Full) else n**2 * data.astype(np.float64).var() / 2
    exact = stationary(kind, n, h, gamma, temperature, noise)
    run = ewsg.sample(
        target,
        estimator,
        kind(step_size=h, friction=gamma, temperature=temperature),
        init=jnp.asarray([data.mean()]),
        num_chains=CHAINS,
        num_steps=steps,
        discard=0,
        thin=steps,
    )
    found = np.asarray(run.checkpoint.carry.chains.state.phase.momentum, np.float64)
    tolerance = 4.5 * np.sqrt(2 / CHAINS)
    assert run.draws[:, -1].var() == pytest.approx(exact[0, 0], rel=tolerance)
    assert found.var() == pytest.approx(exact[1, 1], rel=tolerance)


def test_baoab_has_the_exact_gaussian_marginal():
    for h in (0.1, 0.5, 0.7):
        assert stationary(BAOAB, 6.0, h, 1.5, 0.3)[0, 0] == pytest.approx(0.3 / 6, rel=1e-10)


def test_ubu_is_second_order_on_a_gaussian():
    errors = [abs(stationary(UBU, 6.0, h, 1.5, 1.0)[0, 0] * 6 - 1) for h in (0.2, 0.1, 0.05)]
    slopes = np.diff(np.log(errors)) / np.log(0.5)
    assert np.all(np.abs(slopes - 2) < 0.1)


def test_ubu_is_second_order_beyond_gaussians():
    """E θ² on V = 2 log cosh 2θ against quadrature: the error falls by 4 when h is halved."""
    target = ewsg.Target(lambda t, x: -2 * jnp.log(jnp.cosh(2 * t[0])) + 0 * x, None, np.zeros(1, np.float32))
    weight = scipy.integrate.quad(lambda t: np.cosh(2 * t) ** -2, -9, 9)[0]
    exact = scipy.integrate.quad(lambda t: t**2 * np.cosh(2 * t) ** -2, -9, 9)[0] / weight

    def error(h):
        run = ewsg.sample(
            target,
            ewsg.Full(),
            UBU(step_size=h, friction=1.0),
            init=lambda key: jax.random.normal(key, (1,)),
            num_chains=20_000,
            num_steps=int(160 / h),
            discard=int(10 / h),
            thin=1,
            collect=ewsg.collect.Moments(),
        )
        squares = run.collected.variance + run.collected.mean**2
        return squares.mean() / exact - 1, squares.std() / exact / np.sqrt(20_000)

    (coarse, noise), (fine, fine_noise) = error(0.25), error(0.125)
    ratio, uncertainty = coarse / fine, abs(coarse / fine) * np.hypot(noise / coarse, fine_noise / fine)
    assert abs(coarse) > 20 * noise
    assert abs(ratio - 4) < 3 * uncertainty


def test_baoab_is_second_order_beyond_gaussians():
    """E θ² on V = θ⁴/4 + cos 2θ against quadrature, at little friction: elsewhere BAOAB's error is too small to see."""
    target = ewsg.Target(lambda t, x: -(t**4 / 4 + jnp.cos(2 * t)) * x, None, np.ones(1, np.float32))

    def weight(t):
        return np.exp(-(t**4) / 4 - np.cos(2 * t))

    exact = scipy.integrate.quad(lambda t: t**2 * weight(t), -6, 6)[0] / scipy.integrate.quad(weight, -6, 6)[0]

    def error(h):
        run = ewsg.sample(
            target,
            ewsg.Full(),
            BAOAB(step_size=h, friction=0.3),
            init=jnp.array(0.0),
            num_chains=CHAINS,
            num_steps=int(1600 / h),
            discard=int(60 / h),
            thin=4,
            collect=ewsg.collect.Moments(),
        )
        squares = run.collected.variance + run.collected.mean**2
        return squares.mean() - exact, squares.std() / np.sqrt(CHAINS)

    (coarse, noise), (fine, fine_noise) = error(0.2), error(0.14)
    slope = np.log(coarse / fine) / np.log(0.2 / 0.14)
    uncertainty = np.hypot(noise / coarse, fine_noise / fine) / np.log(0.2 / 0.14)
    assert uncertainty < 0.25
    assert abs(slope - 2) < 3 * uncertainty


def test_mean_units(line):
    target, data = line
    root = np.sqrt(len(data))
    options = {"init": jnp.zeros(1), "num_steps": 20, "discard": 0, "thin": 1}
    for kind in (BAOAB, UBU):
        one = ewsg.sample(target, ewsg.Uniform(2), kind(0.1, 2.0, 0.5), **options)
        other = ewsg.sample(target, ewsg.Uniform(2), kind(0.1 * root, 2.0 / root, 0.5, units="mean"), **options)
        np.testing.assert_allclose(one.draws, other.draws, rtol=1e-3, atol=1e-5)
