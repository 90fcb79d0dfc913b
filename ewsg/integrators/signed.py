"""Steps whose size is drawn before the force is known, and whose direction the force only makes more likely."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .. import _random, schedules
from .._core import pytree
from .._core.settings import plain
from .._core.types import Key, Position, Scalar, Schedule
from ..interface import Kick, Scales, StepInfo
from .base import AbstractIntegrator, ForceFunction, Phase


class AbstractSigned(AbstractIntegrator[Phase]):
    """θ_i' = θ_i + z_i with probability p_i, else θ_i − z_i: no force, however large, makes a step long.

    A subclass gives the sizes z with mean square 2hT, and the probabilities p with mean step h·force to first order.
    """

    has_momentum: ClassVar[bool] = False
    adds_noise: ClassVar[bool] = False
    step_size: Scalar | Schedule = eqx.field(converter=schedules.as_step_size)
    temperature: float = eqx.field(default=1.0, converter=plain)
    units: str = eqx.field(static=True, default="sum")

    @abc.abstractmethod
    def sizes(self, key: Key, position: Position, scale: Scalar) -> Position:
        """z for a root mean square √(2hT) = `scale`, in at least float32."""

    @abc.abstractmethod
    def upward(self, size: Float[Array, "*d"], force: Float[Array, "*d"], scale: Scalar) -> Float[Array, "*d"]:
        """p, for sizes z with the root mean square `scale`."""

    def init(self, key: Key, position: Position) -> Phase:
        del key
        return Phase(position, None)

    def step(
        self, key: Key, phase: Phase, step: Int[Array, ""], force_function: ForceFunction, estimator_state: Any
    ) -> tuple[Phase, Any, StepInfo]:
        key_force, key_size, key_sign = _random.split(key, 3)
        position = phase.position
        h, scale = self.scales(step)
        kick = Kick(position, None, None, None, h, scale, self.temperature, step)
        force, estimator_state, info = force_function(key_force, kick, estimator_state)
        wide = pytree.wide_dtype(position)
        scale = pytree.as_dtype(scale, wide)
        sizes = self.sizes(key_size, position, scale)
        upward = jax.tree.map(lambda z, f: self.upward(z, f.astype(wide), scale), sizes, force)
        return Phase(moved(key_sign, position, sizes, upward), None), estimator_state, StepInfo(position, force, info)

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(2 * h * self.temperature))


def moved(key: Key, position: Position, sizes: Position, upward: Position) -> Position:
    """position + z with the probability `upward`, else position − z; NaN where that is: a NaN force must show."""

    def move(x: Array, z: Array, p: Array, u: Array) -> Array:
        return x + jnp.where(u < p, z, jnp.where(u >= p, -z, jnp.nan)).astype(x.dtype)

    return jax.tree.map(move, position, sizes, upward, _random.uniform_like(key, position))
