"""Overdamped Langevin dynamics: SGLD when the force is stochastic."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, schedules
from .._core import pytree
from .._core.settings import plain
from .._core.types import Key, Position, Scalar, Schedule
from ..interface import Kick, Scales, StepInfo
from .base import AbstractIntegrator, ForceFunction, Phase


class Overdamped(AbstractIntegrator[Phase]):
    r"""Euler–Maruyama for dθ = −∇V dt + √(2T) dW.

    θ' = θ + h·force + √(2hT) ξ,   ξ ~ N(0, I)                                                           (App. E)

    Targets exp(−V/T) as h → 0; stable while h·λ_max < 2.

    Args:
        step_size: h, or a function of the step counter (`ewsg.schedules`, optax).
        temperature: T.
        units: "sum": h is for ∇V. "mean": h is for ∇V/n at temperature T/n, the same chain with h_sum = h_mean/n.
    """

    has_momentum: ClassVar[bool] = False
    step_size: Scalar | Schedule = eqx.field(converter=schedules.as_step_size)
    temperature: float = eqx.field(default=1.0, converter=plain)
    units: str = eqx.field(static=True, default="sum")

    def init(self, key: Key, position: Position) -> Phase:
        del key
        return Phase(position, None)

    def step(
        self,
        key: Key,
        phase: Phase,
        step: Int[Array, ""],
        force_function: ForceFunction,
        estimator_state: Any,
    ) -> tuple[Phase, Any, StepInfo]:
        key_force, key_noise = _random.split(key)
        h, noise_scale = self.scales(step)
        noise = _random.normal_like(key_noise, phase.position)
        kick = Kick(phase.position, None, None, noise, h, noise_scale, self.temperature, step)
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        moved = pytree.add_scaled(pytree.add_scaled(phase.position, h, force), noise_scale, noise)
        return Phase(moved, None), estimator_state, StepInfo(phase.position, force, info)

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(2 * h * self.temperature))

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        h = schedules.at(self.step_size, jnp.int32(0))
        return h * curvature / 2, "step_size · λ_max < 2"
