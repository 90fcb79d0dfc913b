"""What a user passes as features and responses, checked and in the right dtype; all on the host, in NumPy."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike, Float, Shaped

from ..errors import InputError


def as_features(owner: str, features: ArrayLike) -> Float[np.ndarray, "n d"]:
    """The feature matrix in float32, or in float64 where it has that dtype and `jax_enable_x64` is on."""
    array = _numbers(owner, "features", features)
    if array.ndim != 2 or array.size == 0:
        raise InputError(
            f"{owner}: features must be a matrix with one row a datum and one column a feature, not shape {array.shape}"
        )
    dtype = array.dtype if array.dtype in (np.float32, np.float64) else float
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and `Dataset` refuses it
        return array.astype(jnp.result_type(dtype), copy=False)


def as_responses(owner: str, name: str, responses: ArrayLike, num_rows: int) -> Shaped[np.ndarray, " n"]:
    """One number for each row of the features."""
    array = _numbers(owner, name, responses)
    if array.ndim != 1:
        raise InputError(f"{owner}: {name} must have one axis, one entry a datum, not shape {array.shape}")
    if len(array) != num_rows:
        raise InputError(f"{owner}: features have {num_rows} rows but there are {len(array)} {name}")
    return array


def refuse(owner: str, name: str, values: Shaped[np.ndarray, " n"], is_bad: np.ndarray, rule: str) -> None:
    """Raise, with the first offender and its row, if any value breaks the rule."""
    if np.any(is_bad):
        row = int(np.argmax(is_bad))
        raise InputError(f"{owner}: {name} must be {rule}, not {values[row].item()!r} (row {row})")


def with_intercept(features: ArrayLike) -> Float[np.ndarray, "n d+1"]:
    """The features with a column of ones before them, whose coefficient is the intercept.

    Example:
        >>> import ewsg
        >>> ewsg.models.with_intercept([[2.0, 3.0]])
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
        raise InputError(f"{owner}: {name} have dtype {array.dtype}: give real numbers (encode categories first)")
    return array
