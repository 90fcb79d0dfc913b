"""What a run keeps: draws, a function of them, or running summaries that need no memory for draws."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ._accumulate import Compensated
from ._component import Component
from ._types import Position


class AbstractCollector(Component):
    """Called once for every kept draw (after `discard`, every `thin` steps), inside the compiled loop, for one chain.

    `row` says what is stored for each draw; `init`, `update` and `result` keep a summary of constant size.
    """

    def row(self, position: Position) -> Any:
        """The pytree stored for this draw in `run.draws`; () stores nothing."""
        del position
        return ()

    def init(self, position: Position) -> Any:
        """The empty summary; `position` is an example."""
        del position
        return ()

    @abc.abstractmethod
    def update(self, summary: Any, position: Position, count: Int[Array, ""]) -> Any:
        """The summary with one more draw; `count` includes it."""

    def result(self, summary: Any, count: Int[Array, ""]) -> Any:
        """What `run.collected` shows for a chain."""
        del count
        return summary


class Draws(AbstractCollector):
    """Keeps every draw, or `function(position)` of it."""

    function: Callable[[Position], Any] | None = eqx.field(static=True, default=None)

    def row(self, position: Position) -> Any:
        return position if self.function is None else self.function(position)

    def update(self, summary: Any, position: Position, count: Int[Array, ""]) -> Any:
        return summary


class MomentsSummary(NamedTuple):
    """Mean and variance of each coordinate over the kept draws of a chain."""

    mean: Position
    variance: Position


class Moments(AbstractCollector):
    """Mean and variance of every parameter, in O(d) memory however long the run.

    Sums deviations from the first kept draw, compensated for rounding.
    """

    def init(self, position: Position) -> Any:
        return position, Compensated.zeros(position), Compensated.zeros(position)

    def update(self, summary: Any, position: Position, count: Int[Array, ""]) -> Any:
        origin, sums, squares = summary
        origin = jax.tree.map(lambda o, p: jnp.where(count == 1, p, o), origin, position)
        deviation = jax.tree.map(jnp.subtract, position, origin)
        return origin, sums.add(deviation), squares.add(jax.tree.map(jnp.square, deviation))

    def result(self, summary: Any, count: Int[Array, ""]) -> MomentsSummary:
        origin, sums, squares = summary
        number = count.astype(jax.tree.leaves(origin)[0].dtype)
        shift = jax.tree.map(lambda s: s / number, sums.value())
        variance = jax.tree.map(lambda q, m: (q - number * m**2) / (number - 1), squares.value(), shift)
        return MomentsSummary(jax.tree.map(jnp.add, origin, shift), variance)


def as_collector(collect: AbstractCollector | Callable | None) -> AbstractCollector:
    """The collector that `ewsg.sample(collect=...)` stands for."""
    return collect if isinstance(collect, AbstractCollector) else Draws(collect)
