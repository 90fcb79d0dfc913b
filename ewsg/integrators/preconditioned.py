"""Overdamped Langevin dynamics with an RMS preconditioner: pSGLD when the force is stochastic."""

import dataclasses
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import _random, schedules
from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar, Schedule
from ..errors import InputError
from ..interface import Kick, Scales, StepInfo
from .base import AbstractIntegrator, ForceFunction


class PreconditionedPhase(NamedTuple):
    """The position, and the running mean of the squared gradients."""

    position: Position
    momentum: None
    second_moment: Position


class Preconditioned(AbstractIntegrator[PreconditionedPhase]):
    r"""pSGLD (Li, Chen, Carlson and Carin 2016, Alg. 1), with h = ε/2.

    v ← αv + (1 − α) ḡ∘ḡ,   ḡ = force/n,   P = 1/(λ + √v)
    θ' = θ + h (P·force + T·Γ) + √(2hTP) ξ,   Γ_i = ∂P_i/∂θ_i,   ξ ~ N(0, I)

    Targets exp(−V/T) as h → 0 if P is constant; Γ corrects for a P that changes with θ. The original argues that Γ is
    small for α near 1 and drops it, as do the authors' code and the paper's comparison: `curvature=False`.
    `curvature=True` adds the present gradient's part of Γ, −P²(1 − α) ḡ_i ∂_iḡ_i/√v (exact for α = 0 and
    `Full`). The diagonal of the Hessian in it is estimated without bias from one vector u of random signs, as
    u∘(∇ḡ u): a directional derivative of every datum's gradient, which costs about as much as the gradient and is
    counted in `cost.datum_directional`, not in the budget of data passes.

    v starts at the first ḡ∘ḡ, as in the authors' code: from v = 0 the first steps would be 1/√(1 − α) times as long.
    As in the original, the P of a step includes the gradient of that step. The kick is described before that gradient
    is known, so it shows the estimator the P of the previous step (1 at the first step).

    Args:
        step_size: h, or a function of the step counter (`ewsg.schedules`, optax); half the ε of the original.
        alpha: α, from 0 to 1; at 1, P stays that of the first gradient.
        regularization: λ.
        curvature: whether to add Γ, see above.
        temperature: T. (The authors' code adds noise for T = 1/n, as its step is in mean units.)
        units: "sum": h is for ∇V. "mean": h is for ∇V/n at temperature T/n, the same chain with h_sum = h_mean/n. P is
            computed from ∇V/n in both.
        num_data: n, set by `ewsg.compose`.
    """

    has_momentum: ClassVar[bool] = False
    step_size: Scalar | Schedule = eqx.field(converter=schedules.as_step_size)
    alpha: float = eqx.field(default=0.99, converter=plain)
    regularization: float = eqx.field(default=1e-5, converter=plain)
    curvature: bool = eqx.field(static=True, default=False, converter=plain)
    temperature: float = eqx.field(default=1.0, converter=plain)
    units: str = eqx.field(static=True, default="sum")
    num_data: int | None = eqx.field(static=True, default=None, converter=plain)

    def __check_init__(self):
        check_positive("Preconditioned", "alpha", self.alpha, zero=True)
        if not isinstance(self.alpha, jax.core.Tracer) and self.alpha > 1:
            raise InputError(f"Preconditioned: alpha must be at most 1, not {self.alpha!r}")
        check_positive("Preconditioned", "regularization", self.regularization)

    def init(self, key: Key, position: Position) -> PreconditionedPhase:
        del key
        return PreconditionedPhase(position, None, pytree.zeros_like(position))

    def step(
        self,
        key: Key,
        phase: PreconditionedPhase,
        step: Int[Array, ""],
        force_function: ForceFunction,
        estimator_state: Any,
    ) -> tuple[PreconditionedPhase, Any, StepInfo]:
        key_force, key_noise = _random.split(key)
        h, noise_scale = self.scales(step)
        position, _, second = phase
        noise = _random.normal_like(key_noise, position)
        kick = Kick(position, None, None, noise, h, noise_scale, self.temperature, step, self.metric(phase, step))
        signs = change = None
        if self.curvature:
            key_force, key_probe = _random.split(key_force)
            signs = jax.tree.map(jnp.sign, _random.normal_like(key_probe, position))
            force, change, estimator_state, info = _differentiated(
                force_function, key_force, kick, estimator_state, signs
            )
        else:
            force, estimator_state, info = force_function(key_force, kick, estimator_state)
        weight = jnp.where(step == 0, 1.0, 1 - self.alpha)  # of the present gradient in v
        mean = pytree.scaled(1 / self._size(), force)
        second = jax.tree.map(lambda v, g: v + weight * (g**2 - v), second, mean)
        metric = jax.tree.map(self._inverse_root, second)
        drift = jax.tree.map(jnp.multiply, metric, force)
        if self.curvature:
            slope = jax.tree.map(lambda g, u, c: weight * g * u * c / self._size(), mean, signs, change)
            gamma = jax.tree.map(_gamma, metric, second, slope)
            drift = pytree.add_scaled(drift, self.temperature, gamma)
        roots = pytree.scaled(noise_scale, jax.tree.map(jnp.sqrt, metric))
        moved = pytree.add_scaled(position, h, drift)
        moved = jax.tree.map(lambda x, root, xi: x + root * xi, moved, roots, noise)
        return PreconditionedPhase(moved, None, second), estimator_state, StepInfo(position, force, info)

    def scales(self, step: Int[Array, ""]) -> Scales:
        h = schedules.at(self.step_size, step)
        return Scales(h, jnp.sqrt(2 * h * self.temperature))

    def in_sum_units(self, num_data: int) -> "Preconditioned":
        step_size = self.step_size if self.units == "sum" else schedules.scale(self.step_size, 1 / num_data)
        return dataclasses.replace(self, step_size=step_size, units="sum", num_data=num_data)

    def stability(self, curvature: Scalar) -> tuple[Scalar, str]:
        """Near the mode √v is at least √(λ_max·T)/n, the sd of the exact mean gradient; minibatches add to it."""
        h = schedules.at(self.step_size, jnp.int32(0))
        typical = self.regularization + jnp.sqrt(curvature * self.temperature) / self._size()
        return h * curvature / typical / 2, "step_size · λ_max / (regularization + √(λ_max · T)/n) < 2"

    def metric(self, phase: PreconditionedPhase, step: Int[Array, ""]) -> Position:
        """P of the previous step; 1 at the first step."""
        return jax.tree.map(lambda v: jnp.where(step == 0, 1.0, self._inverse_root(v)), phase.second_moment)

    def _inverse_root(self, second: Array) -> Array:
        return 1 / (self.regularization + jnp.sqrt(second))

    def _size(self) -> int:
        if self.num_data is None:
            raise InputError("Preconditioned does not know the number of data: use ewsg.compose, or set num_data=")
        return self.num_data


def _differentiated(
    force_function: ForceFunction, key: Key, kick: Kick, estimator_state: Any, direction: Position
) -> tuple[Position, Position, Any, Any]:
    """The force, its derivative along `direction` for the same minibatch, the estimator's next state, and the info."""

    def force_at(position: Position) -> tuple[Position, tuple[Any, Any]]:
        force, state, info = force_function(key, kick._replace(position=position), estimator_state)
        return force, (state, info)

    force, change, (state, info) = jax.jvp(force_at, (kick.position,), (direction,), has_aux=True)
    cost = info.cost._replace(datum_directional=2 * info.cost.datum_directional + info.cost.datum_gradients)
    return force, change, state, info._replace(cost=cost)


def _gamma(metric: Array, second: Array, slope: Array) -> Array:
    """∂P_i/∂θ_i = −P² · slope/√v with slope = ½∂_iv; 0 where v = 0."""
    root = jnp.sqrt(second)
    return jnp.where(root > 0, -(metric**2) * slope / jnp.where(root > 0, root, 1.0), 0.0)
