"""The exact force: the full-gradient baseline."""

from typing import Any

from .._core.types import Key, Position
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractEstimator


class Full(AbstractEstimator):
    """force = ∇(−V) over all n data; n datum gradients per step."""

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        del key
        return target.full_force(kick.position), state, EstimateInfo(None, self.cost(target.num_data), {})

    def cost(self, num_data: int) -> Cost:
        return Cost(num_data)

    def noise_factor(self, num_data: int) -> float:
        return 0.0
