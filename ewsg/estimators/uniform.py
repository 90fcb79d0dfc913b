"""Uniform minibatches: the stochastic gradient of SGLD and SGHMC."""

from typing import Any

import equinox as eqx

from .. import _random
from .._core.settings import plain
from .._core.types import Key, Position
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractMinibatch, batch_noise, draw_batch


class Uniform(AbstractMinibatch):
    """force = (n/b) Σ_{i in batch} ∇(−V_i), a fresh uniform batch each step; unbiased.

    Args:
        batch_size: b.
        replace: draw with replacement (default), or b distinct data.
    """

    batch_size: int = eqx.field(static=True, converter=plain)
    replace: bool = eqx.field(static=True, default=True, converter=plain)

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        indices = draw_batch(_random.fold(key, 0), target, self.batch_size, self.replace)
        force = target.force(kick.position, indices)
        return force, state, EstimateInfo(indices, self.cost(target.num_data), {})

    def cost(self, num_data: int) -> Cost:
        return Cost(self.batch_size)

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self.batch_size, self.replace)
