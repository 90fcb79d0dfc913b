"""Linear coordinates in which a posterior is nearly isotropic, so that short trajectories suffice for NUTS."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core.types import Position
from ..errors import InputError
from .mode import curvature, find_mode
from .target import Target


def whitened(target: Target, init: Position) -> tuple[Target, Callable[[Float[Array, " d"]], Position]]:
    """The posterior of z, where θ = θ̂ + L z, L Lᵀ = (∇²V(θ̂))⁻¹ and θ̂ is the mode; and the map from z to θ."""
    found = find_mode(target, init)
    mode, unravel = ravel_pytree(found.position)
    root = jnp.linalg.inv(jnp.linalg.cholesky(curvature(target, found.position))).T
    if not jnp.all(jnp.isfinite(root)):
        raise InputError("the potential is not convex at the mode that was found: try another init")

    def place(z: Float[Array, " d"]) -> Position:
        return unravel(mode + root @ z)

    def log_likelihood(z: Float[Array, " d"], datum: Array) -> Float[Array, ""]:
        return target.likelihood(place(z), datum)

    return Target(log_likelihood, lambda z: target.log_prior(place(z)), target.data.arrays), place
