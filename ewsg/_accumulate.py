"""Sums that stay right over 10^9 steps in 32 bits: compensated floats and two-word counters."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ._types import Position


class Compensated(NamedTuple):
    """A pytree of sums and of what rounding has taken off them (Neumaier 1974)."""

    total: Position
    lost: Position

    @staticmethod
    def zeros(tree: Position) -> "Compensated":
        """The empty sum of vectors like `tree`."""
        zero = jax.tree.map(jnp.zeros_like, tree)
        return Compensated(zero, jax.tree.map(jnp.copy, zero))

    def add(self, tree: Position) -> "Compensated":
        """The sum with one more term."""
        totals = jax.tree.map(jnp.add, self.total, tree)

        def compensate(lost, old, new, term):
            larger = jnp.abs(old) >= jnp.abs(term)
            return lost + jnp.where(larger, (old - new) + term, (term - new) + old)

        return Compensated(totals, jax.tree.map(compensate, self.lost, self.total, totals, tree))

    def value(self) -> Position:
        """The sum, rounded once."""
        return jax.tree.map(jnp.add, self.total, self.lost)


class Counter(NamedTuple):
    """A count of up to 2^64 in two 32-bit words."""

    high: Array
    low: Array

    @staticmethod
    def zero() -> "Counter":
        """Nothing counted."""
        return Counter(jnp.uint32(0), jnp.uint32(0))

    def add(self, number: Array | int) -> "Counter":
        """The count plus a number below 2^32."""
        low = self.low + jnp.uint32(number)
        return Counter(self.high + (low < self.low).astype(jnp.uint32), low)

    def value(self) -> np.ndarray:
        """The count as 64-bit integers, on the host."""
        return (np.asarray(self.high).astype(np.int64) << 32) + np.asarray(self.low).astype(np.int64)
