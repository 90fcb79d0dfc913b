"""The two steps between a table and an experiment: standardising columns, and splitting rows."""

from collections.abc import Sequence

import numpy as np

from ..errors import InputError


def standardize(
    features: np.ndarray, columns: Sequence[int] | slice | np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shift and scale columns to mean 0 and standard deviation 1 (divisor n, not n − 1).

    A constant column becomes 0, and 1 is returned as its standard deviation; a column that was not chosen
    keeps its values, and 0 and 1 are returned for it. So `(other - mean) / sd` transforms other rows in the same way.

    Args:
        features: The table, of shape (n, d).
        columns: Which columns (indices, a slice or a mask); all of them if None.

    Returns:
        The new table, and the mean and the standard deviation of each column, of shape (d,).
    """
    features = np.asarray(features)
    if features.ndim != 2 or len(features) == 0:
        raise InputError(f"standardize needs a table of shape (n, d), n > 0, not one of shape {features.shape}")
    dtype = features.dtype if np.issubdtype(features.dtype, np.floating) else np.float32
    chosen = np.arange(features.shape[1])[slice(None) if columns is None else columns]
    values = features[:, chosen].astype(np.float64)
    is_constant = values.max(axis=0) == values.min(axis=0)
    mean, sd = np.zeros(features.shape[1]), np.ones(features.shape[1])
    mean[chosen] = np.where(is_constant, values[0], values.mean(axis=0))
    sd[chosen] = np.where(is_constant, 1.0, values.std(axis=0))
    standardized = features.astype(dtype)
    standardized[:, chosen] = (values - mean[chosen]) / sd[chosen]
    return standardized, mean.astype(dtype), sd.astype(dtype)


def train_test_split(n: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows 0, ..., n − 1 at random.

    Args:
        n: How many rows there are.
        fraction: The share of them to train on.
        seed: The same seed gives the same split, on every machine.

    Returns:
        The indices of the training rows and those of the test rows, each in random order.
    """
    num_train = round(fraction * n)
    if not 0 < num_train < n:
        raise InputError(f"a fraction of {fraction} of {n} rows leaves no row to train on or none to test on")
    order = np.random.default_rng(seed).permutation(n)
    return order[:num_train], order[num_train:]
