"""The regressions: closed forms against automatic differentiation, NumPy and SciPy; extremes; bad input."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

import ewsg
from ewsg import models
from ewsg.errors import InputError
from ewsg.target.likelihood import PerDatum
from ewsg.target.target import _ROWS_PER_BLOCK

D, K = 3, 4
PRECISION = 0.7
NOISE_SCALE = 0.6
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
SUMS = ("full_force", "log_density")


@dataclass(frozen=True)
class Case:
    """A model, data for it, and its densities and gradients written down again in NumPy."""

    build: Callable[..., ewsg.Target]
    responses: Callable[[np.random.Generator, np.ndarray], np.ndarray]
    shapes: Any
    values: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]
    gradients: Callable[[Any, np.ndarray, np.ndarray], Any]

    def data(self, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(n, D)).astype(np.float32).astype(np.float64)
        return features, self.responses(rng, features)

    def target(self, n: int = 20) -> ewsg.Target:
        return self.build(*self.data(n), prior_precision=PRECISION)

    def params(self, seed: int = 1, scale: float = 0.5) -> Any:
        rng = np.random.default_rng(seed)
        draws = [scale * rng.normal(size=shape) for shape in jax.tree.leaves(self.shapes, is_leaf=is_shape)]
        draws = [jnp.asarray(draw.astype(np.float32), jnp.result_type(float)) for draw in draws]
        return jax.tree.unflatten(jax.tree.structure(self.shapes, is_leaf=is_shape), draws)


def is_shape(node) -> bool:
    return isinstance(node, tuple)


def outer(slopes, features):
    return slopes[:, None] * features


def logistic_probability(theta, x):
    return 1 / (1 + np.exp(-x @ theta))


def softmax_probabilities(theta, x):
    powers = np.exp(x @ theta)
    return powers / powers.sum(axis=1, keepdims=True)


def unknown_scale_values(params, x, y):
    return scipy.stats.norm.logpdf(y, x @ params["coefficients"], np.exp(params["log_scale"]))


def unknown_scale_gradients(params, x, y):
    residuals, variance = y - x @ params["coefficients"], np.exp(2 * params["log_scale"])
    return {"coefficients": outer(residuals / variance, x), "log_scale": residuals**2 / variance - 1}


def softmax_gradients(theta, x, y):
    return np.einsum("id,ik->idk", x, np.eye(K)[y] - softmax_probabilities(theta, x))


CASES = {
    "logistic": Case(
        models.logistic,
        lambda rng, x: (rng.random(len(x)) < 0.4).astype(np.int64),
        (D,),
        lambda theta, x, y: scipy.stats.bernoulli.logpmf(y, logistic_probability(theta, x)),
        lambda theta, x, y: outer(y - logistic_probability(theta, x), x),
    ),
    "linear": Case(
        lambda x, y, **prior: models.linear(x, y, noise_scale=NOISE_SCALE, **prior),
        lambda rng, x: (x @ np.arange(D) + rng.normal(size=len(x))).astype(np.float32).astype(np.float64),
        (D,),
        lambda theta, x, y: scipy.stats.norm.logpdf(y, x @ theta, NOISE_SCALE),
        lambda theta, x, y: outer((y - x @ theta) / NOISE_SCALE**2, x),
    ),
    "linear, unknown scale": Case(
        models.linear,
        lambda rng, x: (x @ np.arange(D) + rng.normal(size=len(x))).astype(np.float32).astype(np.float64),
        {"coefficients": (D,), "log_scale": ()},
        unknown_scale_values,
        unknown_scale_gradients,
    ),
    "poisson": Case(
        models.poisson,
        lambda rng, x: rng.poisson(3.0, len(x)),
        (D,),
        lambda theta, x, y: scipy.stats.poisson.logpmf(y, np.exp(x @ theta)),
        lambda theta, x, y: outer(y - np.exp(x @ theta), x),
    ),
    "softmax": Case(
        lambda x, y, **prior: models.softmax(x, y, num_classes=K, **prior),
        lambda rng, x: rng.integers(0, K, len(x)),
        (D, K),
        lambda theta, x, y: np.log(softmax_probabilities(theta, x))[np.arange(len(x)), y],
        softmax_gradients,
    ),
}


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return CASES[request.param]


@pytest.fixture(params=TOLERANCE)
def tolerance(request):
    """The relative tolerance of a dtype, which is in force during the test."""
    with jax.enable_x64(request.param == "float64"):
        yield TOLERANCE[request.param]


def assert_close(actual, expected, tolerance):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(e)
        scale = np.max(np.abs(e), initial=1e-3)
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance * scale)


def as_numpy(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def prior_force(params):
    """−λθ; log_scale, which is the only scalar, has a flat prior."""
    return jax.tree.map(lambda leaf: -PRECISION * leaf * (leaf.ndim > 0), as_numpy(params))


def along(gradients, direction):
    """Σ over all but the leading axis of gradients · direction."""
    pairs = zip(jax.tree.leaves(gradients), jax.tree.leaves(as_numpy(direction)), strict=True)
    return sum((g * d[None]).reshape(len(g), -1).sum(axis=1) for g, d in pairs)


# --- closed forms against automatic differentiation ---------------------------------------------------------


@jax.jit
def both_forms(model, params, batch, weights, direction):
    """Each batched function of the model: its closed form, and automatic differentiation of its __call__."""
    inputs = {"values": (), "gradient": (weights,), "directional": (direction,), "gradients": ()}

    def evaluate(likelihood):
        return {name: getattr(likelihood, name)(params, batch, *args) for name, args in inputs.items()}

    return evaluate(model), evaluate(PerDatum(model))


def test_closed_forms_agree_with_automatic_differentiation(case, tolerance):
    target, params, direction = case.target(), case.params(1), case.params(2)
    weights = jnp.asarray(np.random.default_rng(3).normal(size=20), jnp.result_type(float))
    closed, generic = both_forms(target.likelihood, params, target.data.arrays, weights, direction)
    assert_close(closed, generic, tolerance)
    assert {leaf.dtype for leaf in jax.tree.leaves(closed)} == {jnp.result_type(float)}


def test_the_target_accepts_the_documented_parameters(case):
    case.target().check(case.params())


# --- against NumPy and SciPy --------------------------------------------------------------------------------


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


# --- priors -------------------------------------------------------------------------------------------------


def test_gaussian_prior_is_the_normal_density_up_to_its_constant(tolerance):
    params = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}
    prior = models.GaussianPrior(4.0)
    density = scipy.stats.norm(0, 0.5).logpdf(np.array([1.0, -2.0, 0.5, 0.0]))
    assert_close(prior(params), density[:3].sum() - 3 * density[3], tolerance)
    force = jax.jit(jax.grad(prior))(params)
    assert_close(force, {"a": np.array([-4.0, 8.0]), "b": np.array(-2.0)}, tolerance)


def test_the_prior_is_on_the_coefficients_alone(case):
    params = case.params()
    assert_close(jax.jit(jax.grad(case.target().log_prior))(params), prior_force(params), 1e-6)


def test_scale_precision_and_default_describe_the_prior():
    x, y = CASES["logistic"].data(5)
    assert models.logistic(x, y, prior_scale=0.5).log_prior.precision == pytest.approx(4.0)
    assert models.logistic(x, y, prior_precision=10).log_prior.precision == 10
    assert models.logistic(x, y).log_prior.precision == pytest.approx(1 / 2.5**2)
    assert models.flat(jnp.ones(2)) == models.logistic(x, y, prior_precision=0).log_prior(jnp.ones(2)) == 0


def test_the_prior_is_a_leaf_so_a_sweep_is_a_vmap():
    x, y = CASES["logistic"].data(20)
    theta = CASES["logistic"].params()
    precisions = jnp.array([0.1, 1.0, 10.0])
    swept = jax.vmap(lambda p: models.logistic(x, y, prior_precision=p).prior_force(theta))(precisions)
    assert_close(swept, -np.outer(precisions, theta), 1e-6)


# --- extremes -----------------------------------------------------------------------------------------------


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


# --- vmap, loops, dtypes ------------------------------------------------------------------------------------


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


def test_whole_number_features_become_real():
    target = models.logistic(np.array([[1, 2], [3, 4]]), [True, False])
    np.testing.assert_array_equal(target.data.arrays, np.array([[1, 2], [-3, -4]], np.float32))
    assert target.data.arrays.dtype == jnp.float32


def test_float32_features_stay_so_in_x64():
    with jax.enable_x64(True):
        target = models.linear(np.ones((2, 1), np.float32), [1.0, 2.0])
        assert {leaf.dtype for leaf in jax.tree.leaves(target.data.arrays)} == {np.dtype("float32")}


def test_with_intercept_prepends_ones():
    np.testing.assert_array_equal(models.with_intercept([[2.0], [3.0]]), [[1.0, 2.0], [1.0, 3.0]])


def test_softmax_counts_the_classes():
    assert models.softmax([[1.0], [2.0]], [0, 4]).likelihood.num_classes == 5
    assert models.softmax([[1.0], [2.0]], [0, 1], num_classes=3).likelihood.num_classes == 3
    assert models.softmax([[1.0], [2.0]], [False, True]).likelihood.num_classes == 2


# --- bad input, in one sentence -----------------------------------------------------------------------------

ROWS = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: models.logistic(ROWS, [0, 2]), "logistic: labels must be 0 or 1, not 2 (row 1)"),
        (lambda: models.logistic(ROWS, [-1.0, 1.0]), "logistic: labels must be 0 or 1, not -1.0 (row 0)"),
        (lambda: models.logistic(ROWS, [0, np.nan]), "logistic: labels must be 0 or 1, not nan (row 1)"),
        (lambda: models.poisson(ROWS, [1, -1]), "counts must be whole numbers of at least 0, not -1 (row 1)"),
        (
            lambda: models.poisson(ROWS, [0.5, 1]),
            "counts must be whole numbers of at least 0, not 0.5 (row 0)",
        ),
        (lambda: models.poisson(ROWS, [np.inf, 1]), "counts must be whole numbers of at least 0, not inf"),
        (
            lambda: models.softmax(ROWS, [0, -1]),
            "softmax: labels must be whole numbers of at least 0, not -1",
        ),
        (
            lambda: models.softmax(ROWS, [0, 1.5]),
            "softmax: labels must be whole numbers of at least 0, not 1.5",
        ),
        (
            lambda: models.softmax(ROWS, [0, 3], num_classes=3),
            "labels must be below num_classes = 3, not 3 (row 1)",
        ),
        (lambda: models.softmax(ROWS, [0, 0]), "num_classes must be a whole number of at least 2, not 1"),
        (lambda: models.softmax(ROWS, [0, 1], num_classes=2.0), "num_classes must be a whole number"),
        (lambda: models.linear([1.0, 2.0], [1.0, 2.0]), "linear: features must be a matrix"),
        (lambda: models.linear(np.zeros((0, 2)), []), "features must be a matrix"),
        (lambda: models.linear(np.zeros((2, 0)), [1.0, 2.0]), "features must be a matrix"),
        (lambda: models.with_intercept([1.0]), "with_intercept: features must be a matrix"),
        (
            lambda: models.linear([[1.0], [2.0, 3.0]], [1.0, 2.0]),
            "linear: features must be an array of numbers",
        ),
        (lambda: models.linear([["a"], ["b"]], [1.0, 2.0]), "features must be numbers, not <U1: encode categories"),
        (lambda: models.linear(ROWS, [1.0]), "linear: features have 2 rows but there are 1 responses"),
        (lambda: models.poisson(ROWS, [1, 2, 3]), "poisson: features have 2 rows but there are 3 counts"),
        (
            lambda: models.logistic(ROWS, [[0], [1]]),
            "labels must have one axis, one entry per datum, not shape (2, 1)",
        ),
        (
            lambda: models.linear([[np.nan], [2.0]], [1.0, 2.0]),
            "1 NaN or infinite entries in linear: features (first in row 0)",
        ),
        (
            lambda: models.linear([[2.0], [1e300]], [1.0, 2.0]),
            "numbers in linear: features (first in row 1) do not fit float32",
        ),
        (lambda: models.linear(ROWS, [1.0, 1e300]), "numbers in linear: responses (first in row 1) do not fit float32"),
        (lambda: models.linear(ROWS, [1.0, 2.0], noise_scale=0), "linear: noise_scale must be positive"),
        (lambda: models.Linear(-1.0), "Linear: noise_scale must be positive"),
        (lambda: models.logistic(ROWS, [0, 1], prior_scale=0.0), "logistic: prior_scale must be positive"),
        (lambda: models.softmax(ROWS, [0, 1], prior_scale=-1.0), "softmax: prior_scale must be positive"),
        (lambda: models.poisson(ROWS, [0, 1], prior_scale="a"), "poisson: prior_scale must be a number"),
        (
            lambda: models.poisson(ROWS, [0, 1], prior_scale=1e-200),
            "precision must be zero or positive and finite",
        ),
        (lambda: models.linear(ROWS, [0, 1], prior_precision=-1), "prior_precision must be zero or positive"),
        (lambda: models.linear(ROWS, [0, 1], prior_scale=np.ones(2)), "prior_scale must be one number"),
        (
            lambda: models.linear(ROWS, [0, 1], prior_scale=1, prior_precision=1),
            "prior_scale or prior_precision, not",
        ),
        (lambda: models.GaussianPrior(-1.0), "GaussianPrior: precision must be zero or positive"),
        (lambda: models.Softmax(1), "Softmax: num_classes must be a whole number of at least 2"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, sentence):
    with pytest.raises(InputError) as caught:
        build()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_of_another_shape_are_refused():
    target = models.softmax(ROWS, [0, 2])
    with pytest.raises(InputError, match=r"parameters need shape \(d, 3\), not \(2, 2\)"):
        target.check(jnp.zeros((2, 2)))
    with pytest.raises(InputError, match="must return one real scalar"):
        models.logistic(ROWS, [0, 1]).check(jnp.zeros((2, 1)))
