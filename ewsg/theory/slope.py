"""The exponent of a power law, with its uncertainty: the orders in T and h that Theorem 3 predicts."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ..errors import InputError


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if not math.isfinite(self.value):
            return "diverged" if self.value == math.inf else f"{self.value:g}"
        spread = f" ({self.low:.3g} to {self.high:.3g})" if math.isfinite(self.low + self.high) else " (one repeat)"
        return f"{self.value:.3g}{spread}"


Slope = Interval
"""The exponent of a power law: an alias of `Interval`."""


def fit_slope(
    x: ArrayLike,
    y: ArrayLike,
    error: ArrayLike | None = None,
    confidence: float = 0.95,
) -> Interval:
    r"""Fits y ≈ c·x^s by weighted least squares of log y on log x.

    ŝ = argmin_s min_a Σ_i w_i (log y_i − a − s log x_i)²,   w_i = (y_i / error_i)²

    The variance of ŝ follows from the errors (with their correlations, when a covariance is given), inflated
    where the points scatter about the line more than these allow. The logarithm requires error_i well below y_i.

    Args:
        x: positive abscissae, at least two different ones.
        y: positive ordinates.
        error: the standard errors of y, shape (m,); or their covariance, (m, m), when the points are not
            independent, as along one run (`SquaredErrors.covariance`). None weights all points equally and takes the
            uncertainty from their scatter, which needs three points.
        confidence: of the interval.

    Example:
        >>> from ewsg.theory import fit_slope
        >>> slope = fit_slope([1.0, 10.0, 100.0], [2.0, 0.2, 0.02], error=[0.2, 0.02, 0.002])
        >>> [round(number, 2) for number in slope]
        [-1.0, -1.06, -0.94]
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    _check(x, y)
    if error is None and len(y) < 3:
        raise InputError("without errors the uncertainty comes from the scatter, which needs three points")
    covariance = np.eye(len(y)) if error is None else as_covariance(error, len(y)) / np.outer(y, y)
    weights = 1 / np.diag(covariance)
    design = np.stack([np.ones_like(x), np.log(x)], axis=1)
    solve = np.linalg.solve(design.T @ (weights[:, None] * design), design.T * weights)
    coefficients = solve @ np.log(y)
    residual_maker = np.eye(len(y)) - design @ solve
    scatter = np.sum(weights * (residual_maker @ np.log(y)) ** 2)
    expected = np.sum(weights * np.diag(residual_maker @ covariance @ residual_maker.T))
    tail, freedom = (1 + confidence) / 2, len(y) - 2
    ratio = scatter / expected if freedom > 0 else 1.0
    if error is None:
        quantile, inflation = stats.t.ppf(tail, freedom), ratio
    else:
        quantile, inflation = stats.norm.ppf(tail), max(1.0, ratio)
    half = float(quantile * np.sqrt(inflation * (solve @ covariance @ solve.T)[1, 1]))
    return Interval(float(coefficients[1]), float(coefficients[1]) - half, float(coefficients[1]) + half)


def as_covariance(error: ArrayLike, size: int) -> np.ndarray:
    """Standard errors (m,), or a covariance (m, m), as a covariance."""
    error = np.asarray(error, np.float64)
    if error.shape not in ((size,), (size, size)):
        raise InputError(f"error must have shape ({size},) or ({size}, {size}), not {error.shape}")
    covariance = np.diag(error**2) if error.ndim == 1 else error
    if not np.all(np.isfinite(covariance)) or not np.all(np.diag(covariance) > 0):
        raise InputError("every error must be positive and finite: leave out points without one")
    return covariance


def _check(x: np.ndarray, y: np.ndarray) -> None:
    if x.ndim != 1 or x.shape != y.shape or len(np.unique(x)) < 2:
        raise InputError("fit_slope needs two vectors of equal length, with at least two different x")
    for name, values in (("x", x), ("y", y)):
        if not np.all(np.isfinite(values)) or not np.all(values > 0):
            raise InputError(f"fit_slope takes logarithms: every {name} must be positive and finite")
