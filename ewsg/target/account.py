"""The budget of a mode search: the datum gradients it has used and those it has left."""

import numpy as np

from .._core.types import Position
from .looks import Sample
from .target import Target


class Account:
    """A search's settings and budget, and the samples whose looks are charged to it (`ewsg.target.looks`)."""

    def __init__(self, target: Target, start: Position, max_passes: int, tolerance: float, random: np.random.Generator):
        self.target, self.start, self.tolerance, self.random = target, start, tolerance, random
        self.everything = Sample(target, start)
        self.init = self.everything.theta(start)
        self.dimension, self.num_data = self.init.size, target.num_data
        self._samples = [self.everything]
        self._most = max_passes * target.num_data

    def sample(self, indices: np.ndarray, weights: np.ndarray | None = None) -> Sample:
        """A sample of the data, with weights; its looks are charged to this account."""
        self._samples.append(Sample(self.target, self.start, indices, weights))
        return self._samples[-1]

    @property
    def cost(self) -> int:
        """Datum gradients so far."""
        return sum(sample.cost for sample in self._samples)

    @property
    def passes_left(self) -> int:
        """How many passes over all data may still be made."""
        return max(0, self._most - self.cost) // self.num_data

    def looks_left(self, size: int) -> int:
        """How many looks at `size` data may still be taken, keeping one pass over all data in reserve."""
        return max(0, self._most - self.num_data - self.cost) // size
