"""Lattice and Barker steps: their one-step laws by enumeration, their stationary laws by linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chains import assert_covariance, last_draws
from scipy.stats import binom, norm

import ewsg
from ewsg import _random
from ewsg.errors import InputError
from ewsg.interface import Cost, EstimateInfo

COLD = 0.3
GRID = 40


def changes(move, force, monkeypatch, **patches):
    """What one step does to an array of coordinates at 0 under this force, with random numbers of our own."""
    for name, numbers in patches.items():
        monkeypatch.setattr(_random, name, lambda key, tree, numbers=numbers: jnp.asarray(numbers))
    start = jnp.zeros(force.shape)
    answer = (jnp.asarray(force), (), EstimateInfo(None, Cost(0), {}))
    phase = move.init(jax.random.key(0), start)
    return np.asarray(move.step(jax.random.key(1), phase, jnp.int32(0), lambda *_: answer, ())[0].position)


@pytest.mark.parametrize("temperature", [1.0, COLD])
def test_a_lattice_step_has_the_mean_of_sgld_and_the_mean_square_of_its_noise(monkeypatch, temperature):
    """Enumerated over both coordinates' uniforms; the product of two coordinates has the mean h² f₁ f₂."""
    h = 0.02
    delta = np.sqrt(2 * h * temperature)
    force = delta / h * np.array([0.2, -0.45])  # a step up has the probability (1 + h·force/δ)/2 = 0.6 and 0.275
    u = (np.arange(GRID) + 0.5) / GRID
    drawn = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2).astype(np.float32)
    forces = np.broadcast_to(force, drawn.shape).astype(np.float32)
    found = changes(ewsg.Lattice(h, temperature), forces, monkeypatch, uniform_like=drawn)
    np.testing.assert_allclose(np.abs(found), delta, rtol=1e-6)
    np.testing.assert_allclose(found.mean(0), h * force, rtol=1e-5)
    assert np.mean(found[:, 0] * found[:, 1]) == pytest.approx(h**2 * force[0] * force[1], rel=1e-5)


def test_the_sign_is_certain_where_a_lattice_force_is_clipped(monkeypatch):
    u = np.array([0.0, 1 - 2**-24, 0.0, 1 - 2**-24], np.float32)
    force = np.array([1e9, 1e9, -1e9, -1e9], np.float32)
    found = changes(ewsg.Lattice(0.02), force, monkeypatch, uniform_like=u)
    np.testing.assert_allclose(found, 0.2 * np.sign(force), rtol=1e-6)


@pytest.mark.parametrize("temperature", [1.0, COLD])
def test_a_lattice_gaussian_is_ehrenfests_urn(temperature):
    """V = λθ²/2 with N = 2/(hλ) balls: binomial on the lattice, of variance T/λ exactly; minibatches change nothing."""
    balls, curvature = 16, 3.0
    h = 2 / (balls * curvature)
    move = ewsg.Lattice(h, temperature)
    delta = np.sqrt(2 * h * temperature)
    place = (np.arange(balls + 1) - balls / 2) * delta
    noise = np.array([-0.5, 0.1, 0.4]) * delta  # of three minibatches; small enough that only the ends are clipped
    forces = jnp.asarray(-curvature * (place[:, None] + noise), jnp.float32)
    up = np.asarray(move.upward(jnp.full_like(forces, delta), forces, delta))[1:-1].mean(1)
    np.testing.assert_allclose(up, 1 - np.arange(1, balls) / balls, atol=1e-6)
    law = binom.pmf(np.arange(balls + 1), balls, 0.5)
    np.testing.assert_allclose(law[1:-2] * up[:-1], law[2:-1] * (1 - up[1:]), rtol=1e-5)  # in detailed balance
    assert law @ place**2 == pytest.approx(temperature / curvature)


def sizes_of(move, monkeypatch, nodes):
    """z for these values of ξ."""
    scale = move.scales(jnp.int32(0)).noise_scale
    monkeypatch.setattr(_random, "normal_like", lambda key, tree: jnp.asarray(nodes, jnp.float32))
    return np.asarray(move.sizes(jax.random.key(0), jnp.zeros(len(nodes)), scale), np.float64)


@pytest.mark.parametrize("temperature", [1.0, COLD])
def test_a_barker_step_is_skew_symmetric_with_the_drift_of_sgld(monkeypatch, temperature):
    """p(z)/p(−z) = exp(z·force/T), hence reversible for a constant force; E Δ = h·force + O(h²), E Δ² = 2hT."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    weights, force, errors = weights / weights.sum(), 1.7, []
    for h in (0.02, 0.01):
        move = ewsg.Barker(h, temperature)
        z = sizes_of(move, monkeypatch, nodes)
        up = np.asarray(move.upward(jnp.asarray(z), jnp.full(20, force), 1.0), np.float64)
        down = np.asarray(move.upward(jnp.asarray(-z), jnp.full(20, force), 1.0), np.float64)
        np.testing.assert_allclose(np.log(up / down), z * force / temperature, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(up + down, 1, rtol=1e-6)
        assert weights @ z**2 == pytest.approx(2 * h * temperature, rel=1e-5)
        errors.append(weights @ (z * (2 * up - 1)) / (h * force) - 1)
    assert errors[1] == pytest.approx(errors[0] / 2, rel=0.05)
    assert -0.1 < errors[0] < -1e-3


def test_a_barker_step_goes_up_with_the_probability_that_it_says(monkeypatch):
    h, force, count = 0.02, 4.0, 1000
    move = ewsg.Barker(h, COLD, spread=0.0)
    u = ((np.arange(count) + 0.5) / count).astype(np.float32)
    found = changes(move, np.full(count, force, np.float32), monkeypatch, uniform_like=u)
    delta = np.sqrt(2 * h * COLD)
    np.testing.assert_allclose(np.abs(found), delta, rtol=1e-6)
    assert np.mean(found > 0) == pytest.approx(1 / (1 + np.exp(-delta * force / COLD)), abs=1 / count)


@pytest.mark.parametrize("move", [ewsg.Lattice(0.02), ewsg.Barker(0.02)], ids=["Lattice", "Barker"])
def test_steps_are_bounded_and_a_force_that_is_no_number_shows(monkeypatch, move):
    force = np.array([np.inf, -np.inf, np.nan], np.float32)
    found = changes(move, force, monkeypatch)
    assert np.sign(found[:2]).tolist() == [1, -1]
    assert np.abs(found[:2]).max() < 0.4
    assert np.isnan(found[2])


CENTRES = np.array([-0.9, 0.2, 0.7])


def barker_law(h, temperature, points=801, reach=7.0):
    """Mean and variance of the stationary law for one of three data per step, on a grid."""
    scale, spread = np.sqrt(2 * h * temperature), 0.1
    sd = np.sqrt(temperature / 3)
    x = np.linspace(-reach * sd, reach * sd, points)
    w = x[None, :] - x[:, None]
    unit = scale / np.sqrt(1 + spread**2)
    size = norm.pdf(w, unit, spread * unit) + norm.pdf(w, -unit, spread * unit)
    forces = -3 * (x[:, None] - CENTRES)  # n times that of one datum
    up = np.mean(1 / (1 + np.exp(-w[None] * forces.T[:, :, None] / temperature)), axis=0)
    kernel = size * up
    kernel /= kernel.sum(1, keepdims=True)
    law = np.ones(points) / points
    for _ in range(12):  # 2^12 steps
        kernel = kernel @ kernel
    law = law @ kernel
    return law @ x, law @ x**2 - (law @ x) ** 2


@pytest.mark.parametrize("temperature", [1.0, COLD])
def test_barkers_stationary_law_with_minibatches(temperature):
    """Against quadrature; the weakened drift makes it wider than the posterior, nearly as much as SGLD's heat."""
    h = 0.05
    target = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, CENTRES.astype(np.float32)[:, None])
    draws, _ = last_draws(target, ewsg.Uniform(1), ewsg.Barker(h, temperature), 100, init=jnp.zeros(1))
    mean, variance = barker_law(h, temperature)
    assert draws.mean() == pytest.approx(mean, abs=4.5 * np.sqrt(variance / len(draws)))
    assert_covariance(draws, np.array([[variance]]))
    heated = (2 * h * temperature + h**2 * 9 * np.var(CENTRES)) / (1 - (1 - 3 * h) ** 2)
    assert 0.95 * heated < variance < heated


@pytest.mark.parametrize("temperature", [1.0, COLD])
def test_the_lattices_stationary_law_with_minibatches(temperature):
    """S_ii = T/n exactly; S_ij = (1 − hn)² S_ij + h² Cov(force)_ij."""
    h, data = 0.01, np.array([[1.0, 0.9], [-0.8, -1.0], [0.3, 0.6], [-0.5, -0.5]], np.float32)
    n = len(data)
    target = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, data)
    draws, _ = last_draws(target, ewsg.Uniform(1, replace=True), ewsg.Lattice(h, temperature), 300)
    noise = n**2 * np.cov(data.T, bias=True)
    exact = h**2 * noise / (1 - (1 - h * n) ** 2)
    np.fill_diagonal(exact, temperature / n)
    assert_covariance(draws, exact)
    assert exact[0, 1] > 0.01


def test_an_estimator_that_reads_the_noise_is_refused(gaussian):
    for estimator in (ewsg.Paired(2), ewsg.SVRG(ewsg.Paired(2), 5), ewsg.Exponential(1, x="noise")):
        with pytest.raises(InputError, match="Lattice adds none: use Overdamped, or an estimator such as Uniform"):
            ewsg.compose(gaussian, estimator, ewsg.Lattice(0.001))
    assert not ewsg.Exponential(1, x="zero").reads_noise()
    with pytest.raises(InputError, match="spread must be"):
        ewsg.Barker(0.1, spread=-1.0)
