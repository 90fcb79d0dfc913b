"""Why a chain failed, as far as can be told from the step size and the curvature at its start."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from . import _random, _tree
from ._types import Indices, Key, Position
from .sampler import AbstractSampler
from .target import Target

_PROBED_DATA = 10_000


def likely_cause(sampler: AbstractSampler, position: Position) -> str:
    """One or two sentences: the cause, and what to do."""
    target = sampler.target
    start = jax.tree.map(jnp.asarray, position)
    count = target.block(start, min(target.num_data, _PROBED_DATA))
    indices = jnp.asarray(np.linspace(0, target.num_data - 1, count).round(), jnp.int32)
    largest = float(_curvature(target, start, indices, jax.random.key(0)))
    limit = sampler.stability(largest)
    if limit is None:
        return (
            "The chain met a place that is too steep for it, or where the density is not finite. Lower the step size, "
            "if it has one, or check log_likelihood and log_prior far from the mode."
        )
    excess, condition = float(limit[0]), limit[1]
    if np.isfinite(excess) and excess > 1:
        return (
            f"Likely cause: the step size is {excess:.2g} times what the dynamics can bear at the start "
            f"({condition}, and λ_max is about {largest:.3g}). Lower it at least that much."
        )
    return (
        f"The step size is within the stability limit at the start ({condition}, λ_max about {largest:.3g}): the chain "
        "met a steeper place, or a point where the density is not finite. Lower the step size, start nearer the mode, "
        "or check log_likelihood far from it."
    )


@jax.jit
def _curvature(target: Target, position: Position, indices: Indices, key: Key) -> Array:
    """The largest eigenvalue of the Hessian of V at `position`, by power iteration on the given data."""

    def improve(_, direction: Position) -> Position:
        product = jax.jvp(lambda p: target.force(p, indices), (position,), (direction,))[1]
        return _tree.scaled(1 / jnp.sqrt(_tree.dot(product, product)), product)

    direction = jax.lax.fori_loop(0, 30, improve, _random.normal_like(key, position))
    product = jax.jvp(lambda p: target.force(p, indices), (position,), (direction,))[1]
    return -_tree.dot(direction, product) / _tree.dot(direction, direction)
