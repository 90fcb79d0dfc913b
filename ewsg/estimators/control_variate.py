"""Control variates around a fixed anchor near the mode."""

import dataclasses
from typing import Any

import equinox as eqx
import jax

from .._core import pytree
from .._core.component import check_count, check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.anchored import anchored, slope_at
from ..target.mode import find_mode
from ..target.target import Target
from .base import AbstractEstimator, setting_named
from .correction import AbstractCorrection, doubled


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

    The search is `ewsg.find_mode`.
    """

    inner: AbstractEstimator
    anchor: Position | None = eqx.field(default=None, converter=pytree.as_arrays)
    start: Position | None = eqx.field(default=None, converter=pytree.as_arrays)
    max_passes: int = eqx.field(static=True, default=100, converter=plain)
    tolerance: float = eqx.field(default=1e-4, converter=plain)
    slope: Position | None = eqx.field(default=None, metadata={"prepared": True})

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
        anchor, searched = self.anchor, 0
        if anchor is None:
            with setting_named("ControlVariate", "start"):
                found = find_mode(target, self.start, max_passes=self.max_passes, tolerance=self.tolerance)
            anchor, searched = found.position, found.cost.datum_gradients
        else:
            with setting_named("ControlVariate", "anchor"):
                target.check(anchor)
        slope = jax.jit(slope_at)(target, anchor)
        inner, (gradients, directional) = self.inner.prepare(anchored(target, anchor, slope))
        prepared = dataclasses.replace(self, inner=inner, anchor=anchor, start=None, slope=slope)
        return prepared, Cost(gradients + searched + target.num_data, directional)

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
