"""Bulk effective sample size and rank-normalised split R-hat, in NumPy alone.

The numbers equal ArviZ's to rounding, as a test checks, but importing ArviZ takes two seconds, and its small package
`arviz-stats`, which imports most of SciPy, one.

References:
    A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner, Rank-normalization, folding, and localization:
    an improved R-hat, Bayesian Analysis 16 (2021), arXiv 1903.08008.
"""

import functools
import math
import statistics
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Shaped

FEWEST_DRAWS = 4
_RESOLUTION = float(np.finfo(np.float64).resolution)

Draws = Shaped[np.ndarray, "chain draw *shape"]
Matrix = Float[np.ndarray, "chain draw"]
Values = Float[np.ndarray, "*shape"]


def ess(draws: Draws) -> Values:
    """Bulk effective sample size of each parameter: NaN for fewer than four draws, or where a draw is NaN."""
    return _each(_ess, draws)


def rhat(draws: Draws) -> Values:
    """Rank-normalised split R-hat of each parameter, of bulk or tails, whichever is larger; NaN for a single chain."""
    return _each(_rhat, draws)


def _each(statistic: Callable[[Matrix], float], draws: Draws) -> Values:
    """Apply a statistic to the (chain, draw) matrix of every parameter, as two half-length chains per chain."""
    chains, length, *shape = draws.shape
    flat = np.asarray(draws, np.float64).reshape(chains, length, math.prod(shape))
    values = np.full(flat.shape[2], np.nan)
    half = length // 2
    if chains and length >= FEWEST_DRAWS:
        with np.errstate(all="ignore"):
            for i in np.flatnonzero(~np.isnan(flat).any((0, 1))):
                values[i] = statistic(np.concatenate([flat[:, :half, i], flat[:, length - half :, i]]))
    return values.reshape(shape)


def _rhat(split: Matrix) -> float:
    if len(split) < 4:
        return np.nan
    bulk = _ratio(_normal_scores(split))
    tails = _ratio(_normal_scores(np.abs(split - np.median(split))))
    return max(bulk, tails)


def _ratio(values: Matrix) -> float:
    """√(1 − 1/D + B/W): B the variance of the chains' means, W the mean of their variances."""
    between, within = values.mean(1).var(ddof=1), values.var(1, ddof=1).mean()
    return float(np.sqrt(1 - 1 / values.shape[1] + between / within))


def _ess(split: Matrix) -> float:
    values = _normal_scores(split)
    if np.ptp(values) < _RESOLUTION:
        return values.size
    covariance = _autocovariance(values).mean(0)
    length = values.shape[1]
    within = covariance[0] * length / (length - 1)
    total = covariance[0] + values.mean(1).var(ddof=1)
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1
    return values.size / np.maximum(_autocorrelation_time(correlation), 1 / np.log10(values.size))


def _autocorrelation_time(correlation: Float[np.ndarray, " lag"]) -> float:
    """Geyer's initial monotone sequence: sums of pairs of lags, up to the first that is not positive."""
    number = max(1, (len(correlation) - 1) // 2)
    even, odd = correlation[0 : 2 * number : 2], correlation[1 : 2 * number : 2]
    pairs = even + odd
    last = min(int(np.argmax(np.append(~(pairs > 0), True))), len(pairs) - 1)
    remainder = even[last] if even[last] > 0 or pairs[last] >= 0 else 0.0
    return -1 + 2 * np.minimum.accumulate(pairs[:last]).sum() + remainder


def _autocovariance(values: Matrix) -> Matrix:
    """The autocovariance of every chain at every lag, by the fast Fourier transform."""
    length = values.shape[1]
    padded = 1 << (2 * length - 1).bit_length()
    transform = np.fft.rfft(values - values.mean(1, keepdims=True), padded, axis=1)
    return np.fft.irfft(np.abs(transform) ** 2, padded, axis=1)[:, :length] / length


def _normal_scores(values: Matrix) -> Matrix:
    """Replace every value by the normal quantile of its rank among all; equal values share their average rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    twice_the_rank = 2 * np.cumsum(counts) - counts + 1
    return _quantiles(values.size)[twice_the_rank - 2][place].reshape(values.shape)


@functools.lru_cache(maxsize=2)
def _quantiles(size: int) -> Float[np.ndarray, " half_rank"]:
    """Normal quantiles of the ranks 1, 1.5, 2, ..., `size`, with Blom's offset of 3/8."""
    lower = (np.arange(2, size + 2) / 2 - 3 / 8) / (size + 1 / 4)
    quantile = statistics.NormalDist().inv_cdf
    below = np.array([quantile(share) for share in lower.tolist()])
    return np.concatenate([below[:-1], [0.0], -below[-2::-1]])
