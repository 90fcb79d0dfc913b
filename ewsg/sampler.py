"""Estimator × integrator = sampler: pure `init` and `step` functions, usable in any loop."""

import abc
import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from . import _random
from ._core import pytree
from ._core.component import Component
from ._core.types import Key, Position, Scalar
from .errors import InputError, shown
from .estimators import AbstractEstimator
from .integrators import AbstractIntegrator
from .integrators.base import PhasePoint
from .interface import Cost, StepInfo
from .schedules import check_schedule
from .target.coordinates import AbstractCoordinates
from .target.target import Target


class SamplerState(NamedTuple):
    """Everything that the next step needs.

    Attributes:
        phase: the integrator's state.
        estimator: the estimator's state, or that of a whole method (the field's name is part of saved files).
        step: the number of steps taken.
    """

    phase: PhasePoint
    estimator: Any
    step: Int[Array, ""]


class AbstractSampler(abc.ABC):
    """A transition for the loop to run, with its cost and its stability limit."""

    target: Target

    @abc.abstractmethod
    def init(self, key: Key, position: Position) -> SamplerState:
        """The state of a chain that starts at `position`."""

    @abc.abstractmethod
    def step(self, key: Key, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        """One transition."""

    @property
    @abc.abstractmethod
    def temperature(self) -> Scalar:
        """T of the target exp(−V/T)."""

    @abc.abstractmethod
    def num_steps(self, budget: int) -> int:
        """The number of steps that a budget of datum gradients per chain pays for, after the preparation."""

    def preparation_cost(self) -> Cost:
        """The evaluations done once for all chains, before the first step."""
        return Cost(0)

    def check(self, positions: Position) -> None:
        """Raise InputError, before anything is compiled, if chains from these stacked positions would be wrong."""
        del positions

    def noise_ratio(self, key: Key, state: SamplerState) -> Scalar:
        """Variance of the gradient noise over that of the injected noise; 0 without subsampling."""
        del key, state
        return 0.0

    def probe_cost(self) -> int:
        """The number of directional derivatives, of one datum each, that a call of `noise_ratio` evaluates."""
        return 0

    def stability(self, curvature: Scalar) -> tuple[Scalar, str] | None:
        """(step size over its limit at this curvature, the condition in words); None if there is no known limit."""
        del curvature
        return None


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Sampler(AbstractSampler):
    """A target, an estimator and an integrator (in sum units) as one transition.

    A sampler is a pytree. Compile its step as a function of the sampler too, as below: the data are then an argument of
    the program, whereas `jax.jit(sampler.step)` would embed them in it as constants.

    Example:
        >>> import jax, jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> sampler = ewsg.compose(target, ewsg.Uniform(2), ewsg.Underdamped(step_size=0.01, friction=5.0))
        >>> key_init, key_step = jax.random.split(jax.random.key(0))
        >>> state = sampler.init(key_init, jnp.array(4.0))
        >>> step = jax.jit(type(sampler).step)
        >>> state, info = step(sampler, key_step, state)
        >>> info.estimate.indices.shape
        (2,)
    """

    target: Target
    estimator: AbstractEstimator
    integrator: AbstractIntegrator
    prepared: Cost = dataclasses.field(default=Cost(0), metadata={"static": True})

    def init(self, key: Key, position: Position) -> SamplerState:
        key_phase, key_estimator = _random.split(key)
        phase = self.integrator.init(key_phase, position)
        return SamplerState(phase, self.estimator.init(key_estimator, self.target, position), jnp.int32(0))

    def step(self, key: Key, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        def force_function(key, kick, estimator_state):
            return self.estimator.estimate(key, self.target, kick, estimator_state)

        phase, estimator, info = self.integrator.step(key, state.phase, state.step, force_function, state.estimator)
        return SamplerState(pytree.cast_like(phase, state.phase), estimator, state.step + 1), info

    @property
    def temperature(self) -> Scalar:
        return self.integrator.temperature

    def num_steps(self, budget: int) -> int:
        left = budget - int(self.prepared.datum_gradients)
        return max(0, self.estimator.num_steps(left, self.target.num_data))

    def preparation_cost(self) -> Cost:
        return self.prepared

    def noise_ratio(self, key: Key, state: SamplerState) -> Scalar:
        """ρ = h² Tr √P Cov(force) √P / (d · variance of the injected noise): how much subsampling heats the chain."""
        h, noise_scale = self.integrator.scales(state.step)
        position, metric = state.phase.position, self.integrator.metric(state.phase, state.step)
        trace = self.estimator.noise_trace(key, self.target, position, state.estimator, metric)
        heat = h**2 / (pytree.divisor(noise_scale) ** 2 * pytree.size(position))
        return pytree.as_dtype(heat, jnp.result_type(trace)) * trace

    def probe_cost(self) -> int:
        return self.estimator.probe_cost(self.target.num_data)

    def stability(self, curvature: Scalar) -> tuple[Scalar, str] | None:
        return self.integrator.stability(curvature)


class Method(NamedTuple):
    """An estimator and an integrator; `ewsg.sample(target, method, ...)` accepts it in place of the two."""

    estimator: AbstractEstimator
    integrator: AbstractIntegrator


class MethodInCoordinates(NamedTuple):
    """An estimator and an integrator in their own coordinates, such as those of a plan."""

    estimator: AbstractEstimator
    integrator: AbstractIntegrator
    coordinates: AbstractCoordinates


class AbstractKernel(Component):
    """A whole method that is neither an estimator nor an integrator: `ewsg.sample(target, kernel, ...)`."""

    @abc.abstractmethod
    def bind(self, target: Target) -> AbstractSampler:
        """The sampler of this method for a target; raises InputError if the target does not suit the method."""


def compose(
    target: Target,
    estimator: AbstractEstimator | AbstractKernel,
    integrator: AbstractIntegrator | None = None,
    coordinates: AbstractCoordinates | None = None,
) -> AbstractSampler:
    """The sampler that `ewsg.sample` runs, for a loop of your own.

    Args:
        target: the posterior.
        estimator: which data (`ewsg.estimators`); or a whole method, which takes no integrator.
        integrator: how to move (`ewsg.integrators`); settings in mean units are translated here.
        coordinates: z, with θ = c + L z (`ewsg.coordinates`); the sampler's positions are then z, one vector.
    """
    check_parts(target, estimator, integrator)
    target = target if coordinates is None else target.in_coordinates(coordinates)
    if isinstance(estimator, AbstractKernel):
        return estimator.bind(target)
    assert integrator is not None
    prepared, cost = estimator.prepare(target)
    return Sampler(target, prepared, integrator.in_sum_units(target.num_data), cost)


def check_parts(target: Any, estimator: Any, integrator: Any) -> None:
    """Raise InputError, before any work is done, if a part is of the wrong kind or the parts do not fit together."""
    _check_role("target", target, Target)
    if isinstance(estimator, AbstractKernel):
        if integrator is not None:
            raise InputError(f"{type(estimator).__name__} is a whole method and takes no integrator: leave it out")
        return
    _check_role("estimator", estimator, AbstractEstimator)
    _check_role("integrator", integrator, AbstractIntegrator)
    check_schedule(type(integrator).__name__, integrator.step_size)
    estimator.check(target.num_data, integrator.has_momentum)
    if not integrator.adds_noise and estimator.reads_noise():
        raise InputError(
            f"{type(estimator).__name__} chooses data by the noise that a step adds, but {type(integrator).__name__} "
            "adds none: use Overdamped, or an estimator such as Uniform"
        )


def _check_role(name: str, part: Any, role: type) -> None:
    if not isinstance(part, role):
        kind = role.__name__.removeprefix("Abstract").lower()
        advice = "make one with ewsg.Target(log_likelihood, log_prior, data)"
        if role is not Target:
            advice = f"see the module ewsg.{kind}s"
        raise InputError(f"{name} must be an ewsg {kind}, not {shown(part)}: {advice}")
