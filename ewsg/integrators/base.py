"""The role of an integrator: move the state by one step, requesting forces where it needs them."""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from jaxtyping import Array, Int

from .. import schedules
from .._core.component import Component, check_choice, check_positive
from .._core.settings import check_flags
from .._core.types import Key, Position, Scalar, Schedule
from ..errors import InputError
from ..interface import EstimateInfo, Kick, Scales, StepInfo

ForceFunction: TypeAlias = Callable[[Key, Kick, Any], tuple[Position, Any, EstimateInfo]]
"""(key, kick, estimator state) -> (force, estimator state, info)."""


@runtime_checkable
class PhasePoint(Protocol):
    """A named tuple with at least a position and a momentum (None for first-order dynamics)."""

    @property
    def position(self) -> Position:
        """θ."""

    @property
    def momentum(self) -> Position | None:
        """r, or None."""

    def _replace(self, **kwargs: Any) -> Any:
        """The same point with some entries replaced."""
        ...


PhaseT = TypeVar("PhaseT", bound=PhasePoint)
"""The state that an integrator carries from step to step: `Phase`, or a named tuple with more entries."""


class Phase(NamedTuple):
    """A point of phase space; momentum is None for first-order dynamics."""

    position: Position
    momentum: Position | None


class DynamicsSettings:
    """The settings that every integrator declares as fields, in the order of its own constructor.

    This is not a dataclass: fields of a base class would come before all settings of a subclass.
    """

    step_size: Scalar | Schedule
    temperature: float
    units: str


class AbstractIntegrator(DynamicsSettings, Component, Generic[PhaseT]):
    """One step of a Langevin dynamics that targets exp(−V/T); its state is a `PhaseT`.

    A new integrator is one file with one subclass, which implements `init`, `step` and `scales`, and overrides
    `in_sum_units`, `metric` and `stability` where their defaults below do not fit. Its settings are in sum units by the
    time `step` is called.
    """

    has_momentum: ClassVar[bool]
    adds_noise: ClassVar[bool] = True
    """Whether a step adds its noise to the force. If not, an estimator that reads the noise of a kick is refused."""

    def __check_init__(self):
        for name in DynamicsSettings.__annotations__:
            if not hasattr(self, name):
                raise InputError(f"{type(self).__name__} has no setting {name}: an integrator declares it as a field")
        check_flags(self)
        if not callable(self.step_size):
            check_positive(type(self).__name__, "step_size", self.step_size)
        check_positive(type(self).__name__, "temperature", self.temperature)
        check_choice(type(self).__name__, "units", self.units, ("sum", "mean"))

    @abc.abstractmethod
    def init(self, key: Key, position: Position) -> PhaseT:
        """The starting point in phase space."""

    @abc.abstractmethod
    def step(
        self,
        key: Key,
        phase: PhaseT,
        step: Int[Array, ""],
        force_function: ForceFunction,
        estimator_state: Any,
    ) -> tuple[PhaseT, Any, StepInfo]:
        """The next point in phase space, the estimator's next state, and a report; `step` counts from 0."""

    @abc.abstractmethod
    def scales(self, step: Int[Array, ""]) -> Scales:
        """The factor of the force and the standard deviation of the noise in the update at `step`."""

    def in_sum_units(self: Any, num_data: int) -> Any:
        """The same dynamics with its settings for ∇V, the sum over data, at temperature T.

        Mean units are settings for ∇V/n at temperature T/n, with mass 1. They are translated by h_sum = h_mean/√n and
        γ_sum = γ_mean·√n for dynamics with a momentum and a `friction` γ, by h_sum = h_mean/n without momentum. An
        integrator with further settings that carry a unit of time must override this.
        """
        if self.units == "sum":
            return self
        if not self.has_momentum:
            return dataclasses.replace(self, step_size=schedules.scale(self.step_size, 1 / num_data), units="sum")
        if not hasattr(self, "friction"):
            raise InputError(
                f"{type(self).__name__} has no friction to translate from units='mean': use units='sum', or override "
                "in_sum_units"
            )
        root = math.sqrt(num_data)
        step_size = schedules.scale(self.step_size, 1 / root)
        return dataclasses.replace(self, step_size=step_size, friction=self.friction * root, units="sum")

    def metric(self, phase: PhaseT, step: Int[Array, ""]) -> Position | None:
        """The preconditioner P that the kick at `step` announces (`Kick.metric`); None is P = I."""
        del phase, step
        return None

    def stability(self, curvature: Scalar) -> tuple[Scalar, str] | None:
        """(step size over its limit at the curvature λ_max, the condition in words), at step 0 and in sum units.

        None if there is no known limit.
        """
        del curvature
        return None
