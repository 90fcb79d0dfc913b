"""Errors of ensembles: predictions averaged over k independent chains, as in the paper's tables (k = 100).

Every set of k chains is an ensemble. The mean error of ensembles of k is close to a + b/k. Intervals come from halves
of the chains (the delete-half jackknife), which, unlike a bootstrap, never put a chain into an ensemble twice.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy import stats

from ..claims import CONFIDENCE, Interval
from .chains import LEVELS

_MOST_ENSEMBLES, _HALVES = 200, 100


def errors(probabilities: np.ndarray, labels: np.ndarray, sizes: Sequence[int]) -> dict[int, float]:
    """The share of wrong rows (%) by ensemble size: the mean over all ensembles, or over 200 random ones.

    Args:
        probabilities: of shape (chains, rows, classes), in any unit.
        labels: the true classes.
        sizes: those beyond the number of chains are left out.
    """
    votes, truth, settled = _contested(probabilities, labels)
    return _errors(votes, truth, settled, len(labels), sizes)


def extrapolate(by_size: Mapping[int, float], size: int) -> float:
    """a + b/size, fitted to the errors by least squares; NaN for fewer than two sizes."""
    if len(by_size) < 2:
        return math.nan
    slope, intercept = np.polyfit([1 / k for k in by_size], list(by_size.values()), 1)
    return float(intercept + slope / size)


def error_at(size: int, probabilities: np.ndarray, labels: np.ndarray, sizes: Sequence[int]) -> Interval:
    """The error (%) of ensembles of `size`, extrapolated from smaller ones."""
    votes, truth, settled = _contested(probabilities, labels)

    def found(chains: np.ndarray) -> float:
        return extrapolate(_errors(votes[chains], truth, settled, len(labels), sizes), size)

    return by_halves(found, len(votes))


def brier_at(size: int, probabilities: np.ndarray, labels: np.ndarray) -> Interval:
    """The Brier score of ensembles of k: B₁ − (1 − 1/k) Σ_c Var(p_c), exact for averages over independent chains.

    Args:
        size: k.
        probabilities: of shape (chains, rows, classes), in 255ths.
        labels: the true classes.
    """
    found = probabilities.astype(np.float32) / LEVELS
    single = np.square(found - np.eye(found.shape[2], dtype=np.float32)[labels]).sum(2).mean(1)

    def score(chains: np.ndarray) -> float:
        spread = found[chains].var(0, ddof=1).sum(1).mean() if len(chains) > 1 else math.nan
        return float(single[chains].mean() - (1 - 1 / size) * spread)

    return by_halves(score, len(found))


def by_halves(statistic: Callable[[np.ndarray], float], number: int) -> Interval:
    """A statistic of all chains, and its interval from 100 random halves of them.

    The variance over halves of m of K chains, times m/(K − m), is that of the statistic of all.
    """
    value = statistic(np.arange(number))
    rng, kept = np.random.default_rng(0), number // 2
    found = [statistic(np.sort(rng.permutation(number)[:kept])) for _ in range(_HALVES)] if kept else [math.nan]
    if not np.all(np.isfinite(found)):
        return Interval(value, -math.inf, math.inf)
    spread = float(np.std(found)) * math.sqrt(kept / (number - kept))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, number - 1)) * spread
    return Interval(value, value - half, value + half)


def _contested(probabilities: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows on which chains disagree, with their classes, and how many of the others are wrong in every ensemble."""
    choice = probabilities.argmax(2)
    open_ = (choice != choice[0]).any(0)
    settled = int(np.sum(choice[0, ~open_] != labels[~open_]))
    return probabilities[:, open_].astype(np.float32), labels[open_], settled


def _errors(votes: np.ndarray, labels: np.ndarray, settled: int, rows: int, sizes: Sequence[int]) -> dict[int, float]:
    found = {}
    for size in sizes:
        if size <= len(votes):
            sums = np.tensordot(_members(len(votes), size), votes, 1)
            found[size] = 100 * (settled + float((sums.argmax(2) != labels).mean(0).sum())) / rows
    return found


def _members(number: int, size: int) -> np.ndarray:
    """Ensembles of `size` of the chains as rows of zeros and ones."""
    if math.comb(number, size) <= _MOST_ENSEMBLES:
        chosen = np.array(list(itertools.combinations(range(number), size)))
    else:
        chosen = np.random.default_rng(size).random((_MOST_ENSEMBLES, number)).argsort(1)[:, :size]
    members = np.zeros((len(chosen), number), np.float32)
    np.put_along_axis(members, chosen, 1, 1)
    return members
