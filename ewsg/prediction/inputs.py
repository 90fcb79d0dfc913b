"""The inputs of a prediction: arrays, or a pytree of them, with one row per input."""

from typing import Any

import jax

from .._core import memory, process, pytree
from .._core.types import Batch
from ..errors import InputError
from ..target import arrays as _arrays


def owned(inputs: Batch) -> Batch:
    """The inputs, checked, as arrays that the caller cannot change: NumPy's, or JAX's if given as such.

    DataFrames become matrices; entries that are not finite, or that JAX's dtype would change, raise InputError.
    """
    process.check()
    named = pytree.named_leaves("inputs", inputs)
    found = {name: _arrays.as_numbers(name, leaf) for name, leaf in named.items()}
    _check_rows([numbers.array for numbers in found.values()])
    copied = [numbers.array for numbers in found.values() if not isinstance(numbers.array, jax.Array)]
    needed = sum(array.size * _arrays.jax_dtype(array.dtype).itemsize for array in copied)
    memory.check(needed, "a copy of the inputs in memory", "predict fewer rows at a time")
    return jax.tree.structure(inputs).unflatten([_arrays.owned(name, numbers) for name, numbers in found.items()])


def on_device(inputs: Batch) -> Batch:
    """The result of `owned`, as JAX arrays."""
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else _arrays.to_device(leaf), inputs)


def _check_rows(arrays: list[Any]) -> None:
    """Raise InputError unless all arrays have the same number of rows, at least one."""
    if not arrays or not all(array.ndim for array in arrays):
        raise InputError("inputs must be an array, or a pytree of arrays, with one row per input: use np.asarray")
    counts = {array.shape[0] for array in arrays}
    if len(counts) > 1:
        raise InputError(f"the arrays of inputs differ in their number of rows: {', '.join(map(str, sorted(counts)))}")
    if counts == {0}:
        raise InputError("inputs has no rows: give at least one")
