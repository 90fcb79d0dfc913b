"""Estimator × integrator = sampler: pure `init` and `step` functions, usable in anybody's loop."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from . import _random, _tree
from ._types import Key, Position, Scalar
from .contract import Cost, StepInfo
from .errors import InputError
from .estimators import AbstractEstimator
from .integrators import AbstractIntegrator
from .integrators.base import Phase
from .target import Target


class SamplerState(NamedTuple):
    """All that the next step needs."""

    phase: Phase
    estimator: Any
    step: Int[Array, ""]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class Sampler:
    """A target, an estimator and an integrator (in sum units) as one transition.

    Example:
        >>> import jax, jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> sampler = ewsg.compose(target, ewsg.Uniform(2), ewsg.Underdamped(step_size=0.01, friction=5.0))
        >>> key_init, key_step = jax.random.split(jax.random.key(0))
        >>> state = sampler.init(key_init, jnp.array(4.0))
        >>> state, info = jax.jit(sampler.step)(key_step, state)
        >>> info.estimate.indices.shape
        (2,)
    """

    target: Target
    estimator: AbstractEstimator
    integrator: AbstractIntegrator

    def init(self, key: Key, position: Position) -> SamplerState:
        """The state of a chain that starts at `position`."""
        key_phase, key_estimator = _random.split(key)
        phase = self.integrator.init(key_phase, position)
        return SamplerState(phase, self.estimator.init(key_estimator, self.target, position), jnp.int32(0))

    def step(self, key: Key, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        """One transition."""

        def force_function(key, kick, estimator_state):
            return self.estimator.estimate(key, self.target, kick, estimator_state)

        phase, estimator, info = self.integrator.step(key, state.phase, state.step, force_function, state.estimator)
        return SamplerState(_tree.cast_like(phase, state.phase), estimator, state.step + 1), info

    def cost(self) -> Cost:
        """What one step evaluates."""
        return self.estimator.cost(self.target.num_data)

    def num_steps(self, budget: int) -> int:
        """How many steps a budget of datum gradients pays for."""
        return self.estimator.num_steps(budget, self.target.num_data)

    def noise_ratio(self, key: Key, state: SamplerState) -> Scalar:
        """ρ = h² Tr Cov(force) / (d · variance of the injected noise): how much subsampling heats the chain."""
        h, noise_scale = self.integrator.scales(state.step)
        trace = self.estimator.noise_trace(key, self.target, state.phase.position)
        return h**2 * trace / (noise_scale**2 * _tree.size(state.phase.position))


def compose(target: Target, estimator: AbstractEstimator, integrator: AbstractIntegrator) -> Sampler:
    """The sampler that `ewsg.sample` runs, for a loop of your own.

    Args:
        target: the posterior.
        estimator: which data (`ewsg.estimators`).
        integrator: how to move (`ewsg.integrators`); settings in mean units are translated here.
    """
    for name, part, role in (
        ("target", target, Target),
        ("estimator", estimator, AbstractEstimator),
        ("integrator", integrator, AbstractIntegrator),
    ):
        if not isinstance(part, role):
            raise InputError(f"{name} must be an ewsg {role.__name__.removeprefix('Abstract')}, not {part!r}")
    estimator.check(target.num_data, integrator.has_momentum)
    return Sampler(target, estimator, integrator.in_sum_units(target.num_data))
