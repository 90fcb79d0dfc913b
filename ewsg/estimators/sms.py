"""Symmetric minibatch splitting: through a random partition of the data, forwards and then backwards."""

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


class SMSState(NamedTuple):
    """The chain's own stream of partitions, which one it is in, and the place in its sweep."""

    words: Array
    sweep: Int[Array, ""]
    place: Int[Array, ""]


class SMS(AbstractMinibatch):
    """force = (n/b) Σ_{i in batch} ∇(−V_i), batches 1, 2, ..., m, m, ..., 2, 1 of a partition, then a fresh partition.

    m = ⌊n/b⌋. Errors of a forward sweep are undone by the backward one to leading order (Paulin, Whalley, Chada and
    Leimkuhler 2024); with `UBU` it is their SMS-UBU.

    Args:
        batch_size: b.
    """

    batch_size: int = eqx.field(static=True, converter=plain)

    def init(self, key: Key, target: Target, position: Position) -> SMSState:
        del target, position
        return SMSState(_random.pack(key), jnp.int32(0), jnp.int32(0))

    def estimate(
        self, key: Key, target: Target, kick: Kick, state: SMSState
    ) -> tuple[Position, SMSState, EstimateInfo]:
        stream = _random.unpack(state.words, _random.generator_of(key))
        batches = target.num_data // self.batch_size
        batch = jnp.minimum(state.place, 2 * batches - 1 - state.place)
        places = batch * self.batch_size + jnp.arange(self.batch_size, dtype=jnp.int32)
        indices = _random.shuffled(_random.fold(stream, state.sweep), places, target.num_data)
        force = target.force(kick.position, indices)
        following = pytree.where(
            state.place + 1 >= 2 * batches,
            state._replace(sweep=state.sweep + 1, place=jnp.zeros_like(state.place)),
            state._replace(place=state.place + 1),
        )
        return force, following, EstimateInfo(indices, self.cost(target.num_data), {})

    def cost(self, num_data: int) -> Cost:
        return Cost(self.batch_size)

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self.batch_size, replace=False)
