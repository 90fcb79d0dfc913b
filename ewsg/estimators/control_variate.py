"""Control variates around a fixed anchor near the mode."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._core import memory, pytree
from .._core.component import check_count, check_positive
from .._core.settings import plain
from .._core.types import HostOrDevice, Key, Position, Scalar
from ..errors import InputError, shown
from ..interface import Cost, EstimateInfo, Kick
from ..target.anchored import anchored, curvature_at, slope_at
from ..target.mode import find_mode_from
from ..target.target import Target
from .base import AbstractEstimator, setting_named
from .correction import AbstractCorrection, multiplied

_MULTIPLES = {1: 2, 2: 4}
"""Evaluations in place of one, by order: at θ and at a; at order 2 also a Hessian-vector product, which counts two."""


class ControlVariate(AbstractCorrection):
    r"""Control variates at a fixed anchor (Baker et al. 2019): for posteriors with one mode and tall data.

    The force of datum i is G_i(θ) − G_i(a) + F(a), with G_i = n∇(−V_i) and F = ∇(−V) over all data, in place of G_i(θ);
    unbiased whenever the inner estimator is. Its variance vanishes as θ → a, so a should be near the mode.
    At order 2 the force is G_i(θ) − G_i(a) − H_i(a)x + F(a) + H(a)x, with x = θ − a and H_i, H the derivatives of
    G_i, F. Its standard deviation is O(‖x‖²), but far from a, where tails are heavy, it may exceed that of order 1.

    Costs per step twice the inner estimator's evaluations (at θ and at a), at order 2 four times (a product with H_i
    counts two); before the first step, n datum gradients for F(a), n for every evaluation of the search, and at order 2
    another 2dn for H(a). Resuming a saved run repeats that work.

    Args:
        inner: the estimator that chooses the data (any).
        anchor: a, a pytree like the positions of the chains (like the parameters, unless there are constraints or
            coordinates); None searches for the mode.
        start: where the search starts if no anchor is given, likewise.
        max_passes: the search begins no further iteration after this many evaluations of the full gradient.
        tolerance: the search ends when the full gradient is this small, relative to that at the start. Wherever the
            search ends, the anchor is valid: a better one only reduces the noise.
        order: 1, or 2 for a d × d matrix and less noise near a.
        slope: Σ_i ∇ℓ_i(a), filled in by `prepare`.
        curvature: Σ_i ∇²ℓ_i(a) in the order of `ravel_pytree`, filled in by `prepare` at order 2.

    The search is `ewsg.find_mode`.
    """

    inner: AbstractEstimator
    anchor: Position | None = eqx.field(default=None, converter=pytree.as_arrays)
    start: Position | None = eqx.field(default=None, converter=pytree.as_arrays)
    max_passes: int = eqx.field(static=True, default=100, converter=plain)
    tolerance: float = eqx.field(default=1e-4, converter=plain)
    order: int = eqx.field(static=True, default=1, converter=plain)
    slope: Position | None = eqx.field(default=None, metadata={"prepared": True})
    curvature: Float[HostOrDevice, "d d"] | None = eqx.field(default=None, metadata={"prepared": True})

    def __check_init__(self):
        check_count("ControlVariate", "max_passes", self.max_passes, 1)
        check_positive("ControlVariate", "tolerance", self.tolerance)
        if self.order not in _MULTIPLES:
            raise InputError(f"ControlVariate: order must be 1 or 2, not {shown(self.order)}")
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
                found = find_mode_from(target, self.start, max_passes=self.max_passes, tolerance=self.tolerance)
            anchor, searched = found.position, found.cost.datum_gradients
        else:
            with setting_named("ControlVariate", "anchor"):
                target.check(anchor)
        slope, curvature, passes = jax.jit(slope_at)(target, anchor), None, 1
        if self.order == 2:
            curvature, passes = _curvature(target, anchor), 1 + 2 * pytree.size(anchor)
        inner, (gradients, directional) = self.inner.prepare(anchored(target, anchor, slope, curvature))
        prepared = dataclasses.replace(self, inner=inner, anchor=anchor, start=None, slope=slope, curvature=curvature)
        return prepared, Cost(gradients + searched + passes * target.num_data, directional)

    @property
    def multiple(self) -> int:
        return _MULTIPLES[self.order]

    def init(self, key: Key, target: Target, position: Position) -> Any:
        return self.inner.init(key, self._anchored(target, position), position)

    def seen(self, target: Target, position: Position) -> Target:
        return self.inner.seen(self._anchored(target, position), position)

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        force, state, info = self.inner.estimate(key, self._anchored(target, kick.position), kick, state)
        return force, state, info._replace(cost=multiplied(self.multiple, info.cost))

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: Any, metric: Position | None = None
    ) -> Scalar:
        return self.inner.noise_trace(key, self._anchored(target, position), position, state, metric)

    def _anchored(self, target: Target, position: Position) -> Target:
        if self.slope is None:
            raise InputError("ControlVariate is not prepared: use ewsg.compose, or estimator.prepare(target) first")
        curvature = self.curvature
        if curvature is not None:
            curvature = curvature.astype(pytree.wide_dtype(position))
        return anchored(target, _shaped_like(position, self.anchor), _shaped_like(position, self.slope), curvature)


def _curvature(target: Target, anchor: Position) -> Float[Array, "d d"]:
    bytes_needed = 4 * pytree.wide_dtype(anchor).itemsize * pytree.size(anchor) ** 2
    memory.check(bytes_needed, "the d × d matrix of ControlVariate(order=2)", "use order=1")
    return jax.jit(curvature_at)(target, anchor)


def _shaped_like(position: Position, point: Position) -> Position:
    """The point with the structure and dtypes of the parameters, whose leaves must have the same shapes."""
    leaves, structure = jax.tree.flatten(position)
    given = jax.tree.leaves(point)
    if [leaf.shape for leaf in leaves] != [leaf.shape for leaf in given]:
        raise InputError(
            f"ControlVariate: the anchor has arrays of shapes {[leaf.shape for leaf in given]} but the parameters have "
            f"{[leaf.shape for leaf in leaves]}: give an anchor (or start) like the parameters"
        )
    return structure.unflatten([own.astype(leaf.dtype) for own, leaf in zip(given, leaves, strict=True)])
