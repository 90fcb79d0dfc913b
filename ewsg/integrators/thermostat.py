"""Langevin dynamics whose friction adapts until the momentum has the right temperature: SGNHT."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .. import _random, schedules
from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..interface import Kick, Scales, StepInfo
from .base import ForceFunction
from .friction import AbstractFriction


class ThermostatPhase(NamedTuple):
    """A point of phase space, and the friction ξ: a scalar, or one per coordinate."""

    position: Position
    momentum: Position
    thermostat: Position | Float[Array, ""]


class Thermostat(AbstractFriction[ThermostatPhase]):
    r"""The stochastic gradient Nosé–Hoover thermostat (Ding et al. 2014), Alg. 2.

    r' = r + h·force − hξ r + √(2AhT) N(0, I),   θ' = θ + h r',   ξ' = ξ + (h/μ)(‖r'‖²/d − T)

    or, per coordinate, ξ_i' = ξ_i + (h/μ)(r_i'² − T). Whatever the noise of the force, ξ rises until ‖r‖²/d averages T,
    to about A + h·Tr Cov(force)/(2dT). Targets exp(−(V + ‖r‖²/2)/T) as h → 0 if Cov(force) is a multiple of the
    identity (per coordinate: diagonal) that does not depend on θ. Stable while h²λ_max + 2hξ < 4. ξ settles within
    about μξ/(hT) steps: if it has far to go, lower μ.

    In the original T = 1, μ = 1 and ξ starts at A, as here. BlackJAX's `sgnht` differs in one point: it moves the
    position by the old momentum, θ' = θ + h r.

    Args:
        step_size: h, or a function of the step counter (`ewsg.schedules`, optax).
        friction: A, which sets the injected noise and is the initial value of ξ.
        temperature: T.
        per_coordinate: one ξ for every coordinate, for noise that differs between them.
        inertia: μ; small values let ξ react faster and fluctuate more, with variance T/(μd) (per coordinate T/μ).
        units: "sum": h and A are for ∇V. "mean": they are for ∇V/n at temperature T/n, the same chain with
            h_sum = h_mean/√n, A_sum = A_mean·√n and the same μ.
        momentum: how r starts: "thermal", from N(0, T I), or "zero".
    """

    per_coordinate: bool = eqx.field(static=True, default=False, converter=plain)
    inertia: float = eqx.field(default=1.0, converter=plain)
    units: str = eqx.field(static=True, default="sum")
    momentum: str = eqx.field(static=True, default="thermal")

    def __check_init__(self):
        check_positive("Thermostat", "inertia", self.inertia)

    def init(self, key: Key, position: Position) -> ThermostatPhase:
        momentum = self.start_momentum(key, position)
        if self.per_coordinate:
            return ThermostatPhase(position, momentum, pytree.full_like(position, self.friction))
        dtype = jax.tree.leaves(position)[0].dtype
        return ThermostatPhase(position, momentum, jnp.asarray(self.friction, dtype))

    def step(
        self,
        key: Key,
        phase: ThermostatPhase,
        step: Int[Array, ""],
        force_function: ForceFunction,
        estimator_state: Any,
    ) -> tuple[ThermostatPhase, Any, StepInfo]:
        key_force, key_noise = _random.split(key)
        h, noise_scale = self.scales(step)
        position, momentum, thermostat = phase
        noise = _random.normal_like(key_noise, position)
        if self.per_coordinate:
            decay = jax.tree.map(lambda xi, r: pytree.as_dtype(h, xi.dtype) * xi * r, thermostat, momentum)
        else:
            decay = pytree.scaled(pytree.as_dtype(h, thermostat.dtype) * thermostat, momentum)
        kick = Kick(position, momentum, decay, noise, h, noise_scale, self.temperature, step)
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        kicked = pytree.add_scaled(pytree.subtract(momentum, decay), h, force)
        kicked = pytree.add_scaled(kicked, noise_scale, noise)
        moved = ThermostatPhase(
            pytree.add_scaled(position, h, kicked), kicked, self._regulated(thermostat, kicked, h / self.inertia)
        )
        return moved, estimator_state, StepInfo(position, force, info)

    def _regulated(self, thermostat: Position, momentum: Position, rate: Scalar) -> Position:
        """ξ', from the excess of the temperature of the new momentum over T."""
        if self.per_coordinate:
            excess = jax.tree.map(lambda r: r**2 - self.temperature, momentum)
        else:
            excess = pytree.dot(momentum, momentum) / pytree.size(momentum) - self.temperature
        return pytree.add_scaled(thermostat, rate, excess)

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(2 * self.friction * self.temperature * h))

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        """h over the positive root of h²λ + 2hA = 4."""
        h = schedules.at(self.step_size, jnp.int32(0))
        root = jnp.sqrt(self.friction**2 + 4 * curvature)
        return h * (root + self.friction) / 4, "step_size² · λ_max + 2 · step_size · friction < 4"
