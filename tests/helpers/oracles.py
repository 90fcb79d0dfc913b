"""Other people's implementations, for the tests to compare with."""

import warnings
from typing import Any

import numpy as np


def statistic(name: str, array: np.ndarray, **options: Any) -> np.ndarray:
    """ArviZ's `ess` or `rhat` for an array of shape (chain, draw, *parameters), one value per parameter."""
    flat = np.asarray(array, np.float64).reshape(*array.shape[:2], -1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        import arviz

        if int(arviz.__version__.split(".")[0]) < 1:
            result = getattr(arviz, name)(arviz.convert_to_dataset({"x": flat}), **options)["x"].values
        else:
            from arviz_stats.base import array_stats  # part of ArviZ 1.x

            result = getattr(array_stats, name)(flat, chain_axis=0, draw_axis=1, **options)
    return np.asarray(result).reshape(array.shape[2:])
