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
from .errors import InputError


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

    mean ← mean + (θ − mean)/t,   squares ← squares + (θ − old mean)(θ − new mean)   (Welford 1962)

    Both sums are compensated for rounding, and no two large numbers are subtracted, wherever the first draw was.
    """

    def init(self, position: Position) -> tuple[Compensated, Compensated]:
        return Compensated.zeros(position), Compensated.zeros(position)

    def update(
        self, summary: tuple[Compensated, Compensated], position: Position, count: Int[Array, ""]
    ) -> tuple[Compensated, Compensated]:
        mean, squares = summary
        before = mean.distance_to(position)
        mean = mean.add(jax.tree.map(lambda change: change / count.astype(change.dtype), before))
        after = mean.distance_to(position)
        return mean, squares.add(jax.tree.map(jnp.multiply, before, after))

    def result(self, summary: tuple[Compensated, Compensated], count: Int[Array, ""]) -> MomentsSummary:
        mean, squares = summary
        variance = jax.tree.map(lambda total: total / (count - 1).astype(total.dtype), squares.value())
        return MomentsSummary(mean.value(), variance)


def as_collector(collect: AbstractCollector | Callable | None) -> AbstractCollector:
    """The collector that `ewsg.sample(collect=...)` stands for."""
    if isinstance(collect, AbstractCollector):
        return collect
    if isinstance(collect, type):
        raise InputError(f"collect must be an instance, not the class {collect.__name__}: write {collect.__name__}()")
    if collect is not None and not callable(collect):
        raise InputError(
            f"collect must be None, a function of the position, or a collector such as ewsg.collect.Moments(), "
            f"not {collect!r}"
        )
    return Draws(collect)


def check_collector(collector: AbstractCollector, position: Position) -> None:
    """Refuse a collector that fails, or keeps what is not an array, for a position like this one."""

    def use(position: Position) -> Any:
        count = jnp.int32(2)
        summary = collector.update(collector.init(position), position, count)
        return collector.row(position), collector.result(summary, count)

    try:
        jax.eval_shape(use, position)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"collect failed for the parameters at the start: {reason}") from error
