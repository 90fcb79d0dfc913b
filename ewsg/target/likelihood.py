"""log p(datum | params) and its batched derivatives.

A user writes the log-likelihood of one datum; `PerDatum` gets the batched forms from it by `vmap` and automatic
differentiation. A model with closed forms (`ewsg.models`) subclasses `AbstractLikelihood` and provides them.
"""

import abc
import operator
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.compiler import stored
from .._core.component import as_module
from .._core.convolution import fast_here
from .._core.jaxpr import num_bytes
from .._core.types import Batch, Position

_LARGE_MATRIX_ENTRIES = 4096


class AbstractLikelihood(eqx.Module):
    """The log-likelihood ℓ(params, datum) of one datum, and its batched values and derivatives.

    Attributes:
        log_concave: whether ℓ is known to be a concave function of the parameters, for any datum.
    """

    log_concave: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        """ℓ(params, datum)."""

    def values(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        """ℓ_i for every datum of the batch."""
        return jax.vmap(self, in_axes=(None, 0))(params, batch)

    def gradient(self, params: Position, batch: Batch, weights: Float[Array, " b"]) -> Position:
        """Σ_i w_i ∇ℓ_i, in one backward pass; weights are at least float32, whatever the dtype of the parameters."""
        values, pull_back = jax.vjp(lambda params: self.values(params, batch), params)
        if jnp.finfo(values.dtype).bits >= jnp.finfo(weights.dtype).bits:
            return jax.tree.map(_in_order, pull_back(weights.astype(values.dtype))[0])
        # weights as large as n would lose digits or overflow in a narrow dtype: multiply by the largest afterwards
        largest = jnp.max(jnp.abs(weights))
        relative = weights / jnp.where(largest > 0, largest, 1)
        gradient = pull_back(relative.astype(values.dtype))[0]
        return jax.tree.map(lambda leaf: _in_order((largest * leaf.astype(weights.dtype)).astype(leaf.dtype)), gradient)

    def directional(self, params: Position, batch: Batch, direction: Position) -> Float[Array, " b"]:
        """∇ℓ_i · direction for every datum, in one forward pass."""
        return jax.jvp(lambda p: self.values(p, batch), (params,), (direction,))[1]

    def gradients(self, params: Position, batch: Batch) -> Position:
        """∇ℓ_i for every datum, stacked along a leading axis."""
        return jax.vmap(jax.grad(self), in_axes=(None, 0))(params, batch)

    def gradient_changes(self, params: Position, anchor: Position, batch: Batch) -> Position:
        """∇ℓ_i at `params` minus ∇ℓ_i at `anchor` for every datum, stacked along a leading axis."""
        return jax.tree.map(operator.sub, self.gradients(params, batch), self.gradients(anchor, batch))

    def passes(self, points: int) -> int:
        """Datum gradients per datum that `gradients` evaluates at `points` positions under one `vmap`."""
        return points

    def datum_bytes(self, params: Position, data: Batch) -> int:
        """Bytes of intermediates per datum, from the jaxpr."""

        def size(count: int) -> int:
            batch = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape[1:]), leaf.dtype), data)
            return num_bytes(jax.make_jaxpr(self.values)(params, batch).jaxpr)

        return max(1, size(2) - size(1))


class PerDatum(AbstractLikelihood):
    """A user's function of (params, datum)."""

    function: Callable

    def __init__(self, function: Callable):
        self.function = as_module(function)

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        return fast_here(self.function)(params, datum)


class OfModule(PerDatum):
    """The likelihood of a network.

    Attributes:
        predict: function of (params, datum): what the network predicts for the datum's input, a pytree.
    """

    predict: Callable

    def __init__(self, function: Callable, predict: Callable):
        super().__init__(function)
        self.predict = as_module(predict)


class AbstractMapped(AbstractLikelihood):
    """ℓ_i(θ(z)), a function of z: the likelihood of parameters θ that are a function of the position z."""

    likelihood: eqx.AbstractVar[AbstractLikelihood]

    @abc.abstractmethod
    def place(self, params: Position) -> Position:
        """θ(z)."""

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        return self.likelihood(self.place(params), datum)

    def values(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        return self.likelihood.values(self.place(params), batch)

    def directional(self, params: Position, batch: Batch, direction: Position) -> Float[Array, " b"]:
        position, tangent = jax.jvp(self.place, (params,), (direction,))
        return self.likelihood.directional(position, batch, tangent)


def _in_order(gradient: Array) -> Array:
    """The gradient of a large matrix, stored in row-major order: XLA computes that of w in x @ w transposed."""
    return stored(gradient) if gradient.ndim > 1 and gradient.size >= _LARGE_MATRIX_ENTRIES else gradient
