"""Data drawn with probabilities that grow with their gradients: for rare classes and rare features."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Batch, Key, Position, Scalar
from ..errors import InputError, shown
from ..interface import Cost, EstimateInfo, Kick
from ..target.alias import AliasTable, alias_table
from ..target.target import Target
from ..target.weighted import weighted
from .base import AbstractEstimator, setting_named
from .paired import Paired
from .uniform import Uniform

_ROWS_PER_BLOCK = 16_384
_BLOCK_BYTES = 256 * 2**20


class Leverage(AbstractEstimator):
    r"""Draws datum i with probability p_i and divides its gradient by n p_i: importance sampling of the data.

    force = (1/b) Σ_{i in batch} ∇ℓ_i/p_i + ∇ log π,   p_i = u/n + (1 − u) ρ_i/Σρ,   ρ_i = rms over points of ‖∇ℓ_i‖

    Unbiased for any points. Weights 1/(n p_i) are at most 1/u, so that a datum whose gradient is small at the points
    and large elsewhere adds at most 1/u times as much to the second moment as in a uniform minibatch.

    In `ControlVariate(Leverage(Paired(8), points), ...)` the gradients are those of the anchored target,
    ∇ℓ_i(θ) − ∇ℓ_i(a): the data that matter are the few whose gradients change, such as those of a rare class.

    Costs as much per step as the inner estimator; before the first step, one pass over the data for each point and,
    inside `ControlVariate`, one more for the anchor. Resuming a saved run repeats that work.

    Args:
        inner: `Uniform` or `Paired`, with replacement; its data are then drawn with the probabilities p_i.
        points: a pytree like the parameters with one more leading axis: a few draws, roughly from the posterior.
        uniform_share: u, above 0 and at most 1; at 1 all p_i are equal.
        table: the p_i as an alias table, filled in by `prepare`; a given table is kept.
    """

    inner: AbstractEstimator
    points: Position = eqx.field(converter=pytree.as_arrays)
    uniform_share: float = eqx.field(static=True, default=0.3, converter=plain)
    table: AliasTable | None = eqx.field(default=None, metadata={"prepared": True})

    def __check_init__(self):
        if not isinstance(self.inner, AbstractEstimator):
            raise InputError(f"Leverage wraps an estimator, such as Paired(8), not {shown(self.inner)}")
        check_positive("Leverage", "uniform_share", self.uniform_share)
        if self.uniform_share > 1:
            raise InputError(f"Leverage: uniform_share must be at most 1, not {shown(self.uniform_share)}")

    def check(self, num_data: int, has_momentum: bool) -> None:
        if not isinstance(self.inner, Uniform | Paired) or not self.inner.replace:
            name = f"{type(self.inner).__name__}{'(replace=False)' if isinstance(self.inner, Uniform | Paired) else ''}"
            raise InputError(
                f"Leverage draws independent data, for Uniform and Paired with replace=True, not for {name}: write "
                "Leverage(Paired(b), points), with control variates around it, ControlVariate(Leverage(...), ...)"
            )
        self.inner.check(num_data, has_momentum)

    def prepare(self, target: Target) -> tuple["Leverage", Cost]:
        inner, (gradients, directional) = self.inner.prepare(target)
        if self.table is not None:
            return dataclasses.replace(self, inner=inner), Cost(gradients, directional)
        count = _check_points(target, self.points)
        sizes = np.asarray(jax.jit(gradient_sizes)(target, self.points), np.float64)
        if not np.all(np.isfinite(sizes)):
            raise InputError(
                f"Leverage: the gradient of datum {np.argmin(np.isfinite(sizes))} is not finite at points: give draws "
                "that are roughly from the posterior"
            )
        table = alias_table(draw_law(sizes, self.uniform_share))
        passes = target.likelihood.passes(count)
        prepared = dataclasses.replace(self, inner=inner, table=table)
        return prepared, Cost(gradients + passes * target.num_data, directional)

    def init(self, key: Key, target: Target, position: Position) -> Any:
        given, wanted = ([leaf.shape for leaf in jax.tree.leaves(tree)] for tree in (self.points, position))
        if [shape[1:] for shape in given] != wanted:
            raise InputError(
                f"Leverage: points has arrays of shapes {given} and the parameters have {wanted}: give points like the "
                "parameters with one more leading axis"
            )
        return self.inner.init(key, self._weighted(target), position)

    def seen(self, target: Target, position: Position) -> Target:
        return self.inner.seen(self._weighted(target), position)

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        return self.inner.estimate(key, self._weighted(target), kick, state)

    def cost(self, num_data: int) -> Cost:
        return self.inner.cost(num_data)

    def spent(self, num_steps: int, num_data: int) -> int:
        return self.inner.spent(num_steps, num_data)

    def noise_factor(self, num_data: int) -> float:
        """Cov(force) / Cov(∇ℓ_i/p_i of one datum), drawn with probability p_i."""
        return self.inner.noise_factor(num_data)

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: Any, metric: Position | None = None
    ) -> Scalar:
        return self.inner.noise_trace(key, self._weighted(target), position, state, metric)

    def probe_cost(self, num_data: int) -> int:
        return self.inner.probe_cost(num_data)

    def _weighted(self, target: Target) -> Target:
        if self.table is None:
            raise InputError("Leverage is not prepared: use ewsg.compose, or estimator.prepare(target) first")
        return weighted(target, self.table)


def draw_law(sizes: Float[np.ndarray, " n"], uniform_share: float) -> Float[np.ndarray, " n"]:
    """p_i = u/n + (1 − u) ρ_i/Σρ; uniform if all ρ_i are 0."""
    total = sizes.sum()
    if total == 0:
        return np.full(len(sizes), 1 / len(sizes))
    return uniform_share / len(sizes) + (1 - uniform_share) * (sizes / total)


def gradient_sizes(target: Target, points: Position) -> Float[Array, " n"]:
    """ρ_i = √(mean over points of ‖∇ℓ_i(point)‖²) of all n data, in blocks of rows."""
    position = jax.tree.map(lambda leaf: leaf[0], points)
    gradients = jax.vmap(target.likelihood.gradients, in_axes=(0, None))

    def sizes(batch: Batch) -> Float[Array, " b"]:
        squares = jnp.square(pytree.widened(pytree.rows(gradients(points, batch), leading=2)))
        return jnp.sqrt(jnp.mean(jnp.sum(squares, axis=2), axis=0))

    count, n = jax.tree.leaves(points)[0].shape[0], target.num_data
    bytes_per_datum = count * (target.datum_bytes(position) + pytree.num_bytes(position))
    block = max(1, min(_ROWS_PER_BLOCK, n, _BLOCK_BYTES // bytes_per_datum))

    def fill(found: Float[Array, " n"], start: Array | int, rows: int) -> Float[Array, " n"]:
        return jax.lax.dynamic_update_slice_in_dim(found, sizes(target.data.rows(start, rows)), start, axis=0)

    whole, rest = divmod(n, block)
    nothing = jnp.zeros(n, pytree.wide_dtype(position))
    found = jax.lax.fori_loop(0, whole, lambda k, found: fill(found, k * block, block), nothing)
    return fill(found, whole * block, rest) if rest else found


def _check_points(target: Target, points: Position) -> int:
    """The number of points; raises InputError unless each is like the parameters, and finite."""
    named = pytree.named_leaves("points", points)
    sizes = {name: np.shape(leaf)[:1] for name, leaf in named.items()}
    if len(set(sizes.values())) != 1 or () in sizes.values() or (0,) in sizes.values():
        listing = ", ".join(f"{name} {np.shape(leaf)}" for name, leaf in named.items())
        raise InputError(
            "Leverage: points must be a pytree like the parameters with one more leading axis, one entry per point, "
            f"not {listing or 'empty'}"
        )
    (count,) = next(iter(sizes.values()))
    for k in range(count):
        with setting_named("Leverage", "points"):
            target.check(jax.tree.map(lambda leaf, k=k: leaf[k], points))
    return count
