"""Users' arrays as numbers that no one else can change, copied once.

`as_numbers` takes DataFrames, lists, memory-mapped files and arrays, without a copy where possible; `own` copies the
numbers in blocks into memory of its own, in the dtype JAX will use, and raises InputError for NaN, infinities and
values outside the range of that dtype. pandas, polars, SciPy and PyTorch are recognised by their attributes and never
imported.
"""

import math
import os
from array import array as machine_array
from numbers import Number, Real
from typing import Any, NamedTuple

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, first_line
from .columns import as_matrix, is_frame, is_nullable, nullable_values

_BLOCK_BYTES = 2**22
_ALIGNMENT_BYTES = 64
_MOST_ROWS = 2**31 - 1
_ARRAY_ATTRIBUTES = ("__array__", "__array_interface__", "__dlpack__", "dtype")
_PLAIN = (Number, str, bytes, range, machine_array, memoryview, type(None), list, tuple)


class Numbers(NamedTuple):
    """An array of numbers; `is_fresh` if it was made here, so that no one else holds a reference to it."""

    array: Any
    is_fresh: bool


def as_numbers(name: str, value: Any) -> Numbers:
    """The value as a JAX or NumPy array of real numbers; errors call it `name`."""
    _refuse_collections(name, value)
    if isinstance(value, jax.Array):
        numbers = Numbers(value, False)
    elif is_frame(value):
        numbers = Numbers(as_matrix(name, value), False)
    elif is_nullable(value):
        numbers = Numbers(nullable_values(name, value), True)
    else:
        numbers = Numbers(_as_numpy(name, value), isinstance(value, list | tuple))
    _check_dtype(name, numbers.array)
    rows = numbers.array.shape[0] if numbers.array.ndim else 0
    if rows > _MOST_ROWS:
        raise InputError(
            f"{name} must have at most 2^31 − 1 rows, not {rows:,}: row numbers are 32-bit, use fewer rows"
        )
    return numbers


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array whose memory JAX can use without a copy: aligned to 64 bytes."""
    dtype = np.dtype(dtype)
    memory = np.empty(math.prod(shape) * dtype.itemsize + _ALIGNMENT_BYTES, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT_BYTES
    return memory[start : memory.size - _ALIGNMENT_BYTES + start].view(dtype).reshape(shape)


def jax_dtype(dtype: Any) -> np.dtype:
    """The dtype to which JAX converts this one: at most 32 bits per number unless `jax_enable_x64` is on."""
    native = np.dtype(dtype).newbyteorder("=")
    return np.dtype(jax.dtypes.canonicalize_dtype(np.float64 if native == np.longdouble else native))


def own(name: str, numbers: Numbers, dtype: Any = None, out: np.ndarray | None = None) -> np.ndarray:
    """The same numbers in memory of their own, copied and checked in blocks of rows.

    Args:
        name: the array's name in errors.
        numbers: from `as_numbers`; a fresh array that already has the right dtype is not copied again.
        dtype: dtype of the result; None is `jax_dtype` of the array's own.
        out: the array to write to; None allocates one.
    """
    source = np.asarray(numbers.array)
    dtype = jax_dtype(source.dtype) if dtype is None else np.dtype(dtype)
    if out is None:
        out = source if numbers.is_fresh and source.dtype == dtype else empty(source.shape, dtype)
    bad, first = 0, None
    for start, stop in _blocks(source):
        rows = source[start:stop]
        count = _count_not_finite(rows)
        if count and first is None:
            first = start + _first_row(~np.isfinite(rows))
        bad += count
        if not bad and out is not source:
            _copy(name, rows, out[start:stop], start)
    if bad:
        raise InputError(f"{bad} NaN or infinite entries in {name} (first in row {first}): drop or impute those rows")
    return out


def owned(name: str, numbers: Numbers) -> np.ndarray | jax.Array:
    """The same numbers, checked, where no one else can change them: a copy, or the JAX array itself."""
    if not isinstance(numbers.array, jax.Array):
        return own(name, numbers)
    if not isinstance(numbers.array, jax.core.Tracer) and numbers.array.is_fully_addressable:
        check_finite(name, numbers.array)
    return numbers.array


def to_device(owned: np.ndarray) -> jax.Array:
    """Memory from `own` as a JAX array, on the CPU without another copy; the memory must not be written to again."""
    return jax.device_put(owned, may_alias=True)


def check_finite(name: str, array: jax.Array) -> None:
    """Raise InputError if a JAX array has entries that are NaN or infinite."""
    host = np.asarray(array)
    own(name, Numbers(host, True), host.dtype)


def _refuse_collections(name: str, value: Any) -> None:
    """Raise InputError for a collection of numbers that is not an array."""
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise InputError(f"{name} must be a dense array, not a sparse matrix: give its .toarray(), or fewer columns")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"{name} must have no masked entries: fill them, or drop their rows")
    if isinstance(value, os.PathLike):
        raise InputError(f"{name} must be an array of numbers, not a path: read the file first (np.load, ...)")
    is_array = any(hasattr(value, attribute) for attribute in _ARRAY_ATTRIBUTES)
    if is_array or is_frame(value) or isinstance(value, _PLAIN):
        return
    if any(hasattr(value, method) for method in ("__iter__", "__getitem__")):
        raise InputError(
            f"{name} must be an array, not an iterable ({type(value).__name__}): collect it into one first (np.stack)"
        )


def _as_numpy(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value)
    except Exception as error:  # rows of different lengths, a tensor on another device
        raise InputError(f"{name} must be an array of numbers ({first_line(error)})") from error


def _check_dtype(name: str, array: Any) -> None:
    """Raise InputError unless the entries are real numbers or booleans, JAX's small dtypes (bfloat16) included."""
    dtype = array.dtype
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise InputError(f"{name} must be real numbers, not {dtype}: give real and imaginary parts as two arrays")
    if jnp.issubdtype(dtype, np.number) or jnp.issubdtype(dtype, np.bool_):
        return
    if getattr(dtype, "kind", "") == "O":
        raise InputError(f"{name} must be numbers, not Python objects: {_about_objects(array)}")
    if getattr(dtype, "kind", "") in ("m", "M"):
        raise InputError(f"{name} must be numbers, not {dtype}: give times as numbers of one unit")
    if array.ndim == 0:
        raise InputError(f"{name} must be an array of numbers, not text: read a file first (np.load, pandas.read_csv)")
    raise InputError(f"{name} must be numbers, not {dtype}: encode categories as integers")


def _about_objects(array: np.ndarray) -> str:
    """Advice about an array of Python objects, from its first entry that is not a number."""
    for index, entry in np.ndenumerate(array):
        row = index[0] if index else 0
        if entry is None or (isinstance(entry, Real) and math.isnan(entry)):
            return f"drop or impute rows such as row {row}, which holds {entry!r}"
        if not isinstance(entry, Real | np.bool_):
            return f"encode categories as integers, such as {entry!r:.40} in row {row}"
    return "convert it with .astype(float)"


def _blocks(array: np.ndarray) -> list[tuple[int, int]]:
    """(start, stop) of blocks of rows that fit into a processor's cache; none for a scalar."""
    if array.ndim == 0 or array.shape[0] == 0:
        return []
    row_bytes = max(1, math.prod(array.shape[1:]) * array.dtype.itemsize)
    step = max(1, _BLOCK_BYTES // row_bytes)
    return [(start, min(start + step, array.shape[0])) for start in range(0, array.shape[0], step)]


def _count_not_finite(rows: np.ndarray) -> int:
    if not jnp.issubdtype(rows.dtype, jnp.floating):
        return 0
    return rows.size - int(np.count_nonzero(np.isfinite(rows)))


def _first_row(is_bad: np.ndarray) -> int:
    """The first row with a bad entry."""
    return int(np.argmax(is_bad.reshape(len(is_bad), -1).any(axis=1)))


def _copy(name: str, rows: np.ndarray, out: np.ndarray, start: int) -> None:
    """Copy finite rows; raise InputError for values outside the range of the new dtype, but round without a word."""
    if jnp.issubdtype(rows.dtype, np.integer) and jnp.issubdtype(out.dtype, np.integer) and rows.dtype != out.dtype:
        low, high = int(jnp.iinfo(out.dtype).min), int(jnp.iinfo(out.dtype).max)
        if rows.size and (int(rows.min()) < low or int(rows.max()) > high):
            row = start + _first_row((rows < low) | (rows > high))
            raise InputError(
                f"integers in {name} (first in row {row}) do not fit {out.dtype} and would wrap around: encode them as "
                "small integers, or turn on jax_enable_x64"
            )
    with np.errstate(over="ignore"):
        np.copyto(out, rows, casting="unsafe")
    if jnp.issubdtype(rows.dtype, jnp.floating) and rows.dtype != out.dtype and _count_not_finite(out):
        row = start + _first_row(~np.isfinite(out))
        raise InputError(
            f"numbers in {name} (first in row {row}) do not fit {out.dtype} and would become infinite: rescale them, "
            "or turn on jax_enable_x64"
        )
