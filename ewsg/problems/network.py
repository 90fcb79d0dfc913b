"""A small neural network, compared by its predictions: its weights have no unique posterior mean."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import datasets
from .._core import pytree
from ..target.target import Target
from .base import Problem

_HIDDEN, _NOISE = 5, 0.5


def predict(params: dict[str, Array], x: Float[Array, " d"]) -> Float[Array, ""]:
    """v·tanh(Wx + b) + c."""
    return params["v"] @ jnp.tanh(params["w"] @ x + params["b"]) + params["c"]


def log_likelihood(params: dict[str, Array], datum: tuple[Array, Array]) -> Float[Array, ""]:
    """log N(y; f(x), 0.5²), up to a constant."""
    x, y = datum
    return -0.5 * jnp.square((y - predict(params, x)) / _NOISE)


def log_prior(params: dict[str, Array]) -> Float[Array, ""]:
    """Every weight N(0, 1)."""
    return -0.5 * pytree.dot(params, params)


def network() -> Problem:
    """Resistance of 308 yachts from 6 measurements, 5 hidden units, 41 weights; seen through 12 predictions."""
    table = datasets.load("yacht")
    x = datasets.standardize(table.features.astype(np.float32))[0]
    y = datasets.standardize(np.log1p(table.labels)[:, None].astype(np.float32))[0][:, 0]
    shown = jnp.asarray(x[:: len(x) // 12][:12])
    shapes = {"w": (_HIDDEN, x.shape[1]), "b": (_HIDDEN,), "v": (_HIDDEN,), "c": ()}
    rng = np.random.default_rng(1)
    init = {name: jnp.asarray(0.5 * rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    return Problem(
        title="neural network, n = 308, d = 41",
        target=Target(log_likelihood, log_prior, (x, y)),
        init=init,
        step_size=0.006,
        friction=30.0,
        data_per_step=8,
        observe=lambda params: jax.vmap(predict, in_axes=(None, 0))(params, shown),
        has_mean=False,
        num_draws=2000,
    )
