"""Algebra on pytrees of arrays: the positions, momenta and forces of a chain."""

import functools
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._types import Position, Scalar

_LANES = 256


def add_scaled(tree: Position, scale: Scalar, other: Position) -> Position:
    """tree + scale · other."""
    return jax.tree.map(lambda a, b: a + scale * b, tree, other)


def scaled(scale: Scalar, tree: Position) -> Position:
    """scale · tree."""
    return jax.tree.map(lambda a: scale * a, tree)


def subtract(tree: Position, other: Position) -> Position:
    """tree − other."""
    return jax.tree.map(operator.sub, tree, other)


def dot(tree: Position, other: Position) -> Float[Array, ""]:
    """The inner product, summed over all leaves."""
    products = [_sum(a * b) for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)]
    return functools.reduce(operator.add, products)


def _sum(array: Array) -> Array:
    """The sum of all entries; of many, first to sums side by side, which the compiler vectorises on the CPU."""
    whole = array.size // _LANES * _LANES
    if whole < 8 * _LANES:
        return jnp.sum(array)
    flat = array.reshape(-1)
    lanes = jax.lax.optimization_barrier(jnp.sum(flat[:whole].reshape(-1, _LANES), 0))
    return jnp.sum(lanes) + jnp.sum(flat[whole:])


def zeros_like(tree: Position) -> Position:
    """The zero vector of the same shape."""
    return jax.tree.map(jnp.zeros_like, tree)


def full_like(tree: Position, value: Scalar) -> Position:
    """The vector whose entries are all `value`."""
    return jax.tree.map(lambda a: jnp.full_like(a, value), tree)


def size(tree: Position) -> int:
    """The number of scalars: the dimension d."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def where(condition: Array, tree: Position, other: Position) -> Position:
    """`tree` if the (scalar) condition holds, else `other`; works on keys too."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), tree, other)


def all_finite(tree: Position) -> Array:
    """Whether no entry is NaN or infinite."""
    return functools.reduce(operator.and_, [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)])


def max_abs(tree: Position) -> Array:
    """The largest absolute entry."""
    return functools.reduce(jnp.maximum, [jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)])


def cast_like(tree: Position, example: Position) -> Position:
    """The same values in the dtypes of `example`."""
    return jax.tree.map(lambda a, b: a.astype(b.dtype), tree, example)
