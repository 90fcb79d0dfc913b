"""Collectors: what a run keeps, be it draws, a function of them, or running summaries that take no memory for draws."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ._core import pytree
from ._core.accumulate import Compensated
from ._core.component import Component
from ._core.types import Position
from .errors import InputError, first_line, shown
from .target.constraints import AbstractSupport
from .target.coordinates import AbstractCoordinates


class AbstractCollector(Component):
    """Called once for every kept draw (after `discard`, every `thin` steps), inside the compiled loop, for one chain.

    `row` is stored for each draw; `init`, `update` and `result` keep a summary of constant size.
    """

    def row(self, position: Position) -> Any:
        """The pytree stored for this draw in `run.draws`; () stores nothing."""
        del position
        return ()

    def init(self, position: Position) -> Any:
        """The summary of no draws; `position` is an example of a position."""
        del position
        return ()

    @abc.abstractmethod
    def update(self, summary: Any, position: Position, count: Int[Array, ""]) -> Any:
        """The summary with one more draw; `count` is the number of draws, this one included."""

    def result(self, summary: Any, count: Int[Array, ""]) -> Any:
        """The entry of `run.collected` for a chain."""
        del count
        return summary


class Draws(AbstractCollector):
    """Keeps every draw, or `function(position)` of it."""

    function: Callable[[Position], Any] | None = eqx.field(static=True, default=None)

    def row(self, position: Position) -> Any:
        return position if self.function is None else jax.tree.map(jnp.asarray, self.function(position))

    def update(self, summary: Any, position: Position, count: Int[Array, ""]) -> Any:
        return summary


class AbstractMapped(AbstractCollector):
    """Another collector, applied to a function of the position."""

    inner: eqx.AbstractVar[AbstractCollector]

    @abc.abstractmethod
    def place(self, position: Position) -> Position:
        """What the inner collector is given."""

    def row(self, position: Position) -> Any:
        return self.inner.row(self.place(position))

    def init(self, position: Position) -> Any:
        return self.inner.init(self.place(position))

    def update(self, summary: Any, position: Position, count: Int[Array, ""]) -> Any:
        return self.inner.update(summary, self.place(position), count)

    def result(self, summary: Any, count: Int[Array, ""]) -> Any:
        return self.inner.result(summary, count)


class InCoordinates(AbstractMapped):
    """Another collector, applied to θ = c + L z, for chains that run in z."""

    inner: AbstractCollector
    coordinates: AbstractCoordinates

    def place(self, position: Position) -> Position:
        return self.coordinates.place(position)


class Constrained(AbstractMapped):
    """Another collector, applied to constrained parameters, for chains that run in unconstrained positions."""

    inner: AbstractCollector
    support: AbstractSupport

    def place(self, position: Position) -> Position:
        return self.support.constrain(position)


def as_seen(
    collector: AbstractCollector, support: AbstractSupport | None, coordinates: AbstractCoordinates | None
) -> AbstractCollector:
    """The collector for the positions of chains, given one for what users see: z to θ, and θ to the parameters."""
    seen = collector if support is None else Constrained(collector, support)
    return seen if coordinates is None else InCoordinates(seen, coordinates)


class MomentsSummary(NamedTuple):
    """Mean and variance of each coordinate over the kept draws of a chain."""

    mean: Position
    variance: Position


class Moments(AbstractCollector):
    """Mean and variance of every parameter, in O(d) memory whatever the length of the run.

    mean ← mean + (θ − mean)/t,   squares ← squares + (θ − old mean)(θ − new mean)   (Welford 1962)

    Both sums are compensated for rounding errors, and no two large numbers are subtracted, wherever the draws lie.
    """

    def init(self, position: Position) -> tuple[Compensated, Compensated]:
        return Compensated.zeros(position), Compensated.zeros(position)

    def update(
        self, summary: tuple[Compensated, Compensated], position: Position, count: Int[Array, ""]
    ) -> tuple[Compensated, Compensated]:
        mean, squares = summary
        before = mean.distance_to(position)
        mean = mean.add(jax.tree.map(lambda change: _over(change, count), before))
        after = mean.distance_to(position)
        return mean, squares.add(jax.tree.map(jnp.multiply, before, after))

    def result(self, summary: tuple[Compensated, Compensated], count: Int[Array, ""]) -> MomentsSummary:
        """Mean and variance; NaN with too few draws, none for the mean and fewer than two for the variance."""
        mean, squares = summary
        known = jax.tree.map(lambda leaf: jnp.where(count > 0, leaf, jnp.nan), mean.value())
        variance = jax.tree.map(lambda total: jnp.where(count > 1, _over(total, count - 1), jnp.nan), squares.value())
        return MomentsSummary(known, variance)


def _over(total: Array, count: Int[Array, ""]) -> Array:
    """total / count, in at least float32: float16 ends at 65,504."""
    wide = pytree.wide_dtype(total)
    return (total.astype(wide) / count.astype(wide)).astype(total.dtype)


def as_collector(collect: AbstractCollector | Callable | None) -> AbstractCollector:
    """The collector for the argument of `ewsg.sample(collect=...)`."""
    if isinstance(collect, AbstractCollector):
        return collect
    if isinstance(collect, type):
        raise InputError(f"collect must be an instance, not the class {collect.__name__}: write {collect.__name__}()")
    if collect is not None and not callable(collect):
        raise InputError(
            f"collect must be None, a function of the position, or a collector such as ewsg.collect.Moments(), "
            f"not {shown(collect)}"
        )
    return Draws(collect)


def check_collector(collector: AbstractCollector, position: Position) -> None:
    """Raise InputError if the collector fails, or keeps anything but arrays, for a position like this one."""

    def use(position: Position) -> Any:
        count = jnp.int32(2)
        summary = collector.update(collector.init(position), position, count)
        return collector.row(position), collector.result(summary, count)

    if isinstance(collector, Draws) and collector.function is not None:
        _check_function(collector.function, position)
    try:
        kept = jax.eval_shape(use, position)
    except Exception as error:
        raise InputError(f"collect failed for the parameters at the start: {first_line(error)}") from error
    for leaf in jax.tree.leaves(kept):
        if not jnp.issubdtype(leaf.dtype, jnp.number) and leaf.dtype != bool:
            raise InputError(
                f"collect keeps {leaf.dtype}, but a file holds numbers only: keep jax.random.key_data(key) instead"
            )


def _check_function(function: Callable[[Position], Any], position: Position) -> None:
    """Raise InputError if a function returns nothing to keep, or values that JAX cannot hold."""
    returned = []

    def keep(position: Position) -> tuple[()]:
        returned.append(function(position))
        return ()

    try:
        jax.eval_shape(keep, position)
    except Exception as error:
        raise InputError(f"collect failed for the parameters at the start: {first_line(error)}") from error
    if not pytree.named_leaves("what collect returns", returned[0]):
        raise InputError(
            f"collect returns {shown(returned[0])}, so that no draw would be kept: return arrays, or leave collect out"
        )
