"""Which of n data are bright, in two arrays, so that a datum is switched in O(1) and the bright ones can be listed.

`order` lists the data, the bright ones first, and `place` is its inverse: the two arrays of Maclaurin and Adams (2015),
section 3.3. Here data are switched in groups.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .._core.types import Indices

_SWITCHES_PER_ROUND = 32
"""The number of data switched at a time."""


class Table(NamedTuple):
    """A permutation of the data whose first `num_bright` entries are the bright ones.

    `order` is padded with 0, a valid row number, to whole blocks (`listed`).
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
        """Block `number` of the bright data, and which of its entries are bright (the last block may not be full)."""
        slots = number * block_size + jnp.arange(block_size, dtype=jnp.int32)
        return _take(self.order, slots), slots < self.num_bright

    def switched(self, indices: Indices, bright: Bool[Array, " b"]) -> "Table":
        """The table after the given (distinct) data have become bright or dark.

        The work grows with the number of data that change, apart from one cumulative sum over all given data.
        """
        return _switch(self, indices, self.is_bright(indices) ^ bright)


@jax.custom_batching.custom_vmap
def _switch(table: Table, indices: Indices, changes: Bool[Array, " b"]) -> Table:
    """Switch those of the given data that change."""
    return jax.tree.map(lambda leaf: leaf[0], _switch_all(*jax.tree.map(lambda x: x[None], (table, indices, changes))))


@_switch.def_vmap
def _switch_batched(axis_size: int, in_batched: list, *arguments) -> tuple[Table, Any]:
    """Switch in all chains in one loop of common length: `vmap` of the loop would copy the tables in every round."""

    def spread(is_batched: bool, leaf: Array) -> Array:
        return leaf if is_batched else jnp.broadcast_to(leaf[None], (axis_size, *leaf.shape))

    switched = _switch_all(*jax.tree.map(spread, tuple(in_batched), arguments))
    return switched, jax.tree.map(lambda _: True, switched)


def _switch_all(tables: Table, indices: Int[Array, "c b"], changes: Bool[Array, "c b"]) -> Table:
    """`_switch` for every chain, a few data at a time, until the chain with the most changes is done."""
    running = jnp.cumsum(changes, axis=1, dtype=jnp.int32)
    most = jnp.max(running[:, -1])
    size = min(_SWITCHES_PER_ROUND, indices.shape[1])

    def some(number: Int[Array, ""], tables: Table) -> Table:
        wanted = number * size + 1 + jnp.arange(size, dtype=jnp.int32)

        def chain(table: Table, indices: Indices, running: Indices) -> Table:
            entries = jnp.searchsorted(running, wanted).astype(jnp.int32)
            return _switch_few(table, indices.at[entries].get(mode="clip"), entries < indices.shape[0])

        return jax.vmap(chain)(tables, indices, running)

    return jax.lax.fori_loop(0, -(-most // size), some, tables)


def _switch_few(table: Table, indices: Indices, chosen: Bool[Array, " b"]) -> Table:
    """Switch the chosen ones of a few data: first those to be darkened, then those to be brightened."""
    bright = table.is_bright(indices)
    darkened, brightened = chosen & bright, chosen & ~bright
    num_bright = table.num_bright - jnp.sum(darkened, dtype=jnp.int32)
    order, place = _bring(table.order, table.place, indices, darkened, num_bright)
    order, place = _bring(order, place, indices, brightened, num_bright)
    return Table(order, place, num_bright + jnp.sum(brightened, dtype=jnp.int32))


def _bring(
    order: Int[Array, " padded"],
    place: Int[Array, " n"],
    indices: Indices,
    chosen: Bool[Array, " b"],
    start: Int[Array, ""],
) -> tuple[Int[Array, " padded"], Int[Array, " n"]]:
    """Exchange the chosen data with those in the slots start, start + 1, ..., as many as are chosen.

    Chosen data that are already there stay; the k-th of the others is exchanged with the k-th datum that has to leave.
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
