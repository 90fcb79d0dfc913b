"""The UBU splitting of underdamped Langevin dynamics, one force per step."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, schedules
from .._core import pytree
from .._core.types import Key, Scalar
from ..interface import Kick, Scales, StepInfo
from .base import ForceFunction, Phase
from .friction import AbstractLangevin

_SERIES_BELOW = 0.3  # x = γt, without unit


class UBU(AbstractLangevin):
    r"""U(h/2), kick r ← r + h·force(θ), U(h/2) (Zapatero 2017): U solves dθ = r dt, dr = −γr dt + √(2γT) dW exactly.

    U(t), x = γt, η = e^{−x}:  r' = η r + √(T(1 − η²)) ξ₁,
    θ' = θ + (1 − η)/γ·r + (√T/γ) [(1 − η) √tanh(x/2) ξ₁ + √(2x − 4 tanh(x/2)) ξ₂]

    Targets exp(−V/T) with weak and strong order 2; the force is evaluated in the middle of the step. Stable while
    h² λ_max < 4.

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
        key_force, key_before, key_after = _random.split(key, 3)
        h, noise_scale = self.scales(step)
        position, momentum = self._flow(key_before, phase, h / 2)
        x = self.friction * h
        kick = Kick(
            position=position,
            momentum=momentum,
            decay=pytree.scaled(-jnp.expm1(-x), momentum),
            noise=None,
            step_size=h,
            noise_scale=noise_scale,
            temperature=self.temperature,
            step=step,
            factor=1 / (2 - jnp.where(x == 0, 1.0, x / pytree.divisor(jnp.expm1(x)))),
        )
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        kicked = Phase(position, pytree.add_scaled(momentum, h, force))
        return self._flow(key_after, kicked, h / 2), estimator_state, StepInfo(position, force, info)

    def _flow(self, key: Key, phase: Phase, time: Scalar) -> Phase:
        """U(time), with noise of its own."""
        key_momentum, key_position = _random.split(key)
        gamma, root = self.friction, jnp.sqrt(self.temperature)
        x = gamma * time
        decayed = -jnp.expm1(-x)
        sd_momentum = root * jnp.sqrt(-jnp.expm1(-2 * x))
        shared = root / gamma * decayed * jnp.sqrt(jnp.tanh(x / 2))
        own = root / gamma * jnp.sqrt(_residual(x))
        first = _random.normal_like(key_momentum, phase.position)
        second = _random.normal_like(key_position, phase.position)
        drifted = pytree.add_scaled(phase.position, decayed / gamma, phase.momentum)
        position = pytree.add_scaled(pytree.add_scaled(drifted, shared, first), own, second)
        return Phase(position, pytree.add_scaled(pytree.scaled(1 - decayed, phase.momentum), sd_momentum, first))

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(-self.temperature * jnp.expm1(-2 * self.friction * h)))

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        h = schedules.at(self.step_size, jnp.int32(0))
        return h * jnp.sqrt(jnp.maximum(curvature, 0.0)) / 2, "step_size · √λ_max < 2"


def _residual(x: Scalar) -> Scalar:
    """2x − 4 tanh(x/2), by its series where the two terms would cancel in float32."""
    series = x**3 / 6 * (1 - x**2 / 10 + 17 * x**4 / 1680)
    return jnp.where(x < _SERIES_BELOW, series, 2 * x - 4 * jnp.tanh(x / 2))
