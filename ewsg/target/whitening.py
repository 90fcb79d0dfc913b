"""Linear coordinates in which a posterior is nearly isotropic, so that NUTS needs short trajectories."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core.types import Position
from ..estimators import ControlVariate, Uniform
from .target import Target

_MODE_PASSES = 500


def whitened(target: Target, init: Position) -> tuple[Target, Callable[[Float[Array, " d"]], Position]]:
    """The posterior of z with θ = θ̂ + L z, L Lᵀ = (∇²V(θ̂))⁻¹, and the map from z to θ; θ̂ is the mode."""
    found, _ = ControlVariate(Uniform(1), start=init, max_passes=_MODE_PASSES).prepare(target)
    mode, unravel = ravel_pytree(found.anchor)

    def slope(theta: Float[Array, " d"]) -> Float[Array, " d"]:
        return ravel_pytree(target.full_force(unravel(theta)))[0]

    hessian = -jax.jit(jax.jacfwd(slope))(mode)
    root = jnp.linalg.inv(jnp.linalg.cholesky((hessian + hessian.T) / 2)).T

    def place(z: Float[Array, " d"]) -> Position:
        return unravel(mode + root @ z)

    def log_likelihood(z: Float[Array, " d"], datum: Array) -> Float[Array, ""]:
        return target.likelihood(place(z), datum)

    return Target(log_likelihood, lambda z: target.log_prior(place(z)), target.data.arrays), place
