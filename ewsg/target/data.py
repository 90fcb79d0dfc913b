"""Data on the device: a pytree of arrays that share one leading axis."""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Int

from .. import _random
from .._core import memory, process, pytree
from .._core.types import Batch, Indices, Key
from ..errors import InputError
from . import arrays as _arrays


class Dataset(eqx.Module):
    """n data as arrays on the device, shared by all chains; a minibatch is a gather of rows.

    NumPy arrays (and memory-mapped files) are copied once, so that later changes by the caller have no effect; JAX
    arrays are immutable and are used as they are.
    """

    arrays: Batch
    size: int = eqx.field(static=True)

    def __init__(self, arrays: Batch):
        process.check()
        self.arrays = _owned(arrays)
        self.size = jax.tree.leaves(self.arrays)[0].shape[0]

    def take(self, indices: Int[Array, "..."]) -> Batch:
        """The rows at `indices`, which must lie in [0, size)."""
        return jax.tree.map(lambda array: array.at[indices].get(mode="promise_in_bounds"), self.arrays)

    def rows(self, start, count: int) -> Batch:
        """`count` consecutive rows."""
        return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, start, count), self.arrays)

    def draw(self, key: Key, count: int, replace: bool) -> Indices:
        """`count` uniform row numbers, independent or distinct."""
        draw = _random.indices if replace else _random.distinct_indices
        return draw(key, self.size, count)


class Held(eqx.Module):
    """A minibatch in place of all n data."""

    arrays: Batch
    size: int = eqx.field(static=True)


def _owned(arrays: Batch) -> Batch:
    """The arrays, checked and on the device; shapes and sizes are checked before any array is copied."""
    named = pytree.named_leaves("data", arrays)
    if not named:
        raise InputError("data is empty: give a pytree of arrays with one leading axis, one row per datum")
    _refuse_lists(named)
    found = {name: _arrays.as_numbers(name, leaf) for name, leaf in named.items()}
    _check_rows({name: numbers.array for name, numbers in found.items()})
    copied = [numbers.array for numbers in found.values() if not isinstance(numbers.array, jax.Array)]
    needed = sum(array.size * _arrays.jax_dtype(array.dtype).itemsize for array in copied)
    memory.check(needed, "a copy of the data in memory", "use fewer rows, or a smaller dtype such as float32")
    return jax.tree.structure(arrays).unflatten([_on_device(name, numbers) for name, numbers in found.items()])


def _on_device(name: str, numbers: _arrays.Numbers) -> jax.Array:
    owned = _arrays.owned(name, numbers)
    return owned if isinstance(owned, jax.Array) else _arrays.to_device(owned)


def _refuse_lists(named: dict[str, Any]) -> None:
    """Raise InputError for numbers in lists, which JAX would treat as separate scalars."""
    if all(isinstance(leaf, bool | int | float) for leaf in named.values()) and len(named) > 1:
        raise InputError("data is made of lists of numbers: make an array of each list first (np.asarray)")


def _check_rows(arrays: dict[str, Any]) -> None:
    """Raise InputError unless all arrays have the same number of rows, at least one."""
    for name, array in arrays.items():
        if array.ndim == 0:
            raise InputError(
                f"{name} is a scalar: data needs a leading axis, one row per datum (turn lists into arrays, np.asarray)"
            )
    sizes = {name: array.shape[0] for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        listing = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise InputError(f"the leading axes of data disagree ({listing}): every array needs one row per datum")
    if next(iter(sizes.values())) == 0:
        raise InputError("data has no rows: at least one datum is needed")
