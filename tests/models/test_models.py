"""The regressions: closed forms against automatic differentiation, NumPy and SciPy; extremes; loops."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from regressions import CASES, PRECISION, Case, D, as_numpy, assert_close, prior_force

import ewsg
from ewsg import models
from ewsg.target.likelihood import PerDatum
from ewsg.target.target import _ROWS_PER_BLOCK

SUMS = ("full_force", "log_density")


def along(gradients, direction):
    """Σ over all but the leading axis of gradients · direction."""
    pairs = zip(jax.tree.leaves(gradients), jax.tree.leaves(as_numpy(direction)), strict=True)
    return sum((g * d[None]).reshape(len(g), -1).sum(axis=1) for g, d in pairs)


@jax.jit
def both_forms(model, params, batch, weights, direction):
    """Each batched function of the model: its closed form, and automatic differentiation of its __call__."""
    inputs = {"values": (), "gradient": (weights,), "directional": (direction,), "gradients": ()}

    def evaluate(likelihood):
        found = {name: getattr(likelihood, name)(params, batch, *args) for name, args in inputs.items()}
        return found | {"gradient_changes": likelihood.gradient_changes(params, direction, batch)}

    return evaluate(model), evaluate(PerDatum(model))


def test_closed_forms_agree_with_automatic_differentiation(case, tolerance):
    target, params, direction = case.target(), case.params(1), case.params(2)
    weights = jnp.asarray(np.random.default_rng(3).normal(size=20), jnp.result_type(float))
    closed, generic = both_forms(target.likelihood, params, target.data.arrays, weights, direction)
    assert_close(closed, generic, tolerance)
    assert {leaf.dtype for leaf in jax.tree.leaves(closed)} == {jnp.result_type(float)}


def test_the_target_accepts_the_documented_parameters(case):
    case.target().check(case.params())


@jax.jit
def all_forces(target, params, direction, indices, weights):
    return {
        "force": target.force(params, indices),
        "weighted_force": target.weighted_force(params, indices, weights),
        "forces": target.forces(params, indices),
        "directional": target.directional(params, indices, direction),
        "full_force": target.full_force(params),
        "log_density": target.log_density(params),
    }


def expected_forces(case, n, params, direction, indices, weights):
    """The same in NumPy, from the gradients of the single data."""
    gradients, prior = case.gradients(as_numpy(params), *case.data(n)), prior_force(params)
    each = jax.tree.map(lambda g, p: n * g[indices] + p[None], gradients, prior)
    log_prior = 0.5 * along(jax.tree.map(lambda p: p[None], prior), params).item()
    return {
        "force": jax.tree.map(lambda g: g.mean(axis=0), each),
        "weighted_force": jax.tree.map(lambda g: np.tensordot(weights, g, 1), each),
        "forces": each,
        "directional": along(each, direction),
        "full_force": jax.tree.map(lambda g, p: g.sum(axis=0) + p, gradients, prior),
        "log_density": np.float64(log_prior + case.values(as_numpy(params), *case.data(n)).sum()),
    }


def test_forces_and_densities_are_those_of_numpy_and_scipy(case, tolerance):
    n = 2 * _ROWS_PER_BLOCK + 77  # two whole blocks of rows, and a rest
    indices, weights = np.array([3, n - 1, 3, 0, _ROWS_PER_BLOCK]), np.array([0.5, 0.1, -0.2, 0.3, 0.6])
    given = case.params(1), case.params(2)
    actual = all_forces(case.target(n), *given, jnp.asarray(indices), jnp.asarray(weights))
    expected = expected_forces(case, n, *given, indices, weights)
    for name in expected:
        assert_close(actual[name], expected[name], 10 * tolerance if name in SUMS else tolerance)


def test_every_density_is_that_of_scipy(case, tolerance):
    target, params, ones = case.target(), case.params(), jnp.ones(20)
    closed, _ = both_forms(target.likelihood, params, target.data.arrays, ones, params)
    assert_close(closed["values"], case.values(as_numpy(params), *case.data(20)), tolerance)


@jax.jit
def full_force(target, params):
    return target.full_force(params)


def test_the_linear_posterior_has_its_mode_at_the_known_mean():
    x, y = CASES["linear"].data(50)
    with jax.enable_x64(True):
        target = models.linear(x, y, noise_scale=0.5, prior_scale=2.0)
        mean = np.linalg.solve(x.T @ x / 0.25 + np.eye(D) / 4, x.T @ y / 0.25)
        np.testing.assert_allclose(full_force(target, mean), 0, atol=1e-10)


def extreme(case: Case) -> tuple[ewsg.Target, Any]:
    """Rows with zeros among their entries, and parameters for which |θ·x| reaches 1e4 on both sides."""
    _, responses = case.data(20)
    features = np.zeros((20, D))
    features[:, 0] = np.linspace(-1, 1, 20)
    params = case.params()
    coefficients = params["coefficients"] if isinstance(params, dict) else params
    coefficients = 1e4 * jnp.sign(coefficients)
    target = case.build(features, responses, prior_precision=PRECISION)
    return target, dict(params, coefficients=coefficients) if isinstance(params, dict) else coefficients


def test_no_nan_at_extremes_and_the_forms_still_agree(case, tolerance):
    target, params = extreme(case)
    weights, direction = jnp.ones(20), case.params(2)
    closed, generic = both_forms(target.likelihood, params, target.data.arrays, weights, direction)
    for name, value in closed.items():
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(value)), name
    assert_close(closed, generic, tolerance)


def test_logistic_tails_are_exact(tolerance):
    target = models.logistic([[1.0], [1.0]], [1, 0], prior_precision=0)
    theta = jnp.array([1e4])
    assert_close(target.likelihood.values(theta, target.data.arrays), np.array([0.0, -1e4]), tolerance)
    assert_close(target.likelihood.gradients(theta, target.data.arrays), np.array([[0.0], [-1.0]]), tolerance)


@pytest.mark.parametrize(("dtype", "ceiling"), [("float32", 44.36), ("float64", 354.89)])
def test_poisson_goes_on_by_its_tangent_beyond_the_largest_rate(dtype, ceiling):
    with jax.enable_x64(dtype == "float64"):
        target = models.poisson([[1.0, 0.0]], [2], prior_precision=0)
        below, above = jnp.array([ceiling - 0.5, 1.0]), jnp.array([ceiling + 2.0, 1.0])
        np.testing.assert_allclose(full_force(target, below), [2 - np.exp(ceiling - 0.5), 0], rtol=1e-4)
        np.testing.assert_allclose(full_force(target, above), [2 - np.exp(ceiling), 0], rtol=1e-2)
        np.testing.assert_allclose(target.log_density(above), -3 * np.exp(ceiling), rtol=1e-2)


@pytest.mark.parametrize("log_dispersion", [-12.0, -2.8, -2.7, 0.5, 6.0])
def test_the_dispersion_has_its_digits_from_poisson_to_the_heaviest_tails(log_dispersion, tolerance):
    """Where differences of log Γ and ψ would cancel, and on both sides of the change to a series."""
    features, counts = np.linspace(-3.0, 4.0, 20)[:, None], np.arange(20) ** 2
    target = models.negative_binomial(features, counts)
    params = {"coefficients": jnp.array([1.5]), "log_dispersion": jnp.array(log_dispersion)}
    closed, _ = both_forms(target.likelihood, params, target.data.arrays, jnp.ones(20), params)
    exact = as_numpy(params), np.asarray(target.data.arrays["features"], np.float64), counts
    assert_close(closed["values"], CASES["negative binomial"].values(*exact), 10 * tolerance)
    assert_close(closed["gradients"], CASES["negative binomial"].gradients(*exact), 10 * tolerance)


@jax.jit
def climb(target, params, indices):
    """Three steps uphill, and the slopes on the way."""

    def step(params, index):
        force, slopes = target.force(params, index), target.directional(params, index, params)
        return jax.tree.map(lambda p, f: p + 1e-3 * f, params, force), slopes

    return jax.lax.scan(step, params, indices)


def test_chains_by_vmap_in_a_compiled_loop(case):
    target, chains = case.target(), [jax.tree.map(np.asarray, case.params(seed)) for seed in range(4)]
    indices = np.random.default_rng(0).integers(0, 20, (4, 3, 6))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *chains)
    together = jax.jit(jax.vmap(climb, in_axes=(None, 0, 0)))(target, stacked, indices)
    for chain, params in enumerate(chains):
        own = jax.tree.map(lambda leaf, c=chain: np.asarray(leaf)[c], together)
        assert_close(own, climb(target, params, indices[chain]), 1e-5)


def test_parameters_decide_the_dtype(case):
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), case.params())
        forces = jax.eval_shape(case.target().force, params, jnp.arange(3))
        assert {leaf.dtype for leaf in jax.tree.leaves(forces)} == {jnp.dtype("float32")}
