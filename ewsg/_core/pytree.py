"""Algebra on pytrees of arrays: the positions, momenta and forces of a chain."""

import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..errors import InputError
from .compiler import stored
from .types import Position, Scalar

_FEW, _HALVINGS = 4096, 5


def add_scaled(tree: Position, scale: Scalar, other: Position) -> Position:
    """tree + scale · other."""
    return jax.tree.map(lambda a, b: a + as_dtype(scale, b.dtype) * b, tree, other)


def scaled(scale: Scalar, tree: Position) -> Position:
    """scale · tree."""
    return jax.tree.map(lambda a: as_dtype(scale, a.dtype) * a, tree)


def as_dtype(scale: Scalar, dtype: Any) -> Scalar:
    """A scalar in the dtype of the array that it multiplies; Python's numbers need no cast."""
    return scale.astype(dtype) if isinstance(scale, jax.Array) else scale


def divisor(value: Scalar) -> Scalar:
    """`value`, or 1 where it is 0: for quotients that should be 0 where numerator and `value` both are."""
    return jnp.where(value == 0, 1.0, value)


def subtract(tree: Position, other: Position) -> Position:
    """tree − other."""
    return jax.tree.map(operator.sub, tree, other)


def dot(tree: Position, other: Position) -> Float[Array, ""]:
    """The inner product, summed over all leaves."""
    products = [_sum(a * b) for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True)]
    return functools.reduce(operator.add, products)


def _sum(array: Array) -> Array:
    """The sum of all entries; large arrays are first folded in half, in one vectorised pass over memory on the CPU."""
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
    """The size in memory of all leaves: arrays, or shapes with dtypes."""
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


def wide_dtype(tree: Position) -> jnp.dtype:
    """The widest dtype of the leaves, and at least float32: for sums, and for numbers as large as n."""
    dtypes = (jnp.dtype(jnp.float32), *(leaf.dtype for leaf in jax.tree.leaves(tree)))
    return max(dtypes, key=lambda dtype: jnp.finfo(dtype).bits)


def widened(tree: Position) -> Position:
    """The same values, each leaf in at least float32."""
    return jax.tree.map(lambda leaf: leaf.astype(wide_dtype(leaf)), tree)


def combined(scale: Scalar, tree: Position, other_scale: Scalar, other: Position) -> Position:
    """scale · tree + other_scale · other, computed in at least float32, in the dtypes of `tree`."""

    def add(a: Array, b: Array) -> Array:
        wide = wide_dtype(a)
        return (as_dtype(scale, wide) * a.astype(wide) + as_dtype(other_scale, wide) * b.astype(wide)).astype(a.dtype)

    return jax.tree.map(add, tree, other)


def cast_like(tree: Position, example: Position) -> Position:
    """The same values in the dtypes of `example`."""
    return jax.tree.map(lambda a, b: a.astype(b.dtype), tree, example)


def rows(tree: Position, leading: int = 1) -> Float[Array, "..."]:
    """All entries in one last axis, in the order of `ravel_pytree`, after `leading` axes that all leaves share."""

    def flatten(tree: Position) -> Array:
        return ravel_pytree(tree)[0]

    for _ in range(leading):
        flatten = jax.vmap(flatten)
    return flatten(tree)


def host_rows(tree: Position, leading: int = 1) -> Float[np.ndarray, "..."]:
    """The same as `rows` on the host, in float64."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    flat = [leaf.reshape(*leaf.shape[:leading], math.prod(leaf.shape[leading:])) for leaf in leaves]
    return np.concatenate([part.astype(np.float64) for part in flat], axis=-1)


def host_unraveller(example: Position) -> Callable[[Float[np.ndarray, " d"]], Position]:
    """The inverse of `host_rows` without leading axes: from a vector to arrays of the host like those of `example`."""
    leaves, structure = jax.tree.flatten(example)
    shapes, dtypes = [leaf.shape for leaf in leaves], [leaf.dtype for leaf in leaves]
    ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

    def unravel(vector: Float[np.ndarray, " d"]) -> Position:
        parts = zip(np.split(np.asarray(vector), ends), shapes, dtypes, strict=True)
        return structure.unflatten([part.reshape(shape).astype(dtype) for part, shape, dtype in parts])

    return unravel


def as_arrays(tree: Any) -> Any:
    """The leaves as arrays without weak types, which a loop may carry: JAX's stay in place, others become NumPy's.

    A leaf that cannot be an array is returned unchanged, for a check to report.
    """
    return jax.tree.map(_as_array, tree)


def _as_array(leaf: Any) -> Any:
    try:
        dtype = jnp.result_type(leaf)
    except TypeError:
        return leaf
    if isinstance(leaf, jax.Array):
        return jax.lax.convert_element_type(leaf, dtype)
    with np.errstate(over="ignore"):  # becomes infinite, which a check reports
        return np.array(leaf, dtype)


def named_leaves(name: str, tree: Any) -> dict[str, Any]:
    """The leaves of a user's pytree under the names that errors use, such as data['x'][0]; keys must be sortable."""
    try:
        leaves = jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda node: isinstance(node, Iterator))
    except (TypeError, ValueError) as error:  # its type differs between versions of JAX
        raise InputError(
            f"{name} has a dict whose keys JAX cannot sort, such as strings and numbers: give all keys one type"
        ) from error
    return {name + jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def leaf_name(path: tuple[Any, ...], alone: str = "theta") -> str:
    """The name of an array in a pytree: its keys joined by dots, or `alone` if the tree is one array."""
    parts = [str(getattr(entry, "key", getattr(entry, "name", getattr(entry, "idx", entry)))) for entry in path]
    return ".".join(parts) or alone


def is_function(init: Any) -> bool:
    """Whether `init` is a function of a key, not a pytree of parameters that happens to be callable (a module)."""
    if not callable(init):
        return False
    if isinstance(init, functools.partial):  # as `jax.tree_util.Partial`, whose arrays are arguments
        return True
    return not any(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(init))
