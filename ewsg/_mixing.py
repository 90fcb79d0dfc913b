"""R-hat and effective sample size of many parameters at once: ArviZ's definitions, without its loop over parameters.

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner, Rank-normalization, folding, and localization: an
improved R-hat for assessing convergence of MCMC, Bayesian Analysis 2021. Arrays have shape (parameter, chain, draw).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped
from scipy.special import ndtri

_FEWEST_DRAWS = 4
_ROUNDING = 1e-12
Chains = Shaped[np.ndarray, "p chain draw"]
Each = Float[np.ndarray, " p"]


class Mixing(NamedTuple):
    """Effective sample size and R-hat of each parameter; NaN where there are too few draws, or where one is NaN."""

    ess: Each
    rhat: Each


def mixing(values: Chains) -> Mixing:
    """Bulk effective sample size, and rank-normalised split R-hat (the larger of plain and folded)."""
    number, chains, draws = values.shape
    if chains == 0 or draws < _FEWEST_DRAWS:
        return Mixing(np.full(number, np.nan), np.full(number, np.nan))
    half = draws // 2
    split = np.concatenate([values[..., :half], values[..., -half:]], axis=1)
    normal = _normalised(split)
    folded = _normalised(np.abs(split - np.median(split, axis=(1, 2), keepdims=True)))
    rhat, ess = np.fmax(_rhat(normal), _rhat(folded)), _ess(normal)
    missing = np.isnan(values).any((1, 2))
    return Mixing(np.where(missing, np.nan, ess), np.where(missing, np.nan, rhat))


def rhat_of_moments(means: Float[np.ndarray, "chain p"], variances: Float[np.ndarray, "chain p"], draws: int) -> Each:
    """√((1 − 1/D) + B/W): B the variance between the means of the chains, W the mean of their variances."""
    if len(means) < 2 or draws < 2:
        return np.full(means.shape[1], np.nan)
    return _ratio(means.var(0, ddof=1), variances.mean(0), draws)


def _normalised(values: Chains) -> Float[np.ndarray, "p chain draw"]:
    """Normal scores of the ranks among all draws of a parameter; equal draws share the mean of their ranks."""
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    size = flat.shape[1]
    scores = ndtri((np.arange(2 * size - 1) / 2 + 1 - 3 / 8) / (size + 1 / 4))  # of ranks 1, 1.5, 2, ...
    normal = np.empty(flat.shape)
    np.put_along_axis(normal, order, scores[_twice_the_place(ordered)], axis=1)
    return normal.reshape(values.shape)


def _twice_the_place(ordered: Shaped[np.ndarray, "p n"]) -> Shaped[np.ndarray, "p n"]:
    """First plus last place of the entries equal to each one, in sorted rows."""
    number, size = ordered.shape
    places = np.broadcast_to(np.arange(size), ordered.shape)
    edge, change = np.ones((number, 1), bool), ordered[:, 1:] != ordered[:, :-1]
    if change.all():
        return 2 * places
    first = np.maximum.accumulate(np.where(np.concatenate([edge, change], 1), places, 0), axis=1)
    last = np.minimum.accumulate(np.where(np.concatenate([change, edge], 1), places, size)[:, ::-1], axis=1)[:, ::-1]
    return first + last


def _rhat(values: Chains) -> Each:
    return _ratio(values.mean(2).var(1, ddof=1), values.var(2, ddof=1).mean(1), values.shape[2])


def _ratio(between: Each, within: Each, draws: int) -> Each:
    """NaN where nothing moved, infinite where chains stand still (up to rounding) at different places."""
    within = np.where(within < _ROUNDING**2 * between, 0.0, within)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(1 - 1 / draws + between / within)


def _ess(values: Chains) -> Each:
    """M·N/τ with Geyer's initial positive and monotone sequence; M·N for a parameter that never moves."""
    _, chains, draws = values.shape
    covariance = _autocovariance(values)
    within = covariance[:, 0] * draws / (draws - 1)
    total = within * (draws - 1) / draws + values.mean(2).var(1, ddof=1)
    still = total < np.finfo(np.float64).tiny
    rho = 1 - (within[:, None] - covariance) / np.where(still, 1.0, total)[:, None]
    rho[:, 0] = 1
    pairs = rho[:, : draws // 2 * 2].reshape(len(rho), -1, 2).sum(2)
    positive = np.logical_and.accumulate(pairs[:, : max(0, (draws - 3) // 2)] > 0, axis=1)
    monotone = np.minimum.accumulate(np.where(positive, pairs[:, : positive.shape[1]], 0.0), axis=1)
    row, stop = np.arange(len(rho)), positive.sum(1)
    last = np.where((rho[row, 2 * stop] > 0) | (pairs[row, stop] >= 0), rho[row, 2 * stop], 0.0)
    tau = -1 + 2 * monotone.sum(1) + last
    size = chains * draws
    return np.where(still, size, size / np.maximum(tau, 1 / np.log10(size)))


def _autocovariance(values: Chains) -> Float[np.ndarray, "p draw"]:
    """The mean over chains of the autocovariance at every lag, by FFT."""
    draws = values.shape[2]
    length = 1 << (2 * draws - 1).bit_length()
    transformed = np.fft.rfft(values - values.mean(2, keepdims=True), length)
    power = np.square(transformed.real) + np.square(transformed.imag)
    return np.fft.irfft(power.mean(1), length)[:, :draws] / draws
