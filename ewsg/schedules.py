"""Step sizes that change along the run. Any function of the step counter fits; optax schedules too."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from ._component import Component, as_module, check_positive
from ._types import Scalar, Schedule


class Polynomial(Component):
    """h(t) = initial · (1 + t/delay)^(−power): the decreasing steps of Welling and Teh (2011)."""

    initial: float
    delay: float = 1000.0
    power: float = 1 / 3

    def __check_init__(self):
        check_positive("Polynomial", "initial", self.initial)
        check_positive("Polynomial", "delay", self.delay)
        check_positive("Polynomial", "power", self.power, zero=True)

    def __call__(self, step: Int[Array, ""]) -> Scalar:
        return self.initial * (1 + jnp.asarray(step, float) / self.delay) ** (-self.power)


class Scaled(Component):
    """factor · schedule(t): how a schedule is carried from one system of units to another."""

    schedule: Schedule = eqx.field(converter=as_module)
    factor: float

    def __call__(self, step: Int[Array, ""]) -> Scalar:
        return self.factor * self.schedule(step)


def as_step_size(step_size: Scalar | Schedule) -> Scalar | Schedule:
    """A step size as a component holds it: a number, or a schedule that is a pytree."""
    return as_module(step_size) if callable(step_size) else step_size


def at(step_size: Scalar | Schedule, step: Int[Array, ""]) -> Scalar:
    """The step size at a step, constant or scheduled."""
    return step_size(step) if callable(step_size) else step_size


def scale(step_size: Scalar | Schedule, factor: float) -> Scalar | Schedule:
    """`step_size` in other units."""
    return Scaled(step_size, factor) if callable(step_size) else step_size * factor
