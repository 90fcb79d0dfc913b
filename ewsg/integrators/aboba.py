"""The ABOBA splitting of underdamped Langevin dynamics, one force per step: the moves of NOGIN."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, schedules
from .._core import pytree
from .._core.types import Key, Scalar
from ..interface import Kick, Scales, StepInfo
from .base import ForceFunction, Phase
from .friction import AbstractLangevin


class ABOBA(AbstractLangevin):
    r"""Half drift, half kick, Ornstein–Uhlenbeck, half kick, half drift; both half kicks by the same force.

    θ ← θ + (h/2) r;  r ← η r + h (1 + η)/2 · force(θ) + √(T(1 − η²)) ξ, η = e^{−γh};  θ ← θ + (h/2) r

    With `MidpointFriction` this is NOGIN (Matthews and Weare 2018). Targets exp(−V/T) with weak error O(h²) in the
    position, and none for a Gaussian with the full gradient; stable while h² λ_max < 4. As friction and noise lie
    between the half kicks, an estimator sees them in its kick, and friction of its own is weakened by (1 + η)/2, for
    which `Kick.factor` = 2/(1 + η) makes up.

    Args:
        step_size: h, or a function of the step counter.
        friction: γ.
        temperature: T.
        units: "sum" or "mean", as in `Underdamped`.
        momentum: how r starts: "thermal", from N(0, T I), or "zero".

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> nogin = (ewsg.MidpointFriction(4), ewsg.ABOBA(step_size=0.1, friction=3.0))
        >>> run = ewsg.sample(target, *nogin, init=jnp.array(4.0), num_steps=20, num_chains=2, seed=0)
        >>> run.draws.shape[0]
        2
    """

    def step(
        self, key: Key, phase: Phase, step: Int[Array, ""], force_function: ForceFunction, estimator_state: Any
    ) -> tuple[Phase, Any, StepInfo]:
        key_force, key_noise = _random.split(key)
        time = schedules.at(self.step_size, step)
        h, noise_scale = self.scales(step)
        damping = jnp.exp(-self.friction * time)
        halfway = pytree.add_scaled(phase.position, time / 2, phase.momentum)
        noise = _random.normal_like(key_noise, halfway)
        decay = pytree.scaled(1 - damping, phase.momentum)
        kick = Kick(
            position=halfway,
            momentum=phase.momentum,
            decay=decay,
            noise=noise,
            step_size=h,
            noise_scale=noise_scale,
            temperature=self.temperature,
            step=step,
            factor=2 / (1 + damping),
        )
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        kicked = pytree.add_scaled(pytree.subtract(phase.momentum, decay), h, force)
        kicked = pytree.add_scaled(kicked, noise_scale, noise)
        moved = Phase(pytree.add_scaled(halfway, time / 2, kicked), kicked)
        return moved, estimator_state, StepInfo(halfway, force, info)

    def scales(self, step: Int[Array, ""]) -> Scales:
        """h(1 + η)/2 and √(T(1 − η²))."""
        h = schedules.at(self.step_size, step)
        kicked = h * (1 + jnp.exp(-self.friction * h)) / 2
        return Scales(kicked, jnp.sqrt(-self.temperature * jnp.expm1(-2 * self.friction * h)))

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        h = schedules.at(self.step_size, jnp.int32(0))
        return h * jnp.sqrt(jnp.maximum(curvature, 0.0)) / 2, "step_size · √λ_max < 2"
