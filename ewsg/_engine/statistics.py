"""The diagnostics of one step: temperatures, and per parameter the virial and its slope."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Position, Scalar
from ..collect import AbstractCollector
from ..interface import StepInfo
from ..sampler import SamplerState

_MOST_VIRIAL_PARAMETERS, _MOST_VIRIAL_CHAINS = 512, 256


def vector_bytes(collector: AbstractCollector, position: Position, num_chains: int) -> int:
    """The bytes per draw and chain of the diagnostics that have one number per parameter."""
    wide = pytree.wide_dtype(position)
    return 2 * pytree.size(position) * wide.itemsize if keeps_all(collector, position, num_chains) else 0


def keeps_all(collector: AbstractCollector, position: Position, num_chains: int) -> bool:
    """Whether to keep diagnostics with one number per parameter: only if each draw is at least as large.

    Not with many parameters or many chains, where they would take a sixth of the time of a cheap step.
    """
    dimension = pytree.size(position)
    few = dimension <= _MOST_VIRIAL_PARAMETERS and num_chains <= _MOST_VIRIAL_CHAINS
    return few and pytree.size(jax.eval_shape(collector.row, position)) >= dimension


def step_stats(
    state: SamplerState, info: StepInfo, center: Position, temperature: Scalar, vectors: bool
) -> dict[str, Array | Scalar]:
    """The numbers averaged over the steps between two draws.

    Kinetic temperature ‖r‖²/d; configurational temperature −(θ − c)·F/d, whose mean is T for any fixed c in the target
    exp(−V/T) (the virial theorem). The latter detects heating or cooling of the position, with or without momentum.

    With `vectors`, two numbers per parameter: its virial −(θ_k − c_k) F_k, whose mean is T; and the slope of the virial
    along it, (θ_k − c_k)((θ − c)·F + (d + 1) T), whose mean is 0 if the temperature is the same everywhere. Both
    follow from E[φ·F + T div φ] = 0, with φ = (θ_k − c_k) e_k and φ = (θ_k − c_k)(θ − c).

    Args:
        state: the state after the step.
        info: the report of the step.
        center: c.
        temperature: T.
        vectors: whether to include the numbers per parameter.
    """
    dimension = pytree.size(center)
    stats = {}
    if info.force is not None:
        displacement = pytree.subtract(info.evaluated_at, center)
        drag = info.estimate.drag
        force = info.force if drag is None else pytree.subtract(info.force, drag)
        virial = -pytree.dot(displacement, force)
        stats["configurational_temperature"] = virial / dimension
        if vectors:
            away, pull = _flat(displacement), _flat(force)
            terms = away * pull
            excess = (dimension + 1) * pytree.as_dtype(temperature, terms.dtype) + jnp.sum(terms)
            stats["virial"], stats["virial_slope"] = -terms, away * excess
    momentum = state.phase.momentum
    if momentum is not None:
        stats["kinetic_temperature"] = pytree.dot(momentum, momentum) / dimension
    return stats | dict(info.estimate.stats)


def _flat(tree: Position) -> Float[Array, " d"]:
    """All entries in one vector, in at least float32."""
    return ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(pytree.wide_dtype(tree)), tree))[0]
