"""`ewsg.find_mode` and `curvature`, against modes and Hessians in closed form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError
from ewsg.target.mode import curvature
from ewsg.target.whitening import whitened

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(200, 3)).astype(np.float32) * np.array([1.0, 5.0, 0.2], np.float32)
RESPONSES = (FEATURES @ np.array([1.0, -0.5, 2.0]) + RNG.normal(size=200)).astype(np.float32)
METHODS = ("lbfgs", "newton")


@pytest.fixture(scope="module")
def linear():
    """A regression, its mode (XᵀX + λI)⁻¹Xᵀy and its Hessian, σ = 1."""
    rows = FEATURES.astype(np.float64)
    hessian = rows.T @ rows + 2 * np.eye(3)
    target = ewsg.models.linear(FEATURES, RESPONSES, noise_scale=1.0, prior_precision=2.0)
    return target, np.linalg.solve(hessian, rows.T @ RESPONSES), hessian


@pytest.fixture(scope="module")
def logistic():
    return ewsg.models.logistic(FEATURES, RESPONSES > 0)


@pytest.mark.parametrize("method", METHODS)
def test_mode_of_linear_regression(linear, method):
    target, mode, _ = linear
    found = ewsg.find_mode(target, jnp.zeros(3), method=method, tolerance=1e-6)
    np.testing.assert_allclose(found.position, mode, rtol=1e-4)
    assert found.converged
    assert found.log_density == pytest.approx(float(target.log_density(found.position)), rel=1e-6)
    assert found.gradient_norm == pytest.approx(np.linalg.norm(target.full_force(found.position)), rel=0.1, abs=1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_gradient_vanishes_at_the_mode_of_logistic_regression(logistic, method):
    found = ewsg.find_mode(logistic, jnp.zeros(3), method=method)
    start = np.linalg.norm(logistic.full_force(jnp.zeros(3)))
    assert found.converged
    assert np.linalg.norm(logistic.full_force(found.position)) < 2e-4 * start
    assert found.passes < 50


def test_cost_is_passes_over_the_data(logistic):
    few, many = (ewsg.find_mode(logistic, jnp.zeros(3), method=method) for method in METHODS)
    assert few.cost.datum_gradients == 200 * few.passes
    assert many.cost.datum_gradients == 200 * (3 + 1) * many.passes


@pytest.mark.parametrize("method", METHODS)
def test_a_search_cut_short_says_so(logistic, method):
    found = ewsg.find_mode(logistic, jnp.zeros(3), method=method, max_passes=2, tolerance=1e-6)
    assert not found.converged
    assert found.log_density > float(logistic.log_density(jnp.zeros(3)))


@pytest.mark.parametrize("method", METHODS)
def test_a_density_without_a_mode_is_not_converged(method):
    """An exponential density rises for ever."""
    target = ewsg.Target(lambda theta, x: theta * x, None, jnp.ones(4))
    assert not ewsg.find_mode(target, jnp.array(0.0), method=method, max_passes=20).converged


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_starts_at_the_mode_has_converged(linear, method):
    target, mode, _ = linear
    found = ewsg.find_mode(target, jnp.asarray(mode, jnp.float32), method=method)
    assert found.converged
    np.testing.assert_allclose(found.position, mode, rtol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_structure_and_dtypes_of_init_are_kept(method):
    target = ewsg.models.linear(FEATURES, RESPONSES)
    init = {"coefficients": np.zeros(3), "log_scale": 0.0}
    found = ewsg.find_mode(target, init, method=method)
    assert found.converged
    assert jax.tree.structure(found.position) == jax.tree.structure(init)
    assert {leaf.dtype for leaf in jax.tree.leaves(found.position)} == {jnp.result_type(float)}
    residuals = RESPONSES - FEATURES @ np.asarray(found.position["coefficients"])
    np.testing.assert_allclose(found.position["log_scale"], 0.5 * np.log(np.mean(residuals**2)), atol=1e-3)


@pytest.mark.parametrize("far", [1e2, 1e4])
def test_a_far_start_is_not_the_end(far):
    """Seen before: "converged", 504 posterior standard deviations from the mode, as the gradient had become small."""
    rows = np.random.default_rng(1).normal(size=(20_000, 5))
    target = ewsg.models.linear(rows, rows @ np.arange(5) / 10, noise_scale=1.0, prior_precision=1.0)
    found = ewsg.find_mode(target, jnp.full(5, far))
    exact = np.linalg.solve(rows.T @ rows + np.eye(5), rows.T @ (rows @ np.arange(5) / 10))
    assert found.converged
    assert np.max(np.abs(np.asarray(found.position) - exact)) * np.sqrt(20_000) < 0.3


def test_a_saddle_is_not_a_mode():
    """ℓ = −½(x − p₀p₁)², which at 0 has no slope and curves both ways."""
    target = ewsg.Target(lambda p, x: -0.5 * (x - p[0] * p[1]) ** 2, None, jnp.full(50, 3.0))
    assert not ewsg.find_mode(target, jnp.zeros(2), method="newton").converged
    with pytest.raises(InputError, match="not convex"):
        whitened(target, jnp.zeros(2))


def test_curvature_is_the_hessian(linear, logistic):
    target, mode, hessian = linear
    np.testing.assert_allclose(curvature(target, jnp.asarray(mode, jnp.float32)), hessian, rtol=1e-4, atol=1e-3)
    theta = jnp.array([0.3, -0.1, 0.2])
    found = curvature(logistic, theta)
    np.testing.assert_allclose(found, -jax.hessian(logistic.log_density)(theta), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.float32
@pytest.mark.parametrize(
    ("init", "options", "words"),
    [
        (jnp.array([0, 1, 2]), {}, "init has dtype int32: parameters must be floating-point"),
        (jnp.array([0.0, jnp.nan, 0.0]), {}, "init has NaN"),
        ("zero", {}, "parameters must be floating-point"),
        (jnp.zeros(2), {}, "log_likelihood.* failed"),
        (jnp.full(3, 1e30), {}, "the log density is not finite at init: start the search elsewhere"),
        (jnp.full(3, 1e30), {"method": "newton"}, "the log density is not finite at init"),
        (jnp.zeros(3), {"method": "bfgs"}, "bfgs"),
        (jnp.zeros(3), {"max_passes": 0}, "max_passes must be a whole number of at least 1"),
        (jnp.zeros(3), {"tolerance": 0.0}, "tolerance must be"),
    ],
)
def test_bad_input_is_one_sentence(linear, init, options, words):
    with pytest.raises(InputError, match=words):
        ewsg.find_mode(linear[0], init, **options)


def test_swapped_arguments_are_one_sentence(linear):
    with pytest.raises(InputError, match=r"find_mode\(target, init\) takes an ewsg.Target first, not Array"):
        ewsg.find_mode(jnp.zeros(3), linear[0])
