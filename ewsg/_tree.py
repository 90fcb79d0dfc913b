"""Algebra on pytrees of arrays: the positions, momenta and forces of a chain."""

import functools
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._compiler import stored
from ._types import Position, Scalar

_FEW, _HALVINGS = 4096, 5


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
    """The sum of all entries; of many, halves are added first, in one vectorised pass over memory on the CPU."""
    flat, odd = array.reshape(-1), jnp.zeros((), array.dtype)
    while flat.size > _FEW:
        for _ in range(_HALVINGS):
            half, left = divmod(flat.size, 2)
            odd = odd + flat[-1] if left else odd
            flat = flat[:half] + flat[half : 2 * half]
        flat = stored(flat)
    return jnp.sum(flat) + odd


def zeros_like(tree: Position) -> Position:
    """The zero vector of the same shape."""
    return jax.tree.map(jnp.zeros_like, tree)


def full_like(tree: Position, value: Scalar) -> Position:
    """The vector whose entries are all `value`."""
    return jax.tree.map(lambda a: jnp.full_like(a, value), tree)


def size(tree: Position) -> int:
    """The number of scalars: the dimension d."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def num_bytes(tree: Position) -> int:
    """The size in memory of all leaves, which may be shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


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


def is_function(init: object) -> bool:
    """Whether a starting point is a function that draws one: callable, and no pytree of arrays such as a module."""
    return callable(init) and not any(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(init))
