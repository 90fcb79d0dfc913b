"""Control variates around a fixed anchor near the mode."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._core import pytree
from .._core.component import check_count, check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractEstimator
from .correction import AbstractCorrection, anchored, doubled, slope_at

_SEARCH_MEMORY = 10
_LINE_SEARCH_STEPS = 20
_IDLE_ITERATIONS = 3


def _as_arrays(tree: Position) -> Position:
    """A pytree of arrays without weak types; what is no array is left for the check to name."""

    def convert(leaf: Any) -> Any:
        try:
            array = jnp.asarray(leaf)
        except TypeError:
            return leaf
        return jax.lax.convert_element_type(array, array.dtype)

    return jax.tree.map(convert, tree)


class ControlVariate(AbstractCorrection):
    r"""Control variates at a fixed anchor (Baker et al. 2019): for posteriors with one mode and tall data.

    Datum i has the force G_i(θ) − G_i(a) + F(a), with G_i = n∇(−V_i) and F = ∇(−V) over all data, in place of G_i(θ);
    unbiased whenever the inner estimator is. Its spread vanishes as θ → a, so a should be near the mode.

    Costs twice the inner estimator's evaluations per step (at θ and at a); before the first step n datum gradients for
    F(a), and n for every evaluation of the search. Resuming a saved run repeats that work.

    Args:
        inner: which data (any estimator).
        anchor: a, a pytree like the parameters; None searches for the mode.
        start: where the search starts, when no anchor is given.
        max_passes: the search begins no further iteration once it has evaluated the full gradient this often.
        tolerance: the search ends where the full gradient is this small, relative to that at the start. Whatever the
            search ends with is a valid anchor: a better one only has less noise.
        slope: Σ_i ∇ℓ_i(a), filled in by `prepare`.

    The search is L-BFGS with a line search (optax), over all data, deterministic.
    """

    inner: AbstractEstimator
    anchor: Position | None = eqx.field(default=None, converter=_as_arrays)
    start: Position | None = eqx.field(default=None, converter=_as_arrays)
    max_passes: int = eqx.field(static=True, default=100, converter=plain)
    tolerance: float = eqx.field(default=1e-4, converter=plain)
    slope: Position | None = None

    def __check_init__(self):
        check_count("ControlVariate", "max_passes", self.max_passes, 1)
        check_positive("ControlVariate", "tolerance", self.tolerance)
        if self.anchor is None and self.start is None:
            raise InputError(
                "ControlVariate needs an anchor: give anchor=, or start= (a pytree like the parameters) to search for "
                "the mode from there"
            )
        if self.anchor is not None and self.start is not None:
            raise InputError("ControlVariate takes anchor= or start=, not both: an anchor needs no search")

    def prepare(self, target: Target) -> tuple["ControlVariate", Cost]:
        inner, (gradients, directional) = self.inner.prepare(target)
        anchor, evaluations = self.anchor, 0
        if anchor is None:
            _check_point(target, "start", self.start)
            with jax.numpy_dtype_promotion("standard"):  # inside optax
                found = _find_mode(target, self.start, self.max_passes, self.tolerance)
            if not np.isfinite(found.value):
                raise InputError("ControlVariate: the density is not finite at start: start the search elsewhere")
            anchor, evaluations = found.position, int(found.evaluations)
        else:
            _check_point(target, "anchor", anchor)
        slope = jax.jit(slope_at)(target, anchor)
        prepared = dataclasses.replace(self, inner=inner, anchor=anchor, start=None, slope=slope)
        return prepared, Cost(gradients + (evaluations + 1) * target.num_data, directional)

    def init(self, key: Key, target: Target, position: Position) -> Any:
        return self.inner.init(key, self._anchored(target, position), position)

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        force, state, info = self.inner.estimate(key, self._anchored(target, kick.position), kick, state)
        return force, state, info._replace(cost=doubled(info.cost))

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: Any, metric: Position | None = None
    ) -> Scalar:
        return self.inner.noise_trace(key, self._anchored(target, position), position, state, metric)

    def _anchored(self, target: Target, position: Position) -> Target:
        if self.slope is None:
            raise InputError("ControlVariate is not prepared: use ewsg.compose, or estimator.prepare(target) first")
        return anchored(target, _shaped_like(position, self.anchor), _shaped_like(position, self.slope))


def _check_point(target: Target, name: str, point: Position) -> None:
    try:
        target.check(point)
    except InputError as error:
        text = str(error)
        where = name + text.removeprefix("init") if text.startswith("init") else f"at {name}, {text}"
        raise InputError(f"ControlVariate: {where}") from error


def _shaped_like(position: Position, point: Position) -> Position:
    """The point with the structure and dtypes of the parameters, whose leaves must have the same shapes."""
    leaves, structure = jax.tree.flatten(position)
    given = jax.tree.leaves(point)
    if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in given]:
        raise InputError(
            f"ControlVariate: the anchor has arrays of shapes {[leaf.shape for leaf in given]} and the parameters have "
            f"{[leaf.shape for leaf in leaves]}: give an anchor (or start) like the parameters"
        )
    return structure.unflatten([own.astype(leaf.dtype) for own, leaf in zip(given, leaves, strict=True)])


class Search(NamedTuple):
    """Where the search stands: the best point so far, V and ∇V there, and how often they were evaluated."""

    position: Position
    value: Scalar
    gradient: Position
    optimizer: Any
    evaluations: Int[Array, ""]
    idle: Int[Array, ""]


@jax.jit
def _find_mode(target: Target, start: Position, max_passes: int, tolerance: Scalar) -> Search:
    """L-BFGS on V from `start`, until ∇V is small, rounding errors are all that is left to gain, or max_passes."""
    import optax  # 0.3 s, which only those who search for a mode should pay

    @jax.custom_vjp
    def potential(position: Position) -> Scalar:
        return -target.log_density(position)

    potential.defvjp(
        lambda position: (potential(position), target.full_force(position)),
        lambda force, cotangent: (pytree.scaled(-cotangent, force),),
    )
    line_search = optax.scale_by_zoom_linesearch(_LINE_SEARCH_STEPS, initial_guess_strategy="one")
    optimizer = optax.lbfgs(memory_size=_SEARCH_MEMORY, linesearch=line_search)

    def unfinished(now: Search) -> Array:
        large = _norm(now.gradient) > tolerance * _norm(first_gradient)
        return large & (now.evaluations < max_passes) & (now.idle < _IDLE_ITERATIONS)

    def improve(now: Search) -> Search:
        updates, state = optimizer.update(
            now.gradient, now.optimizer, now.position, value=now.value, grad=now.gradient, value_fn=potential
        )
        line = _last_part(state)
        old = now.position, now.value, now.gradient
        new = pytree.cast_like((optax.apply_updates(now.position, updates), line.value, line.grad), old)
        failed = ~((line.value < now.value) | (line.info.decrease_error <= 0))
        gained = (line.value < now.value) | (_norm(line.grad) < _norm(now.gradient))
        idle = jnp.where(failed, _IDLE_ITERATIONS, jnp.where(gained, 0, now.idle + 1))
        evaluations = now.evaluations + line.info.num_linesearch_steps.astype(jnp.int32)
        position, value, gradient = pytree.where(failed, old, new)
        return Search(position, value, gradient, state, evaluations, idle)

    value, first_gradient = jax.value_and_grad(potential)(start)
    return jax.lax.while_loop(
        unfinished, improve, Search(start, value, first_gradient, optimizer.init(start), jnp.int32(1), jnp.int32(0))
    )


def _norm(tree: Position) -> Scalar:
    return jnp.sqrt(pytree.dot(tree, tree))


def _last_part(chain_state: Any) -> Any:
    """The state of the line search, which ends the chain of transformations."""
    return chain_state[-1]
