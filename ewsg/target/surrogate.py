"""A stand-in for the potential of all data, made of a sample that is drawn by the size of the gradients."""

import numpy as np

from .account import Account
from .looks import Look, Sample
from .quasi_newton import Objective, descend

_SHARE, _LARGEST_SHARE, _PER_PARAMETER, _LEAST = 32, 4, 160, 8000
_LOOKS = 30
_NEAR, _NEAR_SHARE = 0.05, 0.03
_UNIFORM_SHARE = 0.5
_POOR = 0.25


class Surrogate:
    """Ṽ(θ) = −Σ_{i∈S} w_i ℓ_i(θ) − log π(θ) + (∇V(a) − ∇V_S(a))·θ: V to first order at a, then like a sample S.

    With S drawn by the size of the gradients at a, so that rare classes and rare features are in it: inclusion
    probabilities π_i ∝ ½ + ½ n ρ_i/Σρ with ρ_i = ‖Rᵀ∇ℓ_i(a)‖, weights w_i = 1/π_i.

    References:
        M. Jordan, J. Lee and Y. Yang, Communication-efficient distributed statistical inference, JASA 114 (2019).
    """

    def __init__(self, account: Account):
        n, least = account.num_data, max(_LEAST, _PER_PARAMETER * account.dimension)
        self.size = min(n // _LARGEST_SHARE, max(n // _SHARE, least))
        self._data = _LOOKS * self.size
        self._account = account
        self._sample: Sample | None = None
        self._path: list[Look] = []
        self._before, self._solved = np.inf, False

    def judge(self, distance: float) -> None:
        """Forget a sample whose mode, though found, has not brought that of all data much nearer."""
        if self._sample is not None and self._solved and distance > _POOR * self._before:
            self.enlarge()
        self._before = distance

    def enlarge(self) -> None:
        """Forget the sample; the next one is twice as large."""
        self._sample = None
        self.size *= 2

    def mode(self, here: Look, distance: float) -> np.ndarray:
        """θ where the surrogate around `here` is least."""
        if self._sample is None:
            scores = np.ones(self._account.num_data) if here.scores is None else here.scores
            indices, weights = draw(self._account.random, scores, self.size)
            self._sample, self._path = self._account.sample(indices, weights), []
        if not self._path or not np.array_equal(self._path[-1].theta, here.theta):
            self._path = [*self._path, self._sample.look(here.theta)]
        inside = self._path[-1]
        slope = inside.force + inside.prior_force - here.force - here.prior_force
        near = max(_NEAR, _NEAR_SHARE * distance)
        most = min(self._data // self.size, self._account.looks_left(self.size))
        looks = self._sample.looks
        self._path = descend(Objective(self._sample, slope), self._path, most, near)
        self._solved = self._sample.looks - looks < most
        return self._path[-1].theta


def draw(random: np.random.Generator, scores: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """`size` different row numbers, by Pareto sampling with half of the probability uniform; and their weights 1/π_i.

    References:
        B. Rosén, On sampling with probability proportional to size, J. Statistical Planning and Inference 62 (1997).
    """
    total, count = float(np.sum(scores, dtype=np.float64)), len(scores)
    uneven = scores / total if np.isfinite(total) and total > 0 else np.full(count, 1 / count)
    included = size * (_UNIFORM_SHARE / count + (1 - _UNIFORM_SHARE) * uneven.astype(np.float64))
    while np.any(included > 1):  # those are certain; the others share what is left
        certain = included >= 1
        included = np.where(certain, 1.0, included * (size - np.sum(certain)) / np.sum(included[~certain]))
    uniform = random.uniform(size=count)
    keys = uniform / (1 - uniform) * (1 - included) / included
    indices = np.sort(np.argpartition(keys, size - 1)[:size])
    return indices, 1 / included[indices]
