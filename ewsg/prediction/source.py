"""Another pass over draws and inputs, a block of rows at a time: draws of y, and densities of given values."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from .._core.types import Batch, Position

_ENTRIES_PER_BLOCK = 2**22
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Source(NamedTuple):
    """The ingredients of a prediction, kept because intervals and densities need another pass over all draws."""

    outputs: Callable[[Position, Batch], np.ndarray]
    draws: Position
    inputs: Batch
    block: int
    seed: int
    counts: bool = False

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
            rows = range(place.start, place.stop)
            values = [
                self._one(np.random.default_rng([self.seed, i]), mean[..., k], sd[..., k]) for k, i in enumerate(rows)
            ]
            yield place, np.stack(values, axis=-1)

    def _one(self, rng: np.random.Generator, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
        """One value of y of a row, per draw."""
        return rng.poisson(mean).astype(np.float64) if self.counts else mean + sd * rng.standard_normal(mean.shape)

    def log_densities(self, targets: np.ndarray) -> Iterator[np.ndarray]:
        """Blocks of rows: log p(y | draw) of the given y, of shape (chains, draws, rows)."""
        from scipy.special import gammaln, xlogy  # half a second, for which `ewsg.sample` need not wait

        for place, mean, sd in self.blocks():
            y = targets[place]
            if self.counts:
                yield xlogy(y, mean) - mean - gammaln(y + 1)
            else:
                yield -0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - _HALF_LOG_2PI
