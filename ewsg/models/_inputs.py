"""What a user passes to a model, checked and in the right dtype; all on the host, in NumPy."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Shaped

from .._component import check_positive
from .._types import Scalar
from ..errors import InputError


def as_features(owner: str, features: ArrayLike) -> Float[np.ndarray, "n d"]:
    """The feature matrix, in float64 if `jax_enable_x64` is on and it is not float32, else in float32."""
    array = _numbers(owner, "features", features)
    if array.ndim != 2 or array.size == 0:
        raise InputError(
            f"{owner}: features must be a matrix (one row a datum, one column a feature), not {array.shape}"
        )
    dtype = array.dtype if array.dtype == np.float32 else jnp.result_type(float)
    return cast(array, dtype)


def as_responses(owner: str, name: str, responses: ArrayLike, num_rows: int) -> Shaped[np.ndarray, " n"]:
    """One number for each row of the features."""
    array = _numbers(owner, name, responses)
    if array.ndim != 1:
        raise InputError(f"{owner}: {name} must have one axis, one entry a datum, not shape {array.shape}")
    if len(array) != num_rows:
        raise InputError(f"{owner}: features have {num_rows} rows but there are {len(array)} {name}")
    return array


def cast(array: np.ndarray, dtype: np.typing.DTypeLike) -> np.ndarray:
    """The same values; what overflows becomes infinite without a warning, and `Dataset` refuses it."""
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def refuse(owner: str, name: str, values: Shaped[np.ndarray, " n"], is_bad: np.ndarray, rule: str) -> None:
    """Raise, with the first offender and its row, if any value breaks the rule."""
    if np.any(is_bad):
        row = int(np.argmax(is_bad))
        raise InputError(f"{owner}: {name} must be {rule}, not {values[row].item()!r} (row {row})")


def check_number(owner: str, name: str, value: Scalar, *, zero: bool = False) -> None:
    """Refuse what is not one positive number (or zero, where allowed); traced scalars pass."""
    check_positive(owner, name, value, zero=zero)
    if np.ndim(value) != 0:
        raise InputError(f"{owner}: {name} must be one number, not an array of shape {np.shape(value)}")


def with_intercept(features: ArrayLike) -> Float[np.ndarray, "n d+1"]:
    """The features with a column of ones before them, whose coefficient is the intercept.

    Example:
        >>> import ewsg
        >>> ewsg.models.with_intercept([[2, 3]])
        array([[1., 2., 3.]], dtype=float32)
    """
    array = as_features("with_intercept", features)
    return np.concatenate([np.ones((len(array), 1), array.dtype), array], axis=1)


def _numbers(owner: str, name: str, values: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{owner}: {name} must be an array of numbers ({error})") from error
    if array.dtype.kind not in "fiub":
        raise InputError(f"{owner}: {name} must be real numbers, not {array.dtype}: encode categories first")
    return array
