"""Minibatches in a fresh random order every epoch, as deep-learning loaders give them."""

from typing import ClassVar, NamedTuple

from jaxtyping import Array, Int

from .partition import AbstractPartition


class ReshuffledState(NamedTuple):
    """The key of the chain's own permutations as words, the epoch, and the number of the next batch in it."""

    words: Array
    epoch: Int[Array, ""]
    batch: Int[Array, ""]


class Reshuffled(AbstractPartition[ReshuffledState]):
    """force = (n/b) Σ_{i in batch} ∇(−V_i), batches taken in turn from a permutation of the data.

    Every epoch of ⌊n/b⌋ batches has its own permutation, and every chain its own; the n mod b data left over are
    skipped in that epoch. The permutation is computed where it is needed and never stored: O(b) memory per chain, for
    any n.

    Args:
        batch_size: b.
    """

    state_type: ClassVar[type] = ReshuffledState

    def visits(self, num_batches: int) -> int:
        return num_batches

    def batch_at(self, place: Int[Array, ""], num_batches: int) -> Int[Array, ""]:
        del num_batches
        return place
