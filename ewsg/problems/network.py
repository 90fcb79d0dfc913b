"""A small neural network, compared by its predictions: its weights have no unique posterior mean."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import datasets, modules
from ..target.target import Target
from .base import Problem

_HIDDEN, _NOISE = 5, 0.5


class Network(eqx.Module):
    """v·tanh(Wx + b) + c."""

    w: Float[Array, "hidden d"]
    b: Float[Array, " hidden"]
    v: Float[Array, " hidden"]
    c: Float[Array, ""]

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, ""]:
        return self.v @ jnp.tanh(self.w @ x + self.b) + self.c


def loss(output: Float[Array, ""], y: Float[Array, ""]) -> Float[Array, ""]:
    """−log N(y; f(x), 0.5²), up to a constant."""
    return 0.5 * jnp.square((y - output) / _NOISE)


def network() -> Problem:
    """Resistance of 308 yachts from 6 measurements, 5 hidden units, 41 weights N(0, 1); seen through 12 predictions."""
    table = datasets.load("yacht")
    # In float64: NumPy's float32 logarithm has other last digits on other processors, and the answer knows the data.
    x = datasets.standardize(table.features.astype(np.float64))[0].astype(np.float32)
    y = datasets.standardize(np.log1p(table.labels.astype(np.float64))[:, None])[0][:, 0].astype(np.float32)
    shown = jnp.asarray(x[:: len(x) // 12][:12])
    shapes = {"w": (_HIDDEN, x.shape[1]), "b": (_HIDDEN,), "v": (_HIDDEN,), "c": ()}
    rng = np.random.default_rng(1)
    start = {name: jnp.asarray(0.5 * rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    module = Network(**start)
    predict = modules.function_of(module)
    return Problem(
        title="neural network, n = 308, d = 41",
        target=Target.from_module(module, loss, (x, y)),
        init=modules.parameters(module),
        step_size=0.006,
        friction=30.0,
        data_per_step=8,
        observe=lambda params: jax.vmap(predict, in_axes=(None, 0))(params, shown),
        has_mean=False,
        num_draws=2000,
    )
