"""Inputs of the models, checked and in the right dtype; all on the host, in NumPy."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped
from numpy.typing import ArrayLike

from .._core import memory
from ..errors import InputError
from ..target import arrays


def as_features(owner: str, features: ArrayLike) -> Float[Array, "n d"]:
    """The feature matrix as JAX holds it; only a JAX array of the right dtype is not copied."""
    numbers = _feature_numbers(owner, features)
    if isinstance(numbers.array, jax.Array) and numbers.array.dtype == _feature_dtype(numbers.array):
        return numbers.array
    return arrays.to_device(_own_features(owner, numbers))


def feature_copy(owner: str, features: ArrayLike) -> Float[np.ndarray, "n d"]:
    """A copy of the feature matrix for the caller to write to before it is given to JAX."""
    numbers = _feature_numbers(owner, features)
    return _own_features(owner, numbers)


def as_responses(owner: str, name: str, responses: ArrayLike, num_rows: int) -> Shaped[np.ndarray, " n"]:
    """One number for each row of the features, as given."""
    array = np.asarray(arrays.as_numbers(f"{owner}: {name}", responses).array)
    if array.ndim != 1:
        raise InputError(f"{owner}: {name} must have one axis, one entry per datum, not shape {array.shape}")
    if len(array) != num_rows:
        raise InputError(f"{owner}: features have {num_rows} rows but there are {len(array)} {name}")
    return array


def as_counts(owner: str, counts: ArrayLike, features: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Whole numbers of at least 0, one for each row of the features, in their dtype."""
    values = as_responses(owner, "counts", counts, len(features))
    is_count = (values >= 0) & (values < np.inf) & (values == np.floor(values))
    raise_if(owner, "counts", values, ~is_count, "whole numbers of at least 0")
    return cast(owner, "counts", values, features.dtype)


def cast(owner: str, name: str, array: np.ndarray, dtype: np.typing.DTypeLike) -> Shaped[Array, " n"]:
    """The same values as JAX holds them; raise InputError for any beyond the dtype's range."""
    return arrays.to_device(arrays.own(f"{owner}: {name}", arrays.Numbers(array, False), dtype))


def raise_if(owner: str, name: str, values: Shaped[np.ndarray, " n"], is_bad: np.ndarray, rule: str) -> None:
    """Raise, with the first offender and its row, if any value breaks the rule."""
    if np.any(is_bad):
        row = int(np.argmax(is_bad))
        raise InputError(f"{owner}: {name} must be {rule}, not {values[row].item()!r} (row {row})")


def with_intercept(features: ArrayLike) -> Float[np.ndarray, "n columns"]:
    """The features with a first column of ones, whose coefficient is the intercept.

    Example:
        >>> import ewsg
        >>> ewsg.models.with_intercept([[2, 3]])
        array([[1., 2., 3.]], dtype=float32)
    """
    numbers = _feature_numbers("with_intercept", features)
    rows, columns = numbers.array.shape
    joined = arrays.empty((rows, columns + 1), _feature_dtype(numbers.array))
    joined[:, 0] = 1
    _own_features("with_intercept", numbers, joined[:, 1:])
    return joined


def _feature_numbers(owner: str, features: ArrayLike) -> arrays.Numbers:
    """The feature matrix as given, its shape checked."""
    numbers = arrays.as_numbers(f"{owner}: features", features)
    if numbers.array.ndim != 2 or numbers.array.size == 0:
        raise InputError(
            f"{owner}: features must be a matrix (one row per datum, one column per feature), not {numbers.array.shape}"
        )
    return numbers


def _feature_dtype(array: Any) -> np.dtype:
    """float64 if `jax_enable_x64` is on and the features are not float32, else float32."""
    return np.dtype(np.float32 if array.dtype == np.float32 else jnp.result_type(float))


def _own_features(owner: str, numbers: arrays.Numbers, out: np.ndarray | None = None) -> np.ndarray:
    dtype = _feature_dtype(numbers.array)
    if out is None:
        needed = numbers.array.size * dtype.itemsize
        memory.check(needed, f"{owner}: a copy of the features in memory", "use fewer rows or columns")
    return arrays.own(f"{owner}: features", numbers, dtype, out)


def origin(features: Any, *more: int) -> np.ndarray:
    """Coefficients that are all 0: one for every column, in the dtype of the features."""
    return np.zeros((np.shape(features)[1], *more), arrays.jax_dtype(features.dtype))
