"""Prediction of a number, real or a count: its mean, its sd, intervals, draws of it, and how good they are."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from ..errors import InputError
from .classes import agreement
from .source import Source

LEVEL = 0.9
_LARGEST_COUNT = 2.0**53


class Regression(NamedTuple):
    """The predictive distribution of y for n rows; of its mean, where no noise scale was given.

    Attributes:
        mean: of shape (n,), over all draws of all chains.
        sd: of shape (n,); by the law of total variance, sd² = variance of the mean over draws + mean noise variance.
        by_chain: of shape (chains, n), the mean over the draws of each chain.
        variance: of shape (chains, n), the variance of the mean over the draws of each chain; NaN for a single draw.
        noise_variance: of shape (chains, n), the noise variance of y averaged over the draws of each chain; 0 without a
            noise scale.
        num_draws: of each chain.
        source: the draws and inputs that `interval`, `log_density` and `draws` need; None after `Predictive`.
    """

    mean: np.ndarray
    sd: np.ndarray
    by_chain: np.ndarray
    variance: np.ndarray
    noise_variance: np.ndarray
    num_draws: int
    source: Source | None = None

    @classmethod
    def of_chains(
        cls, by_chain: np.ndarray, variance: np.ndarray, num_draws: int, source: Source | None = None
    ) -> "Regression":
        """From mean and variance over draws of (mean, noise variance), arrays of shape (chains, n, 2)."""
        means, noise, within = by_chain[..., 0], by_chain[..., 1], variance[..., 0]
        spread = np.where(np.isnan(within), 0.0, within) * (num_draws - 1) / num_draws + (means - means.mean(0)) ** 2
        return cls(means.mean(0), np.sqrt((spread + noise).mean(0)), means, within, noise, num_draws, source)

    @property
    def has_noise(self) -> bool:
        """Whether this is the distribution of y, not only of its mean."""
        return bool(np.any(self.noise_variance))

    def chain(self, number: int) -> "Regression":
        """The prediction of one chain alone."""
        source = self.source
        if source is not None:
            source = source._replace(draws=jax.tree.map(lambda leaf: leaf[number][None], source.draws))
        both = np.stack([self.by_chain[number], self.noise_variance[number]], axis=-1)[None]
        variance = np.stack([self.variance[number], np.zeros_like(self.variance[number])], axis=-1)[None]
        return self.of_chains(both, variance, self.num_draws, source)

    def interval(self, level: float = LEVEL) -> np.ndarray:
        """The central interval of each row, of shape (n, 2), from one draw of y per posterior draw.

        Goes over the draws again, a block of rows at a time: as much work as `predict`, in bounded memory.
        """
        if not 0 < level < 1:
            raise InputError(f"interval: level must lie between 0 and 1, not {level!r}")
        limits = [(1 - level) / 2, (1 + level) / 2]
        parts = [np.quantile(part, limits, axis=(0, 1)).T for _, part in self.again("interval").simulated()]
        return np.concatenate(parts)

    def draws(self) -> np.ndarray:
        """One draw of y per posterior draw, of shape (chains, draws, n): all of them in memory."""
        return np.concatenate([values for _, values in self.again("draws").simulated()], axis=-1)

    def log_density(self, targets: Any) -> np.ndarray:
        """log p(y) of each row, shape (n,), p being the mean over draws of N(mean, noise variance) or Poisson(mean)."""
        from scipy.special import logsumexp  # imported late, as in `Source`

        targets = self.checked(targets)
        self.check_has_noise("y has no density")
        count = len(self.by_chain) * self.num_draws
        terms = self.again("log_density").log_densities(targets)
        return np.concatenate([logsumexp(part, axis=(0, 1)) for part in terms]) - math.log(count)

    def crps(self, targets: Any) -> np.ndarray:
        """E|Y − y| − ½ E|Y − Y′| of each row, shape (n,): how far the distribution of Y is from the value y.

        Y and Y′ are independent predictions; all pairs of different draws estimate them, without bias if the draws are
        independent.
        """
        targets = self.checked(targets)
        self.check_has_noise("y has no CRPS")
        return np.concatenate([_crps(part, targets[at]) for at, part in self.again("crps").simulated()])

    def checked(self, targets: Any) -> np.ndarray:
        """The true values of y, one finite number per row, as an array."""
        found = np.asarray(targets)
        if found.shape != self.mean.shape or found.dtype.kind not in "biuf":
            raise InputError(
                f"targets must be {len(self.mean)} numbers, one per row, not {found.dtype} of shape {found.shape}"
            )
        if not np.all(np.isfinite(found)):
            raise InputError("some targets are NaN or infinite: leave these rows out")
        if self.source is not None and self.source.counts and not np.all((found >= 0) & (found == np.floor(found))):
            raise InputError("targets of counts must be whole numbers of at least 0: predict others as a regression")
        return found.astype(np.float64)

    def check_has_noise(self, problem: str) -> None:
        """Raise InputError, which begins with the problem, if this is the distribution of the mean of y alone."""
        if not self.has_noise:
            raise InputError(f"{problem} without a noise scale: predict with noise=, or return (mean, log sd)")

    def again(self, what: str) -> Source:
        """The source of another pass over the draws; InputError if there is none."""
        if self.source is None:
            raise InputError(f"{what} needs draws, and Predictive keeps none: keep draws and use predict")
        return self.source


def check_counts(rates: np.ndarray) -> None:
    """Raise InputError unless mean counts are numbers below 2⁵³, as those of which draws can be made."""
    if not np.all(rates < _LARGEST_COUNT):
        raise InputError("the mean count is infinite for some draws: return the logarithm of the mean count")


def check_noise(variance: np.ndarray) -> None:
    """Raise InputError unless the mean noise variances of each chain are numbers."""
    if not np.all(variance >= 0):
        raise InputError("the noise sd is negative or not a number for some draws: return the sd, not its logarithm")


def _crps(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The mean over draws of |Y − y|, less half the mean of |Y − Y′| over pairs of different draws."""
    values = np.sort(values.reshape(-1, len(targets)), axis=0)
    number = len(values)
    if number == 1:
        return np.full(len(targets), np.nan)
    ranks = 2 * np.arange(1, number + 1) - number - 1  # Σ_{j<k} (Y_k − Y_j) over the sorted values is Σ_k ranks_k Y_k
    return np.abs(values - targets).mean(0) - ranks @ values / (number * (number - 1))


class RegressionScore(NamedTuple):
    """How good a prediction of numbers is.

    Attributes:
        rmse: root mean square of y − mean.
        log_density: the mean over rows of log p(y), p being the average over draws: the log score.
        crps: the mean over rows of the continuous ranked probability score, in units of y; smaller is better.
        coverage: the share of rows whose y lies in the 90 % interval.
        rhat: agreement of the chains about the mean: √((1 − 1/D) + B/W); NaN for one chain or one draw.

    `log_density`, `crps` and `coverage` are NaN without a noise scale, and after `Predictive`, which keeps no draws.
    """

    rmse: float
    log_density: float
    crps: float
    coverage: float
    rhat: float


def score_regression(found: Regression, targets: Any) -> RegressionScore:
    """Error, log score, CRPS, coverage and agreement of chains, against the true values."""
    targets = found.checked(targets)
    density = crps = coverage = math.nan
    if found.has_noise and found.source is not None:
        low, high = found.interval(LEVEL).T
        coverage = float(np.mean((low <= targets) & (targets <= high)))
        density = float(found.log_density(targets).mean())
        crps = float(found.crps(targets).mean())
    rmse = float(np.sqrt(np.mean((targets - found.mean) ** 2)))
    return RegressionScore(rmse, density, crps, coverage, agreement(found.by_chain, found.variance, found.num_draws))
