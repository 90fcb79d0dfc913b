"""What estimators, integrators and the loop say to each other.

An integrator moves the state and asks for a force by describing the `Kick` it is about to give; an estimator answers
with a force. Neither knows the other's kind, so any estimator works with any integrator.
"""

from typing import NamedTuple

from jaxtyping import Array, Int

from ._types import Indices, Position, Scalar


class Kick(NamedTuple):
    """The update that a force is wanted for: Δ = step_size · force − decay + noise_scale · ξ.

    Attributes:
        position: where the force is wanted.
        momentum: r just before the kick; None when the dynamics has no momentum.
        decay: what friction takes off in the same update (hγr for Euler–Maruyama); None without momentum.
        noise: the standard normal ξ that the same update injects; None when it is drawn elsewhere in the step.
        step_size: h, the factor of the force.
        noise_scale: the standard deviation of the injected noise: σ√h underdamped, √(2hT) overdamped.
        temperature: T.
    """

    position: Position
    momentum: Position | None
    decay: Position | None
    noise: Position | None
    step_size: Scalar
    noise_scale: Scalar
    temperature: Scalar


class Cost(NamedTuple):
    """What one step evaluates: gradients of one datum, and directional derivatives of one datum."""

    datum_gradients: Int[Array, ""] | int
    datum_directional: Int[Array, ""] | int = 0


class EstimateInfo(NamedTuple):
    """What an estimate reports: the data it settled on, its cost, and scalars by name for `run.stats`."""

    indices: Indices | None
    cost: Cost
    stats: dict[str, Scalar]


class StepInfo(NamedTuple):
    """What a step reports: the last force, where it was evaluated, and what its estimate reported."""

    evaluated_at: Position
    force: Position
    estimate: EstimateInfo


class Scales(NamedTuple):
    """The factor of the force and the standard deviation of the noise in one update."""

    step_size: Scalar
    noise_scale: Scalar
