"""Calibration: whether what is predicted with probability p comes true in a share p of the rows."""

from typing import Any, NamedTuple

import numpy as np

from .._core.optional import require
from ..errors import InputError
from .classes import NUM_BINS, Prediction, bins, checked_labels
from .regression import Regression

_LEVELS = np.linspace(0.05, 0.95, 19)
_BAND = 1.645
"""Standard errors on either side: 90 % of the points of a calibrated prediction lie inside."""


class Calibration(NamedTuple):
    """Predicted probabilities against observed shares; equal, up to `error`, if the prediction is calibrated.

    Attributes:
        predicted: of classes, the mean probability of each bin; of numbers, the level of central intervals.
        observed: of classes, the share of the bin's rows that came true; of numbers, the share of rows inside.
        error: the standard error of `observed` if the prediction is calibrated.
        rows: the number of rows behind each entry.
        label: of the horizontal axis.
    """

    predicted: np.ndarray
    observed: np.ndarray
    error: np.ndarray
    rows: np.ndarray
    label: str

    def plot(self, ax: Any = None) -> Any:
        """Observed shares against predicted probabilities, with the band of 90 % around the diagonal; the axes.

        Args:
            ax: Matplotlib axes to draw on; None makes a figure.
        """
        if ax is None:
            ax = require("matplotlib.pyplot", extra="report").subplots(figsize=(4, 4), layout="constrained")[1]
        low, high = (np.clip(self.predicted + sign * _BAND * self.error, 0, 1) for sign in (-1, 1))
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=1)
        ax.vlines(self.predicted, low, high, color="0.8", linewidth=5, label="90 % if calibrated")
        ax.plot(self.predicted, self.observed, "o-", color="C0", markersize=4, label="observed")
        ax.set(xlabel=self.label, ylabel="observed share of rows", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.legend(loc="upper left", frameon=False)
        return ax


def calibration(found: Prediction | Regression, truth: Any, label: int | None = None) -> Calibration:
    """Predicted probabilities against observed shares, of classes or of intervals.

    Args:
        found: the result of `predict`.
        truth: the class of each row, or the numbers that a regression predicts.
        label: of classes, the class whose probability is compared with its frequency; None is the most probable class
            of each row, whose weighted gaps are `Score.calibration_error`.
    """
    if isinstance(found, Prediction):
        return _of_classes(found, checked_labels(found, truth), label)
    if not isinstance(found, Regression):
        raise InputError(f"calibration takes the result of predict, not {type(found).__name__}")
    if label is not None:
        raise InputError("label is a class, and a regression has none: leave it out")
    inside = np.abs(2 * ranks(found, truth) - 1)[:, None] <= _LEVELS
    rows = np.full(len(_LEVELS), len(inside))
    error = np.sqrt(_LEVELS * (1 - _LEVELS) / rows)
    return Calibration(_LEVELS.copy(), inside.mean(0), error, rows, "level of the central interval")


def _of_classes(found: Prediction, labels: np.ndarray, label: int | None) -> Calibration:
    classes = found.probabilities.shape[1]
    if label is not None and label not in range(classes):
        raise InputError(f"label must be a class from 0 to {classes - 1}, not {label!r}")
    if label is None:
        predicted, right = found.probabilities.max(1), found.probabilities.argmax(1) == labels
    else:
        predicted, right = found.probabilities[:, label], labels == label
    place = bins(predicted)
    rows, means, shares, spread = (
        np.bincount(place, weights, NUM_BINS) for weights in (None, predicted, right, predicted * (1 - predicted))
    )
    some = rows > 0
    count = rows[some]
    name = "probability of the most probable class" if label is None else f"probability of class {label}"
    return Calibration(means[some] / count, shares[some] / count, np.sqrt(spread[some]) / count, count, name)


def ranks(found: Regression, truth: Any) -> np.ndarray:
    """The probability integral transform P(Y ≤ y) of each row: uniform on (0, 1) if the prediction is calibrated.

    It is the rank of y among S draws of Y, ties (of counts) broken at random, plus a uniform number, over S + 1.
    """
    targets = found.checked(truth)
    found.check_has_noise("y has no intervals")
    source = found.again("calibration")
    parts = []
    for place, values in source.simulated():
        y, draws = targets[place], values.reshape(-1, len(targets[place]))
        uniform = [np.random.default_rng([source.seed, i, 1]).random() for i in range(place.start, place.stop)]
        parts.append(((draws < y).sum(0) + np.array(uniform) * ((draws == y).sum(0) + 1)) / (len(draws) + 1))
    return np.concatenate(parts)
