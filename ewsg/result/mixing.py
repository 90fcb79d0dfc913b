"""Whether chains have mixed: exact diagnostics per parameter, and a quick screen for the parameters that need them."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from .._core import ess as _ess

_ROUNDING_RATIO = 1e-12
Chains = Shaped[np.ndarray, "p chain draw"]
Each = Float[np.ndarray, " p"]


class Mixing(NamedTuple):
    """Effective sample size and R-hat of each parameter; NaN with too few draws, or if a draw is NaN."""

    ess: Each
    rhat: Each


def mixing(values: Chains) -> Mixing:
    """Bulk effective sample size and rank-normalised split R-hat, in a millisecond or two per parameter."""
    last = np.moveaxis(values, 0, 2)
    rhat = _ess.rhat(last)
    return Mixing(_ess.ess(last), np.where(rhat > 1 / _ROUNDING_RATIO, np.inf, rhat))


def screen(values: Chains) -> Each:
    """The larger of the plain split R-hats of θ and of |θ − median|, for many parameters at once.

    It uses no ranks: it only orders parameters by how far chains differ in location and in scale. NaN with too few
    draws.
    """
    number, chains, draws = values.shape
    if chains == 0 or draws < _ess.FEWEST_DRAWS:
        return np.full(number, np.nan)
    half = draws // 2
    split = np.concatenate([values[..., :half], values[..., -half:]], axis=1).astype(np.float64)
    folded = np.abs(split - np.median(split, axis=(1, 2), keepdims=True))
    return np.fmax(_split_rhat(split), _split_rhat(folded))


def rhat_of_moments(means: Float[np.ndarray, "chain p"], variances: Float[np.ndarray, "chain p"], draws: int) -> Each:
    """√((1 − 1/D) + B/W) for D draws: B the variance of the means of the chains, W the mean of their variances."""
    if len(means) < 2 or draws < 2:
        return np.full(means.shape[1], np.nan)
    return _ratio(means.var(0, ddof=1), variances.mean(0), draws)


def _split_rhat(values: Chains) -> Each:
    return _ratio(values.mean(2).var(1, ddof=1), values.var(2, ddof=1).mean(1), values.shape[2])


def _ratio(between: Each, within: Each, draws: int) -> Each:
    """√(1 − 1/D + B/W); NaN if nothing moved, infinite if chains stand still (up to rounding) at different values."""
    within = np.where(within < _ROUNDING_RATIO**2 * between, 0.0, within)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(1 - 1 / draws + between / within)
