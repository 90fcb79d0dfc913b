"""Prediction of classes: their probabilities, and how good they are."""

from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError

NUM_BINS = 15
_TINY = float(np.finfo(np.float32).tiny)


class Prediction(NamedTuple):
    """Class probabilities of n rows, averaged over draws.

    Attributes:
        probabilities: of shape (n, classes), the mean over all draws of all chains.
        by_chain: of shape (chains, n, classes), the mean over the draws of each chain.
        variance: of shape (chains, n, classes), the variance over the draws of each chain; NaN for a single draw.
        num_draws: of each chain.
    """

    probabilities: np.ndarray
    by_chain: np.ndarray
    variance: np.ndarray
    num_draws: int

    @classmethod
    def of_chains(cls, by_chain: np.ndarray, variance: np.ndarray, num_draws: int) -> "Prediction":
        """From mean and variance over the draws of each chain."""
        return cls(by_chain.mean(0), by_chain, variance, num_draws)

    def chain(self, number: int) -> "Prediction":
        """The prediction of one chain alone."""
        return self.of_chains(self.by_chain[number][None], self.variance[number][None], self.num_draws)


class Score(NamedTuple):
    """How good a prediction is.

    Attributes:
        error: the share of rows whose most probable class is wrong.
        log_likelihood: the mean over rows of log p(label), p being the average.
        calibration_error: expected calibration error, Σ_B (|B|/n) |accuracy(B) − confidence(B)| over 15 bins of equal
            width of the largest probability.
        brier: the mean over rows of Σ_k (p_k − [k = label])².
        rhat: agreement of the chains, see `rhat`; NaN for one chain or one draw.
    """

    error: float
    log_likelihood: float
    calibration_error: float
    brier: float
    rhat: float


def score_classes(prediction: Prediction, labels: Any) -> Score:
    """Error, log likelihood, calibration, Brier score and agreement of chains, against the true classes."""
    found, labels = prediction.probabilities, checked_labels(prediction, labels)
    rows = np.arange(len(labels))
    right = found.argmax(1) == labels
    truth = np.zeros_like(found)
    truth[rows, labels] = 1
    return Score(
        error=float(1 - right.mean()),
        log_likelihood=float(np.log(np.maximum(found[rows, labels], _TINY)).mean()),
        calibration_error=_calibration_error(found.max(1), right),
        brier=float(np.square(found - truth).sum(1).mean()),
        rhat=rhat(prediction, labels),
    )


def checked_labels(prediction: Prediction, labels: Any) -> np.ndarray:
    """The class of each row; True and False are classes 1 and 0."""
    rows, classes = prediction.probabilities.shape
    labels = np.asarray(labels)
    if labels.shape != (rows,):
        raise InputError(f"labels must be {rows} whole numbers, one per row, not shape {labels.shape}")
    if labels.dtype.kind not in "biu":
        raise InputError(
            f"labels must be whole numbers, the class of each row, not {labels.dtype}: convert classes with "
            '.astype(int), and predict numbers with kind="regression"'
        )
    labels = labels.astype(np.int64)
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"labels run from {labels.min()} to {labels.max()}: classes are 0 to {classes - 1}")
    return labels


def bins(probabilities: np.ndarray) -> np.ndarray:
    """The bin of each probability; bins are open below and closed above: (0, 1/15], (1/15, 2/15], ..."""
    return np.clip(np.ceil(probabilities * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)


def _calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    gap = np.bincount(bins(confidence), right - confidence, NUM_BINS)
    return float(np.abs(gap).sum() / len(confidence))


def rhat(prediction: Prediction, labels: np.ndarray) -> float:
    """Predictive R-hat: √((1 − 1/D) + B/W), for the probability of the true class.

    B is the variance between the means of the chains, W the mean variance within a chain of D draws, both averaged
    over rows; with one row this is ArviZ's `rhat(method="identity")`. Near 1 the chains agree in what they predict,
    whatever their weights do.
    """
    rows = np.arange(len(labels))
    return agreement(prediction.by_chain[:, rows, labels], prediction.variance[:, rows, labels], prediction.num_draws)


def agreement(means: np.ndarray, variances: np.ndarray, num_draws: int) -> float:
    """√((1 − 1/D) + B/W) from mean and variance of each chain's D draws, arrays of shape (chains, rows)."""
    if len(means) < 2 or num_draws < 2:
        return float("nan")
    between, within = means.var(0, ddof=1).mean(), variances.mean()
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt(1 - 1 / num_draws + between / within))
