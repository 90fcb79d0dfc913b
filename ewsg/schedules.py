"""Step sizes that change along the run. Any function of the step counter will do, such as an optax schedule."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ._core.component import Component, as_module, check_positive
from ._core.settings import plain
from ._core.types import Scalar, Schedule
from .errors import InputError


class Polynomial(Component):
    """h(t) = initial · (1 + t/delay)^(−power): the decreasing steps of Welling and Teh (2011)."""

    initial: float = eqx.field(converter=plain)
    delay: float = eqx.field(default=1000.0, converter=plain)
    power: float = eqx.field(default=1 / 3, converter=plain)

    def __check_init__(self):
        check_positive("Polynomial", "initial", self.initial)
        check_positive("Polynomial", "delay", self.delay)
        check_positive("Polynomial", "power", self.power, zero=True)

    def __call__(self, step: Int[Array, ""]) -> Scalar:
        return self.initial * (1 + jnp.asarray(step, float) / self.delay) ** (-self.power)


class Scaled(Component):
    """factor · schedule(t): a schedule in other units."""

    schedule: Schedule = eqx.field(converter=as_module)
    factor: float

    def __call__(self, step: Int[Array, ""]) -> Scalar:
        return self.factor * self.schedule(step)


def as_step_size(step_size: Any) -> Scalar | Schedule:
    """A step size as a component holds it: a number, or a schedule that is a pytree."""
    return as_module(step_size) if callable(step_size) else plain(step_size)


def check_schedule(owner: str, step_size: Scalar | Schedule) -> None:
    """Raise InputError for a schedule that cannot be compiled, or is not one finite number ≥ 0 at step 0."""
    if not callable(step_size):
        return
    rule = f"{owner}: step_size is a function and must return one real number for a step counter"
    try:
        first = step_size(jnp.int32(0))
    except Exception as error:
        raise InputError(f"{rule}; at step 0 it failed: {error!r}") from error
    is_array = isinstance(first, np.generic | np.ndarray | jax.Array)
    is_real = is_array and first.ndim == 0 and jnp.issubdtype(first.dtype, jnp.floating)
    if not (is_real or isinstance(first, float)):
        given = f"an array of shape {first.shape} and {first.dtype}" if is_array else repr(first)
        raise InputError(f"{rule}, such as 0.01; at step 0 it returned {given}")
    check_positive(owner, "step_size at step 0", first, zero=True)
    try:
        jax.eval_shape(step_size, jax.ShapeDtypeStruct((), jnp.int32))
    except Exception as error:
        raise InputError(
            f"{rule}; it cannot be compiled ({type(error).__name__}): use jnp.where in place of if, index a jnp.array "
            "in place of a list, or take an optax schedule"
        ) from error


def at(step_size: Scalar | Schedule, step: Int[Array, ""]) -> Scalar:
    """The step size at a step, constant or scheduled; a schedule chooses its floating-point dtype."""
    return jnp.asarray(step_size(step)) if callable(step_size) else step_size


def scale(step_size: Scalar | Schedule, factor: float) -> Scalar | Schedule:
    """`step_size` in other units."""
    return Scaled(step_size, factor) if callable(step_size) else step_size * factor
