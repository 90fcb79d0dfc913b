"""Underdamped Langevin dynamics, as the paper discretises it: SGHMC when the force is stochastic."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, schedules
from .._core import pytree
from .._core.types import Key, Scalar
from ..interface import Kick, Scales, StepInfo
from .base import ForceFunction, Phase
from .friction import AbstractLangevin


class Underdamped(AbstractLangevin):
    r"""Euler–Maruyama for dθ = r dt, dr = −(∇V + γr) dt + σ dW, σ² = 2γT.

    θ' = θ + h r,   r' = r + h·force − hγ r + σ√h ξ,   ξ ~ N(0, I)                                          (eq. 3)

    Targets exp(−(V + ‖r‖²/2)/T) as h → 0; stable while h·λ_max < γ.

    Args:
        step_size: h, or a function of the step counter (`ewsg.schedules`, optax).
        friction: γ.
        temperature: T.
        units: "sum": h and γ are for ∇V. "mean": they are for ∇V/n at temperature T/n, the same chain with
            h_sum = h_mean/√n and γ_sum = γ_mean·√n.
        momentum: how r starts: "thermal", from N(0, T I), or "zero".
    """

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
        position, momentum = phase
        noise = _random.normal_like(key_noise, position)
        decay = pytree.scaled(h * self.friction, momentum)
        kick = Kick(position, momentum, decay, noise, h, noise_scale, self.temperature, step)
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        kicked = pytree.add_scaled(pytree.subtract(momentum, decay), h, force)
        moved = Phase(pytree.add_scaled(position, h, momentum), pytree.add_scaled(kicked, noise_scale, noise))
        return moved, estimator_state, StepInfo(position, force, info)

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(2 * self.friction * self.temperature * h))

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        h = schedules.at(self.step_size, jnp.int32(0))
        return h * curvature / self.friction, "step_size · λ_max < friction"
