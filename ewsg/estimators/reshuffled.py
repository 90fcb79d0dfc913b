"""Minibatches in a fresh random order every epoch, as deep-learning loaders give them."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random
from .._core import pytree
from .._core.settings import plain
from .._core.types import Key, Position
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractMinibatch, batch_noise


class ReshuffledState(NamedTuple):
    """The chain's own stream of permutations, and where it stands in the current one."""

    words: Array
    epoch: Int[Array, ""]
    batch: Int[Array, ""]


class Reshuffled(AbstractMinibatch):
    """force = (n/b) Σ_{i in batch} ∇(−V_i), batches taken in turn from a permutation of the data.

    Every epoch of ⌊n/b⌋ batches has its own permutation, and every chain its own; the n mod b data that are left over
    sit that epoch out. The permutation is computed where it is needed and never stored: O(b) memory per chain, for
    any n.

    Args:
        batch_size: b.
    """

    batch_size: int = eqx.field(static=True, converter=plain)

    def init(self, key: Key, target: Target, position: Position) -> ReshuffledState:
        del target, position
        return ReshuffledState(_random.pack(key), jnp.int32(0), jnp.int32(0))

    def estimate(
        self, key: Key, target: Target, kick: Kick, state: ReshuffledState
    ) -> tuple[Position, ReshuffledState, EstimateInfo]:
        stream = _random.unpack(state.words, _random.generator_of(key))
        places = state.batch * self.batch_size + jnp.arange(self.batch_size, dtype=jnp.int32)
        indices = _random.shuffled(_random.fold(stream, state.epoch), places, target.num_data)
        force = target.force(kick.position, indices)
        last = state.batch + 1 >= target.num_data // self.batch_size
        following = pytree.where(
            last,
            state._replace(epoch=state.epoch + 1, batch=jnp.zeros_like(state.batch)),
            state._replace(batch=state.batch + 1),
        )
        return force, following, EstimateInfo(indices, self.cost(target.num_data), {})

    def cost(self, num_data: int) -> Cost:
        return Cost(self.batch_size)

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self.batch_size, replace=False)
