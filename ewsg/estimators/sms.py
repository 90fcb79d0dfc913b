"""Symmetric minibatch splitting: through a random partition of the data, forwards and then backwards."""

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from .partition import AbstractPartition


class SMSState(NamedTuple):
    """The key of the chain's own partitions as words, the number of the current one, and the place in its sweeps."""

    words: Array
    sweep: Int[Array, ""]
    place: Int[Array, ""]


class SMS(AbstractPartition[SMSState]):
    """force = (n/b) Σ_{i in batch} ∇(−V_i), batches 1, 2, ..., m, m, ..., 2, 1 of a partition, then a fresh partition.

    m = ⌊n/b⌋. To leading order, the backward sweep cancels the errors of the forward one (Paulin, Whalley, Chada and
    Leimkuhler 2024); with `UBU` this is their SMS-UBU.

    Args:
        batch_size: b.
    """

    state_type: ClassVar[type] = SMSState

    def visits(self, num_batches: int) -> int:
        return 2 * num_batches

    def batch_at(self, place: Int[Array, ""], num_batches: int) -> Int[Array, ""]:
        return jnp.minimum(place, 2 * num_batches - 1 - place)
