"""The role of an integrator: move the state by one step, asking for forces where it needs them."""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, _tree, schedules
from .._component import Component, check_choice, check_positive
from .._types import Key, Position, Scalar, Schedule
from ..contract import EstimateInfo, Kick, Scales, StepInfo

ForceFunction: TypeAlias = Callable[[Key, Kick, Any], tuple[Position, Any, EstimateInfo]]
"""(key, kick, estimator state) -> (force, estimator state, info)."""


class Phase(NamedTuple):
    """A point of phase space; momentum is None for first-order dynamics."""

    position: Position
    momentum: Position | None


def start_momentum(key: Key, position: Position, temperature: Scalar, how: str) -> Phase:
    """`position` with a momentum drawn from N(0, T I) ("thermal"), or at rest ("zero")."""
    if how == "zero":
        return Phase(position, _tree.zeros_like(position))
    return Phase(position, _tree.scaled(jnp.sqrt(temperature), _random.normal_like(key, position)))


def friction_in_sum_units(integrator: Any, num_data: int) -> Any:
    """An integrator with a friction, from mean units to sum units: h_sum = h_mean/√n, γ_sum = γ_mean·√n."""
    if integrator.units == "sum":
        return integrator
    root = math.sqrt(num_data)
    step_size = schedules.scale(integrator.step_size, 1 / root)
    return dataclasses.replace(integrator, step_size=step_size, friction=integrator.friction * root, units="sum")


class AbstractIntegrator(Component):
    """One step of a Langevin dynamics that targets exp(−V/T).

    A new integrator is one file with one subclass. Its settings are in sum units (see `in_sum_units`) by the time
    `step` is called.
    """

    has_momentum: ClassVar[bool]
    step_size: eqx.AbstractVar[Scalar | Schedule]
    if not TYPE_CHECKING:  # a type checker would place them before the subclass's own settings
        temperature: eqx.AbstractVar[float]
        units: eqx.AbstractVar[str]

    def __check_init__(self: Any):
        if not callable(self.step_size):
            check_positive(type(self).__name__, "step_size", self.step_size)
        check_positive(type(self).__name__, "temperature", self.temperature)
        check_choice(type(self).__name__, "units", self.units, ("sum", "mean"))

    @abc.abstractmethod
    def init(self, key: Key, position: Position) -> Phase:
        """The starting point in phase space."""

    @abc.abstractmethod
    def step(
        self,
        key: Key,
        phase: Phase,
        step: Int[Array, ""],
        force_function: ForceFunction,
        estimator_state: Any,
    ) -> tuple[Phase, Any, StepInfo]:
        """The next point, the estimator's next state, and what happened; `step` counts from 0."""

    @abc.abstractmethod
    def scales(self, step: Int[Array, ""]) -> Scales:
        """The factor of the force and the standard deviation of the noise in the update at `step`."""

    @abc.abstractmethod
    def in_sum_units(self, num_data: int) -> "AbstractIntegrator":
        """The same dynamics with its settings meant for ∇V, the sum over data, at temperature T."""

    def stability(self, curvature: Scalar) -> tuple[Scalar, str] | None:
        """(h·λ_max over its limit, the condition in words), for a constant step size in sum units; None if unknown."""
        del curvature
        return None
