"""Control variates around an anchor that follows the chain (SVRG)."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from .._core import pytree
from .._core.component import check_count
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..interface import Cost, EstimateInfo, Kick
from ..target.anchored import anchored, slope_at
from ..target.target import Target
from .base import AbstractEstimator
from .correction import AbstractCorrection, multiplied


class SVRGState(NamedTuple):
    """The anchor a, Σ_i ∇ℓ_i(a), and the inner estimator's state."""

    anchor: Position
    slope: Position
    inner: Any


class SVRG(AbstractCorrection):
    r"""Stochastic variance-reduced gradients (Dubey et al. 2016): a control variate with a refreshed anchor.

    The force of datum i is G_i(θ) − G_i(a) + F(a), with G_i = n∇(−V_i) and F = ∇(−V) over all data, in place of G_i(θ);
    unbiased whenever the inner estimator is. At steps 0, period, 2·period, ... the anchor moves to the present
    position and F is computed again.

    Costs per step twice the inner estimator's evaluations (at θ and at a), plus n datum gradients when the anchor
    moves. In a loop of your own under `vmap`, keep the step counter of the state unbatched
    (`in_axes=SamplerState(0, 0, None)`): otherwise the full gradient is computed at every step and mostly thrown away.

    Args:
        inner: the estimator that chooses the data (any).
        period: the number of steps from one anchor to the next. With b data per step, the full gradients add
            n/(2·b·period) to the cost: one half for period = n/b, a data pass of the inner estimator.

    Example:
        >>> import ewsg
        >>> ewsg.SVRG(ewsg.Uniform(10), period=100).num_steps(budget=9000, num_data=1000)
        300
    """

    inner: AbstractEstimator
    period: int = eqx.field(static=True, converter=plain)

    def __check_init__(self):
        check_count("SVRG", "period", self.period, 1)

    def prepare(self, target: Target) -> tuple["SVRG", Cost]:
        inner, cost = self.inner.prepare(target)
        return dataclasses.replace(self, inner=inner), cost

    def init(self, key: Key, target: Target, position: Position) -> SVRGState:
        return SVRGState(position, pytree.zeros_like(position), self.inner.init(key, target, position))

    def estimate(
        self, key: Key, target: Target, kick: Kick, state: SVRGState
    ) -> tuple[Position, SVRGState, EstimateInfo]:
        refresh = kick.step % self.period == 0
        anchor, slope = jax.lax.cond(
            refresh,
            lambda: (kick.position, slope_at(target, kick.position)),
            lambda: (state.anchor, state.slope),
        )
        force, inner, info = self.inner.estimate(key, anchored(target, anchor, slope), kick, state.inner)
        calibration = jnp.where(refresh, target.num_data, 0)
        cost = multiplied(self.multiple, info.cost)
        cost = cost._replace(datum_gradients=cost.datum_gradients + calibration)
        return force, SVRGState(anchor, slope, inner), info._replace(cost=cost)

    def cost(self, num_data: int) -> Cost:
        """The evaluations of one step, plus n datum gradients at steps where the anchor is refreshed."""
        return super().cost(num_data)

    def spent(self, num_steps: int, num_data: int) -> int:
        return super().spent(num_steps, num_data) + num_data * math.ceil(num_steps / self.period)

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: SVRGState, metric: Position | None = None
    ) -> Scalar:
        around = anchored(target, state.anchor, state.slope)
        return self.inner.noise_trace(key, around, position, state.inner, metric)
