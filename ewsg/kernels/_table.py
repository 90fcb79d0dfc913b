"""Which of n data are bright, in two arrays, so that m of them can be switched in O(m) and the bright ones listed.

`order` lists the data with the bright ones first, `place` is its inverse. The data structure is that of Maclaurin and
Adams (2015), section 3.3; here m data are switched at once.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .._types import Indices


class Table(NamedTuple):
    """A permutation of the data whose first `num_bright` entries are the bright ones.

    `order` is padded to whole blocks (`listed`); what stands in the padding is 0, a datum like any other.
    """

    order: Int[Array, " padded"]
    place: Int[Array, " n"]
    num_bright: Int[Array, ""]

    @staticmethod
    def of(bright: Bool[Array, " n"], block_size: int) -> "Table":
        """The table of the given indicators."""
        n = bright.shape[0]
        num_bright = jnp.sum(bright, dtype=jnp.int32)
        first = jnp.cumsum(bright, dtype=jnp.int32) - 1
        rest = jnp.cumsum(~bright, dtype=jnp.int32) - 1 + num_bright
        place = jnp.where(bright, first, rest)
        padded = -(-n // block_size) * block_size
        order = jnp.zeros(padded, jnp.int32).at[place].set(jnp.arange(n, dtype=jnp.int32))
        return Table(order, place, num_bright)

    def is_bright(self, indices: Indices) -> Bool[Array, " b"]:
        """Whether the given data are bright."""
        return _take(self.place, indices) < self.num_bright

    def listed(self, number: Int[Array, ""], block_size: int) -> tuple[Indices, Bool[Array, " b"]]:
        """Block `number` of the bright data, and which of its entries are bright (the last block is not full)."""
        slots = number * block_size + jnp.arange(block_size, dtype=jnp.int32)
        return _take(self.order, slots), slots < self.num_bright

    def switched(self, indices: Indices, bright: Bool[Array, " b"]) -> "Table":
        """The table after the given (different) data have become bright or dark."""
        before = self.is_bright(indices)
        darkened, brightened = before & ~bright, ~before & bright
        num_bright = self.num_bright - jnp.sum(darkened, dtype=jnp.int32)
        order, place = _bring(self.order, self.place, indices, darkened, num_bright)
        order, place = _bring(order, place, indices, brightened, num_bright)
        return Table(order, place, num_bright + jnp.sum(brightened, dtype=jnp.int32))


def _bring(
    order: Int[Array, " padded"],
    place: Int[Array, " n"],
    indices: Indices,
    chosen: Bool[Array, " b"],
    start: Int[Array, ""],
) -> tuple[Int[Array, " padded"], Int[Array, " n"]]:
    """Exchanges the chosen data with what fills the slots start, start + 1, ..., as many as are chosen.

    Chosen data that are there already stay; the k-th of the others changes places with the k-th datum to be cleared.
    """
    size = indices.shape[0]
    count = jnp.sum(chosen, dtype=jnp.int32)
    slots = _take(place, indices)
    inside = chosen & (slots >= start) & (slots < start + count)
    settled = jnp.zeros(size, bool).at[jnp.where(inside, slots - start, size)].set(True, mode="drop")
    coming, going = chosen & ~inside, (jnp.arange(size, dtype=jnp.int32) < count) & ~settled
    entering, leaving = _where_true(coming), _where_true(going)
    moves = entering < size
    item_in, slot_in = _take(indices, entering % size), _take(slots, entering % size)
    slot_out = start + leaving
    item_out = order.at[slot_out].get(mode="clip")

    def write(array: Array, first: Array, second: Array, values: tuple[Array, Array]) -> Array:
        targets = jnp.concatenate([jnp.where(moves, first, array.size), jnp.where(moves, second, array.size)])
        return array.at[targets].set(jnp.concatenate(values), mode="drop")

    return write(order, slot_out, slot_in, (item_in, item_out)), write(place, item_in, item_out, (slot_out, slot_in))


def _where_true(mask: Bool[Array, " b"]) -> Indices:
    """The positions of the true entries in order, then `size` for the rest."""
    size = mask.shape[0]
    rank = jnp.cumsum(mask, dtype=jnp.int32) - 1
    positions = jnp.full(size, size, jnp.int32)
    return positions.at[jnp.where(mask, rank, size)].set(jnp.arange(size, dtype=jnp.int32), mode="drop")


def _take(array: Array, indices: Indices) -> Array:
    return array.at[indices].get(mode="promise_in_bounds")
