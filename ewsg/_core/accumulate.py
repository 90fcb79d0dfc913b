"""Sums that stay accurate over 10^9 steps in 32-bit arithmetic: compensated floats and two-word counters."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .types import Position


class Compensated(NamedTuple):
    """A pytree of sums, each held as the unevaluated sum of two floats (Dekker 1971): about 48 bits in float32."""

    high: Position
    low: Position

    @staticmethod
    def zeros(tree: Position) -> "Compensated":
        """The empty sum of vectors like `tree`."""
        return Compensated(jax.tree.map(jnp.zeros_like, tree), jax.tree.map(jnp.zeros_like, tree))

    def add(self, tree: Position) -> "Compensated":
        """The sum with one more term."""
        pairs = jax.tree.map(_add_to_pair, self.high, self.low, tree)
        return Compensated(*jax.tree.transpose(jax.tree.structure(tree), jax.tree.structure((0, 0)), pairs))

    def value(self) -> Position:
        """The sum, rounded once."""
        return jax.tree.map(jnp.add, self.high, self.low)

    def distance_to(self, tree: Position) -> Position:
        """tree − sum, rounded only after the leading digits have cancelled."""
        return jax.tree.map(lambda high, low, leaf: (leaf - high) - low, self.high, self.low, tree)


@jax.jit
def _add_to_pair(high: Array, low: Array, term: Array) -> tuple[Array, Array]:
    """(high, low) + term, keeping the rounding error of each addition; traced once for all sums of a shape."""
    total = high + term
    virtual = total - high
    error = (high - (total - virtual)) + (term - virtual)
    low = low + error
    normalized = total + low
    return normalized, low - (normalized - total)


class Counter(NamedTuple):
    """A count of up to 2^64 in two 32-bit words."""

    high: Array
    low: Array

    @staticmethod
    def zero() -> "Counter":
        """A count of 0."""
        return Counter(jnp.uint32(0), jnp.uint32(0))

    def add(self, number: Array | int) -> "Counter":
        """The count plus a number below 2^32."""
        low = self.low + jnp.uint32(number)
        return Counter(self.high + (low < self.low).astype(jnp.uint32), low)

    def value(self) -> np.ndarray | np.int64:
        """The count as 64-bit integers, on the host."""
        return (np.asarray(self.high).astype(np.int64) << 32) + np.asarray(self.low).astype(np.int64)


class Counts(NamedTuple):
    """The count of a chain, in two parts: `every`, which all chains share and which is stored once, and its `own`."""

    every: Counter
    own: Counter

    @staticmethod
    def zero() -> "Counts":
        """Counts of 0."""
        return Counts(Counter.zero(), Counter.zero())

    def add(self, number: Array | int) -> "Counts":
        """The counts plus a number; a Python int counts for every chain."""
        if isinstance(number, int):
            return self._replace(every=self.every.add(number))
        return self._replace(own=self.own.add(number))

    def value(self) -> np.ndarray | np.int64:
        """The count of each chain."""
        return self.every.value() + self.own.value()
