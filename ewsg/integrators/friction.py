"""The settings, checks and starting momentum shared by all dynamics with momentum and friction."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .. import _random, schedules
from .._core import pytree
from .._core.component import check_choice, check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar, Schedule
from .base import AbstractIntegrator, Phase, PhaseT


class FrictionSettings:
    """The settings that every subclass declares as fields, in the order of its own constructor."""

    momentum: str


class AbstractFriction(FrictionSettings, AbstractIntegrator[PhaseT]):
    """Langevin dynamics with a momentum r and a friction γ.

    A subclass declares `units` and `momentum` after its own settings, and implements `init`, `step` and `scales`.
    """

    has_momentum: ClassVar[bool] = True
    step_size: Scalar | Schedule = eqx.field(converter=schedules.as_step_size)
    friction: float = eqx.field(converter=plain)
    temperature: float = eqx.field(default=1.0, converter=plain)

    def __check_init__(self):
        check_positive(type(self).__name__, "friction", self.friction)
        check_choice(type(self).__name__, "momentum", self.momentum, ("thermal", "zero"))

    def start_momentum(self, key: Key, position: Position) -> Position:
        """A draw from N(0, T I) for `momentum="thermal"`, 0 for "zero"."""
        if self.momentum == "zero":
            return pytree.zeros_like(position)
        return pytree.scaled(jnp.sqrt(self.temperature), _random.normal_like(key, position))


class AbstractLangevin(AbstractFriction[Phase]):
    """Underdamped Langevin dynamics with constant friction, whose state is a position and a momentum."""

    units: str = eqx.field(static=True, default="sum")
    momentum: str = eqx.field(static=True, default="thermal")

    def init(self, key: Key, position: Position) -> Phase:
        return Phase(position, self.start_momentum(key, position))
