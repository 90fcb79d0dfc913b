"""Every regression with data for it, and its densities and gradients written down again in NumPy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats

import ewsg
from ewsg import models

D, K = 3, 4
PRECISION = 0.7
NOISE_SCALE = 0.6
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}


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


def negative_binomial_values(params, x, y):
    mean, r = np.exp(x @ params["coefficients"]), np.exp(-params["log_dispersion"])
    return scipy.stats.nbinom.logpmf(y, r, r / (r + mean))


def negative_binomial_gradients(params, x, y):
    mean, r = np.exp(x @ params["coefficients"]), np.exp(-params["log_dispersion"])
    rise = np.array([np.sum(1 / (r + np.arange(count))) for count in y]) - np.log1p(mean / r)  # ψ(y + r) − ψ(r) − ...
    return {
        "coefficients": outer(r * (y - mean) / (r + mean), x),
        "log_dispersion": r * ((y - mean) / (r + mean) - rise),
    }


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
    "negative binomial": Case(
        models.negative_binomial,
        lambda rng, x: rng.negative_binomial(2, 0.4, len(x)),
        {"coefficients": (D,), "log_dispersion": ()},
        negative_binomial_values,
        negative_binomial_gradients,
    ),
    "softmax": Case(
        lambda x, y, **prior: models.softmax(x, y, num_classes=K, **prior),
        lambda rng, x: rng.integers(0, K, len(x)),
        (D, K),
        lambda theta, x, y: np.log(softmax_probabilities(theta, x))[np.arange(len(x)), y],
        softmax_gradients,
    ),
}


def assert_close(actual, expected, tolerance):
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(e)
        scale = np.max(np.abs(e), initial=1e-3)
        np.testing.assert_allclose(a, e, rtol=tolerance, atol=tolerance * scale)


def as_numpy(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def prior_force(params):
    """−λθ; log_scale has a flat prior, log_dispersion N(0, 2.5²)."""
    precisions = {"log_scale": 0.0, "log_dispersion": 1 / 2.5**2}
    params = as_numpy(params)
    if not isinstance(params, dict):
        return -PRECISION * params
    return {name: -precisions.get(name, PRECISION) * leaf for name, leaf in params.items()}
