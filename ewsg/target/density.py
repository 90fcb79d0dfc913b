"""The log density of a posterior, whose derivative is the force: not taken through the loop over blocks of data.

Reverse mode through that loop would keep what every block computed, memory that grows with n.
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
from .._core.types import Batch, Position


def _by_blocks(target: Any, position: Position) -> Float[Array, ""]:
    """−V(θ): the sum over blocks of data."""
    zero = jnp.zeros((), pytree.wide_dtype(position))
    return target.log_prior(position).astype(zero.dtype) + target.sum_blocks(position, target.block_value, zero)


log_density = jax.custom_jvp(_by_blocks)
"""−V(θ), a function of (target, position)."""


def _log_density_jvp(primals: tuple[Any, Position], tangents: tuple[Any, Any]) -> tuple[Array, Array]:
    """Value and derivative from one pass over the data, whose gradient is at hand for any direction.

    Derivatives with respect to the target itself (a prior's scale) are taken through the loop over blocks.
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
    """A tangent as an array."""
    return np.zeros(tangent.shape, tangent.dtype) if _is_zero(tangent) else tangent
