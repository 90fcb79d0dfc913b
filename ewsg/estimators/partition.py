"""Minibatches that are the parts of a random partition of the data."""

import abc
from typing import ClassVar, Generic, TypeVar

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

StateT = TypeVar("StateT", bound=tuple)
"""A named tuple: the words of the chain's own key, the number of the partition, and the place in it."""


class AbstractPartition(AbstractMinibatch, Generic[StateT]):
    """force = (n/b) Σ_{i in batch} ∇(−V_i), batches in a fixed order from a partition, then from a new one.

    Every chain has partitions of its own, into ⌊n/b⌋ batches; the n mod b data left over are skipped. A partition is a
    random permutation that is computed where it is needed and never stored: O(b) memory per chain, for any n.
    """

    state_type: ClassVar[type]
    batch_size: int = eqx.field(static=True, converter=plain)

    @abc.abstractmethod
    def visits(self, num_batches: int) -> int:
        """The number of steps that use one partition."""

    @abc.abstractmethod
    def batch_at(self, place: Int[Array, ""], num_batches: int) -> Int[Array, ""]:
        """The number of the batch to use at a place, 0 to `visits` − 1."""

    def init(self, key: Key, target: Target, position: Position) -> StateT:
        del target, position
        return self.state_type(_random.pack(key), jnp.int32(0), jnp.int32(0))

    def estimate(self, key: Key, target: Target, kick: Kick, state: StateT) -> tuple[Position, StateT, EstimateInfo]:
        words, partition, place = state
        num_batches = target.num_data // self.batch_size
        stream = _random.unpack(words, _random.generator_of(key))
        first = self.batch_at(place, num_batches) * self.batch_size
        places = first + jnp.arange(self.batch_size, dtype=jnp.int32)
        indices = _random.shuffled(_random.fold(stream, partition), places, target.num_data)
        force = target.force(kick.position, indices)
        following = pytree.where(
            place + 1 >= self.visits(num_batches),
            self.state_type(words, partition + 1, jnp.zeros_like(place)),
            self.state_type(words, partition, place + 1),
        )
        return force, following, EstimateInfo(indices, self.cost(target.num_data), {})

    def cost(self, num_data: int) -> Cost:
        return Cost(self.batch_size)

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self.batch_size, replace=False)
