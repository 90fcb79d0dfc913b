"""A stand-in for the potential of all data, from a sample drawn with probabilities that grow with the gradients."""

import numpy as np

from .account import Account
from .looks import Look, Sample
from .quasi_newton import Objective, descend

_SHARE, _LARGEST_SHARE = 32, 4  # the sample has n/32 data, and at most n/4
_FEWEST_DATA, _FEWEST_DATA_PER_PARAMETER = 8000, 160
_MOST_LOOKS = 30
_NEAR_SD, _NEAR_SHARE_OF_DISTANCE = 0.05, 0.03
_UNIFORM_SHARE = 0.5
_POOR_RATIO = 0.25


class Surrogate:
    """Ṽ(θ) = −Σ_{i∈S} w_i ℓ_i(θ) − log π(θ) + (∇V(a) − ∇V_S(a))·θ: V to first order at a, higher orders from S.

    The sample S is drawn by the size of the gradients at a, so that it contains rare classes and rare features: with
    inclusion probabilities q_i ∝ ½ + ½ n ρ_i/Σρ, at most 1, where ρ_i = ‖Rᵀ∇ℓ_i(a)‖, and weights w_i = 1/q_i.

    References:
        M. Jordan, J. Lee and Y. Yang, Communication-efficient distributed statistical inference, JASA 114 (2019).
    """

    def __init__(self, account: Account):
        n, least = account.num_data, max(_FEWEST_DATA, _FEWEST_DATA_PER_PARAMETER * account.dimension)
        self.size = min(n // _LARGEST_SHARE, max(n // _SHARE, least))
        self._data = _MOST_LOOKS * self.size
        self._account = account
        self._sample: Sample | None = None
        self._path: list[Look] = []
        self._before, self._solved = np.inf, False

    def judge(self, distance: float) -> None:
        """Discard a sample whose mode was found, but is not much nearer to the mode of all data."""
        if self._sample is not None and self._solved and distance > _POOR_RATIO * self._before:
            self.enlarge()
        self._before = distance

    def enlarge(self) -> None:
        """Discard the sample; the next one is twice as large."""
        self._sample = None
        self.size *= 2

    def mode(self, here: Look, distance: float) -> np.ndarray:
        """The θ that minimises the surrogate anchored at `here`, as far as the search comes."""
        if self._sample is None:
            scores = np.ones(self._account.num_data) if here.scores is None else here.scores
            indices, weights = draw(self._account.random, scores, self.size)
            self._sample, self._path = self._account.sample(indices, weights), []
        if not self._path or not np.array_equal(self._path[-1].theta, here.theta):
            self._path = [*self._path, self._sample.look(here.theta)]
        inside = self._path[-1]
        slope = inside.force + inside.prior_force - here.force - here.prior_force
        near = max(_NEAR_SD, _NEAR_SHARE_OF_DISTANCE * distance)
        most = min(self._data // self.size, self._account.looks_left(self.size))
        looks = self._sample.looks
        self._path = descend(Objective(self._sample, slope), self._path, most, near)
        self._solved = self._sample.looks - looks < most
        return self._path[-1].theta


def draw(random: np.random.Generator, scores: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """`size` distinct row numbers by Pareto sampling, half of the probability uniform; and their weights 1/q_i.

    References:
        B. Rosén, On sampling with probability proportional to size, J. Statistical Planning and Inference 62 (1997).
    """
    total, count = float(np.sum(scores, dtype=np.float64)), len(scores)
    uneven = scores / total if np.isfinite(total) and total > 0 else np.full(count, 1 / count)
    included = size * (_UNIFORM_SHARE / count + (1 - _UNIFORM_SHARE) * uneven.astype(np.float64))
    while np.any(included > 1):  # those are certain to be drawn; the others share the rest
        certain = included >= 1
        included = np.where(certain, 1.0, included * (size - np.sum(certain)) / np.sum(included[~certain]))
    uniform = random.uniform(size=count)
    keys = uniform / (1 - uniform) * (1 - included) / included
    indices = np.sort(np.argpartition(keys, size - 1)[:size])
    return indices, 1 / included[indices]
