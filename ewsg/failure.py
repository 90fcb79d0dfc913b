"""Why a chain failed, as far as can be told from the step size and the curvature at its start."""

import jax
import jax.numpy as jnp
import numpy as np

from . import _loop
from ._types import Position
from .sampler import AbstractSampler

_PROBED_DATA = 10_000


def likely_cause(sampler: AbstractSampler, position: Position) -> str:
    """One or two sentences: the cause, and what to do."""
    target = sampler.target
    start = jax.tree.map(jnp.asarray, position)
    count = target.block(start, min(target.num_data, _PROBED_DATA))
    indices = jnp.asarray(np.linspace(0, target.num_data - 1, count).round(), jnp.int32)
    largest = float(_loop.curvature(target, start, indices, jax.random.key(0)))
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
