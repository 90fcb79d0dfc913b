"""The messages between estimators, integrators and the loop.

An integrator moves the state and asks for a force by describing the `Kick` it is about to give; an estimator answers
with a force. Neither knows the other's kind, so any estimator works with any integrator.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ._core import pytree
from ._core.types import Indices, Position, Scalar


class Kick(NamedTuple):
    """The update for which a force is requested: Δ = step_size · force − decay + noise_scale · ξ.

    Attributes:
        position: where the force is to be evaluated.
        momentum: r just before the kick; None when the dynamics has no momentum.
        decay: the friction's part of the same update (hγr for Euler–Maruyama); None without momentum.
        noise: the standard normal ξ that the same update injects; None when it is drawn elsewhere in the step, or not
            added to the force (`AbstractIntegrator.adds_noise`).
        step_size: h, the factor of the force.
        noise_scale: the standard deviation of the injected noise: σ√h underdamped, √(2hT) overdamped.
        temperature: T.
        step: how many steps came before; identical for all chains, so that `vmap` does not turn a `lax.cond` on it into
            a select.
        metric: diagonal preconditioner P of the update, which is then h·P·force + noise_scale·√P·ξ; None is P = I.
            In the coordinates z = θ/√P the same update has P = I: a force there is √P·force, a momentum, a decay or any
            other update is divided by √P. An estimator honours P if it answers alike in both coordinates.
        factor: how effective a friction inside the kick is in this integrator's step, relative to Euler–Maruyama (1).
    """

    position: Position
    momentum: Position | None
    decay: Position | None
    noise: Position | None
    step_size: Scalar
    noise_scale: Scalar
    temperature: Scalar
    step: Int[Array, ""] | int = 0
    metric: Position | None = None
    factor: Scalar = 1.0

    def whiten(self, force: Position) -> Position:
        """The force's part of the update in units of the injected noise: (h / noise_scale) √P · force."""
        return pytree.scaled(self.step_size / pytree.divisor(self.noise_scale), self.times_root(force))

    def times_root(self, tree: Position) -> Position:
        """√P · tree: a force in the coordinates where P = I, or an update back from them."""
        return times_root(self.metric, tree)

    def over_root(self, tree: Position) -> Position:
        """tree / √P: an update in the coordinates where P = I, or a force back from them."""
        if self.metric is None:
            return tree
        return jax.tree.map(lambda p, leaf: leaf / jnp.sqrt(p), self.metric, tree)


def times_root(metric: Position | None, tree: Position) -> Position:
    """√P · tree for a diagonal metric P, None being P = I."""
    if metric is None:
        return tree
    return jax.tree.map(lambda p, leaf: jnp.sqrt(p) * leaf, metric, tree)


class Cost(NamedTuple):
    """The evaluations of one step: gradients of one datum, and directional derivatives of one datum."""

    datum_gradients: Int[Array, ""] | int
    datum_directional: Int[Array, ""] | int = 0


class EstimateInfo(NamedTuple):
    """The report of an estimate: the data it chose, its cost, and scalars by name for `run.stats`.

    `drag` is the part of the force that is friction, left out where only the potential's force counts.
    """

    indices: Indices | None
    cost: Cost
    stats: Mapping[str, Scalar]
    drag: Position | None = None


class StepInfo(NamedTuple):
    """The report of a step: its last force and where that was evaluated (None without forces), and the estimate."""

    evaluated_at: Position | None
    force: Position | None
    estimate: EstimateInfo


class Scales(NamedTuple):
    """The factor of the force and the standard deviation of the noise in one update."""

    step_size: Scalar
    noise_scale: Scalar
