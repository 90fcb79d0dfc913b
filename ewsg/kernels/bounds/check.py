"""Checks before a run that a FlyMC bound is below the likelihood, and that its sum is right."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import _random
from ..._core import pytree
from ..._core.types import Indices, Position, Scalar
from ...errors import InputError
from ...target.target import Target
from .base import AbstractBound

_CHECKED_STARTS = 4
_DISTANCES_IN_STEPS = (0.0, 1.0, 3.0, 10.0)
_CHECKED_DATA = 1_024
_ROWS_PER_BLOCK = 16_384
_TOLERANCE_IN_EPS = 64.0
_RELATIVE_TOLERANCE = 1e-3


class _Values(NamedTuple):
    """The compared values, at each point (rows) and datum (columns)."""

    likelihood: Any
    bound: Any
    gap: Any


def check_bound(target: Target, bound: AbstractBound, statistics: Any, positions: Position, scale: Scalar) -> None:
    """Raise InputError if a bound is above the likelihood, or inconsistent, around the first starting points.

    Args:
        target: the posterior.
        bound: the prepared bound.
        statistics: the statistics of its sum.
        positions: starting points, stacked along a leading axis.
        scale: the step size; the points are 0, 1, 3 and 10 times a normal vector of this scale away.
    """
    name, n = type(bound).__name__, target.num_data
    points = _around(positions, scale)
    indices = jnp.arange(n) if n <= _CHECKED_DATA else _random.indices(jax.random.key(1), n, _CHECKED_DATA)
    values = _Values(*(np.asarray(part, np.float64) for part in _evaluate(target, bound, points, indices)))
    eps = float(jnp.finfo(jax.tree.leaves(positions)[0].dtype).eps)
    sizes = np.abs(values.likelihood) + np.abs(values.bound)
    tolerance = _TOLERANCE_IN_EPS * eps * (1 + np.where(np.isfinite(sizes), sizes, 0))

    def raise_if(amount: np.ndarray, message: str) -> None:
        """Raise InputError for the worst entry, if any is above the tolerance or NaN."""
        if not np.all(amount <= tolerance):
            point, column = np.unravel_index(np.argmax(np.where(np.isnan(amount), np.inf, amount)), amount.shape)
            at = jax.tree.map(lambda leaf: leaf[point].tolist(), points)
            raise InputError(f"{name} {message.format(amount[point, column])} (datum {int(indices[column])} at {at})")

    with np.errstate(invalid="ignore"):
        impossible = (values.likelihood == -np.inf) & (values.bound == -np.inf)
        above = np.where(impossible, 0, values.bound - values.likelihood)
        raise_if(above, "is not a lower bound, so FlyMC would not be exact: log_bound exceeds log_likelihood by {:.3g}")
        differs = np.where(impossible, 0, np.abs(values.gap + above))
        raise_if(differs, "is for a different likelihood: its gap differs from log_likelihood − log_bound by {:.3g}")
    _check_sum(target, bound, statistics, jax.tree.map(lambda leaf: leaf[: len(_DISTANCES_IN_STEPS)], points), eps)


def _check_sum(target: Target, bound: AbstractBound, statistics: Any, points: Position, eps: float) -> None:
    """Raise InputError unless the sum changes from point to point as much as its terms do."""
    sums, changes, sizes = (np.asarray(part, np.float64) for part in _totals(target, bound, statistics, points))
    found, expected = sums - sums[0], changes.sum(1)
    error = np.abs(found - expected)
    if not np.all(error <= _RELATIVE_TOLERANCE * np.abs(expected) + _TOLERANCE_IN_EPS * eps * (1 + sizes.sum(1))):
        worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
        raise InputError(
            f"{type(bound).__name__}: log_bound_sum changes by {found[worst]:.6g} between two points where the sum of "
            f"log_bound over the data changes by {expected[worst]:.6g}: correct one of them"
        )


def _around(positions: Position, scale: Scalar) -> Position:
    """Points at each distance from each of the first starting points."""
    count = min(_CHECKED_STARTS, jax.tree.leaves(positions)[0].shape[0])
    points = []
    for number in range(count):
        start = jax.tree.map(lambda leaf, number=number: leaf[number], positions)
        key = _random.fold(jax.random.key(0), number)
        for step, distance in enumerate(_DISTANCES_IN_STEPS):
            noise = _random.normal_like(_random.fold(key, step), start)
            points.append(pytree.cast_like(pytree.add_scaled(start, distance * scale, noise), start))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *points)


@jax.jit
def _evaluate(target: Target, bound: AbstractBound, points: Position, indices: Indices) -> _Values:
    batch = target.data.take(indices)

    def at(position: Position) -> _Values:
        gap = bound.gap(position, batch, target.likelihood).value
        return _Values(target.likelihood.values(position, batch), bound.log_bounds(position, batch), gap)

    return jax.lax.map(at, points)


@jax.jit
def _totals(
    target: Target, bound: AbstractBound, statistics: Any, points: Position
) -> tuple[Float[Array, " p"], Float[Array, "p blocks"], Float[Array, "p blocks"]]:
    """The sum at each point; and, per block of data, the change of the terms from the first point, and their sizes."""
    n = target.num_data
    size = min(n, _ROWS_PER_BLOCK)
    slots = jnp.arange(-(-n // size) * size, dtype=jnp.int32).reshape(-1, size)
    first = jax.tree.map(lambda leaf: leaf[0], points)

    def at(position: Position) -> tuple[Array, Array, Array]:
        def block(slots: Indices) -> tuple[Array, Array]:
            batch = target.data.take(jnp.minimum(slots, n - 1))
            here, there = bound.log_bounds(position, batch), bound.log_bounds(first, batch)
            own = slots < n
            sizes = jnp.abs(here) + jnp.abs(there)
            return jnp.sum(jnp.where(own, here - there, 0)), jnp.sum(jnp.where(own, sizes, 0))

        return bound.log_bound_sum(position, statistics), *jax.lax.map(block, slots)

    return jax.lax.map(at, points)
