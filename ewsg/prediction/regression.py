"""Prediction of a number: its mean, its sd, intervals, and draws of it."""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from .._core.types import Batch, Position
from ..errors import InputError
from .classes import agreement

LEVEL = 0.9
_ENTRIES_PER_BLOCK = 2**22
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Source(NamedTuple):
    """The ingredients of a prediction, kept because intervals and densities need another pass over all draws."""

    outputs: Callable[[Position, Batch], np.ndarray]
    draws: Position
    inputs: Batch
    block: int
    seed: int

    def blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Blocks of rows: their slice, and mean and noise sd of y, both of shape (chains, draws, rows)."""
        num_chains, num_draws = jax.tree.leaves(self.draws)[0].shape[:2]
        num_rows = jax.tree.leaves(self.inputs)[0].shape[0]
        size = max(1, min(self.block, _ENTRIES_PER_BLOCK // (num_chains * num_draws)))
        for start in range(0, num_rows, size):
            place = slice(start, min(start + size, num_rows))
            rows = jax.tree.map(lambda leaf, place=place: leaf[place], self.inputs)
            found = np.stack(
                [
                    self.outputs(jax.tree.map(lambda leaf, at=(chain, k): leaf[at], self.draws), rows)
                    for chain in range(num_chains)
                    for k in range(num_draws)
                ]
            ).reshape(num_chains, num_draws, -1, 2)
            yield place, found[..., 0], np.sqrt(found[..., 1])

    def simulated(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of rows: their slice, and one value of y per draw; random numbers depend on the seed and the row."""
        for place, mean, sd in self.blocks():
            if not np.any(sd):
                yield place, mean
                continue
            shape = mean.shape[:2]
            normal = [
                np.random.default_rng([self.seed, i]).standard_normal(shape) for i in range(place.start, place.stop)
            ]
            yield place, mean + sd * np.stack(normal, axis=-1)


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
        parts = [np.quantile(values, limits, axis=(0, 1)).T for _, values in self._again("interval").simulated()]
        return np.concatenate(parts)

    def draws(self) -> np.ndarray:
        """One draw of y per posterior draw, of shape (chains, draws, n): all of them in memory."""
        return np.concatenate([values for _, values in self._again("draws").simulated()], axis=-1)

    def log_density(self, targets: Any) -> np.ndarray:
        """log p(y) of each row, p being the mean over draws of N(y; mean, noise variance); shape (n,)."""
        targets = self.checked(targets)
        if not self.has_noise:
            raise InputError("y has no density without a noise scale: predict with noise=, or return (mean, log sd)")
        parts = []
        for place, mean, sd in self._again("log_density").blocks():
            terms = -0.5 * ((targets[place] - mean) / sd) ** 2 - np.log(sd) - _HALF_LOG_2PI
            parts.append(logsumexp(terms, axis=(0, 1)) - math.log(mean.shape[0] * mean.shape[1]))
        return np.concatenate(parts)

    def checked(self, targets: Any) -> np.ndarray:
        """The true values of y, one finite number per row, as an array."""
        found = np.asarray(targets)
        if found.shape != self.mean.shape or found.dtype.kind not in "biuf":
            raise InputError(
                f"targets must be {len(self.mean)} numbers, one per row, not {found.dtype} of shape {found.shape}"
            )
        if not np.all(np.isfinite(found)):
            raise InputError("some targets are NaN or infinite: leave these rows out")
        return found.astype(np.float64)

    def _again(self, what: str) -> Source:
        if self.source is None:
            raise InputError(f"{what} needs draws, and Predictive keeps none: keep draws and use predict")
        return self.source


class RegressionScore(NamedTuple):
    """How good a prediction of numbers is.

    Attributes:
        rmse: root mean square of y − mean.
        log_density: the mean over rows of log p(y), p being the average over draws.
        coverage: the share of rows whose y lies in the 90 % interval.
        rhat: agreement of the chains about the mean: √((1 − 1/D) + B/W); NaN for one chain or one draw.

    `log_density` and `coverage` are NaN without a noise scale, and after `Predictive`, which keeps no draws.
    """

    rmse: float
    log_density: float
    coverage: float
    rhat: float


def score_regression(found: Regression, targets: Any) -> RegressionScore:
    """Error, log predictive density, coverage and agreement of chains, against the true values."""
    targets = found.checked(targets)
    density = coverage = math.nan
    if found.has_noise and found.source is not None:
        low, high = found.interval(LEVEL).T
        coverage = float(np.mean((low <= targets) & (targets <= high)))
        density = float(found.log_density(targets).mean())
    rmse = float(np.sqrt(np.mean((targets - found.mean) ** 2)))
    return RegressionScore(rmse, density, coverage, agreement(found.by_chain, found.variance, found.num_draws))
