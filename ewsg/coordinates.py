"""Affine coordinates θ = c + L z for `ewsg.sample(..., coordinates=...)` and `target.in_coordinates(...)`.

Chains run in z, where a well-chosen L makes the posterior nearly N(0, I); draws come back as θ. Settings of the
estimator and of the integrator that are points or distances (an anchor, a radius) are meant in z.

Example:
    >>> import jax.numpy as jnp, ewsg
    >>> scaled = ewsg.coordinates.Diagonal(center=jnp.array([3.0, 0.0]), scale=jnp.array([2.0, 0.1]))
    >>> scaled.place(jnp.array([1.0, 1.0])).tolist()
    [5.0, 0.10000000149011612]
"""

from .target.coordinates import (
    AbstractCoordinates as AbstractCoordinates,
    Dense as Dense,
    Diagonal as Diagonal,
    LowRank as LowRank,
)

__all__ = ["AbstractCoordinates", "Dense", "Diagonal", "LowRank"]
