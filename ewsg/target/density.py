"""The log density of a posterior at one position, and its prior and data terms at several positions.

`log_density` has a custom derivative, the force: reverse mode through its loop over blocks of data would keep the
intermediates of every block, and memory would grow with n.
"""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Batch, Indices, Position


def _by_blocks(target: Any, position: Position) -> Float[Array, ""]:
    """−V(θ): the sum over blocks of data."""
    zero = jnp.zeros((), pytree.wide_dtype(position))
    return target.log_prior(position).astype(zero.dtype) + target.sum_blocks(position, target.block_value, zero)


log_density = jax.custom_jvp(_by_blocks)
"""−V(θ), a function of (target, position)."""


def _log_density_jvp(primals: tuple[Any, Position], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    """Value and directional derivative from one pass over the data.

    Derivatives with respect to the target itself (such as a prior's scale) are taken through the loop over blocks.
    """
    target, position = primals
    if not all(_is_zero(leaf) for leaf in jax.tree.leaves(tangents[0], is_leaf=_is_zero)):
        return jax.jvp(_by_blocks, primals, jax.tree.map(_materialised, tangents, is_leaf=_is_zero))
    zero = jnp.zeros((), pytree.wide_dtype(position)), pytree.widened(pytree.zeros_like(position))
    value, force = target.sum_blocks(position, functools.partial(_value_and_force, target), zero)
    prior, prior_force = jax.value_and_grad(target.log_prior)(position)
    force = pytree.widened(pytree.combined(1, force, 1, prior_force))
    direction = pytree.widened(jax.tree.map(_materialised, tangents[1], is_leaf=_is_zero))
    products = [
        jnp.sum(f * d).astype(value.dtype) for f, d in zip(*map(jax.tree.leaves, (force, direction)), strict=True)
    ]
    return prior.astype(value.dtype) + value, functools.reduce(operator.add, products)


log_density.defjvp(_log_density_jvp, symbolic_zeros=True)


def _value_and_force(target: Any, position: Position, batch: Batch, count: int) -> tuple[Array, Position]:
    return target.block_value(position, batch, count), target.block_force(position, batch, count)


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, SymbolicZero)


def _materialised(tangent: Any) -> Any:
    """A tangent as an array, zeros where it is symbolic."""
    return np.zeros(tangent.shape, tangent.dtype) if _is_zero(tangent) else tangent


@functools.partial(jax.jit, static_argnames="summed")
def densities(
    target: Any, positions: Position, indices: Indices, *, summed: bool = False
) -> tuple[Float[Array, " p"], Float[Array, "p b"] | Float[Array, " p"]]:
    """(log π, ℓ_i for the data at `indices`) at each of p stacked positions, one position after another.

    Args:
        target: the posterior.
        positions: a pytree with a leading axis of p.
        indices: row numbers, of shape (b,); evaluated in blocks that fit into memory.
        summed: return Σ_i ℓ_i, in at least float32, in place of the single values.
    """

    def at(position: Position) -> tuple[Array, Array]:
        block = target.block(position, indices.shape[0])
        values = jax.lax.map(lambda i: target.likelihood(position, target.data.take(i)), indices, batch_size=block)
        if summed:
            values = jnp.sum(values.astype(pytree.wide_dtype(position)))
        return target.log_prior(position), values

    return jax.lax.map(at, positions)


def spaced(size: int, count: int) -> np.ndarray:
    """Up to `count` evenly spaced row numbers."""
    return np.linspace(0, size - 1, min(size, count)).round().astype(np.int32)
