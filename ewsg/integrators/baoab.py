"""The BAOAB splitting of underdamped Langevin dynamics, one force per step."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, schedules
from .._core import pytree
from .._core.types import Key, Scalar
from ..interface import Kick, Scales, StepInfo
from .base import ForceFunction, Phase
from .friction import AbstractLangevin


class BAOAB(AbstractLangevin):
    r"""Kick, half drift, Ornstein–Uhlenbeck, half drift (Leimkuhler and Matthews 2013).

    r ← r + h·force(θ);  θ ← θ + (h/2) r;  r ← η r + √(T(1 − η²)) ξ, η = e^{−γh};  θ ← θ + (h/2) r

    The last half kick of one BAOAB step and the first of the next fall on the same position and are merged, so that a
    step needs one force. Targets exp(−V/T) with weak error O(h²) in the position, and none for a Gaussian with the full
    gradient; stable while h² λ_max < 4.

    Args:
        step_size: h, or a function of the step counter.
        friction: γ.
        temperature: T.
        units: "sum" or "mean", as in `Underdamped`.
        momentum: how r starts: "thermal", from N(0, T I), or "zero".
    """

    def step(
        self, key: Key, phase: Phase, step: Int[Array, ""], force_function: ForceFunction, estimator_state: Any
    ) -> tuple[Phase, Any, StepInfo]:
        key_force, key_noise = _random.split(key)
        h, noise_scale = self.scales(step)
        position, momentum = phase
        damping = jnp.exp(-self.friction * h)
        kick = Kick(
            position=position,
            momentum=momentum,
            decay=pytree.scaled(1 - damping, momentum),
            noise=None,
            step_size=h,
            noise_scale=noise_scale,
            temperature=self.temperature,
            step=step,
            factor=(1 + damping) / 2,
        )
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        kicked = pytree.add_scaled(momentum, h, force)
        halfway = pytree.add_scaled(position, h / 2, kicked)
        noise = _random.normal_like(key_noise, position)
        damped = pytree.add_scaled(pytree.scaled(damping, kicked), noise_scale, noise)
        moved = Phase(pytree.add_scaled(halfway, h / 2, damped), damped)
        return moved, estimator_state, StepInfo(position, force, info)

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(-self.temperature * jnp.expm1(-2 * self.friction * h)))

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        h = schedules.at(self.step_size, jnp.int32(0))
        return h * jnp.sqrt(jnp.maximum(curvature, 0.0)) / 2, "step_size · √λ_max < 2"
