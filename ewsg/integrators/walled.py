"""BAOAB inside a ball: steps that would leave it are refused."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Key, Scalar
from ..interface import Scales, StepInfo
from .baoab import BAOAB
from .base import ForceFunction, Phase
from .friction import AbstractLangevin


class Walled(AbstractLangevin):
    r"""BAOAB within ‖θ‖ ≤ R: a step that ends outside, or at a point that is not finite, is refused.

    (θ, r) → (θ', r')  if ‖θ'‖ ≤ R,  else (θ, −r)

    For coordinates in which the posterior is centred at 0 (`ewsg.coordinates`): a control variate is good only near its
    anchor, and a chain that strays from it might not come back. Choose R so large that the posterior has almost no mass
    outside. `stats["refused"]` is the share of refused steps: above 1e-4 the step size is too large.

    Args:
        step_size: h, or a function of the step counter.
        friction: γ.
        temperature: T.
        units: "sum" or "mean", as in `Underdamped`.
        momentum: how r starts: "thermal", from N(0, T I), or "zero".
        radius: R; if infinite, only points that are not finite are refused.
    """

    radius: float = eqx.field(default=float("inf"), converter=plain)

    def __check_init__(self):
        if self.radius != float("inf"):
            check_positive("Walled", "radius", self.radius)

    def step(
        self, key: Key, phase: Phase, step: Int[Array, ""], force_function: ForceFunction, estimator_state: Any
    ) -> tuple[Phase, Any, StepInfo]:
        moved, estimator_state, info = self._free.step(key, phase, step, force_function, estimator_state)
        # NaN compares as outside. The norm is that of θ/R, whose square cannot overflow for points inside.
        inside = _norm_squared(moved.position, self.radius) <= 1
        finite = pytree.all_finite(moved) & pytree.all_finite(info.force)
        accepted = inside & finite
        turned = Phase(phase.position, pytree.scaled(-1.0, phase.momentum))
        moved = pytree.where(accepted, pytree.cast_like(moved, turned), turned)
        force = pytree.where(finite, info.force, pytree.zeros_like(info.force))
        refused = (~accepted).astype(pytree.wide_dtype(phase.position))
        stats = {**info.estimate.stats, "refused": refused}
        return moved, estimator_state, StepInfo(info.evaluated_at, force, info.estimate._replace(stats=stats))

    def scales(self, step: Int[Array, ""]) -> Scales:
        return self._free.scales(step)

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        return self._free.stability(curvature)

    @property
    def _free(self) -> BAOAB:
        """The same without the wall."""
        return BAOAB(self.step_size, self.friction, self.temperature, units=self.units, momentum=self.momentum)


def _norm_squared(position: Any, radius: Any) -> Array:
    """‖θ/R‖², 0 for an infinite R."""
    wide = pytree.widened(position)
    scaled = pytree.scaled(jnp.where(jnp.isinf(radius), 0.0, 1.0 / radius), wide)
    return pytree.dot(scaled, scaled)
