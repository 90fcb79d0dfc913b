"""The drag scale · Ĉ r of a momentum r, for a covariance Ĉ that is known as moments, as a matrix, or by a factor."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._core import pytree
from .._core.types import Position, Scalar

_ROUNDING = 32


class Moments(NamedTuple):
    """m₁ and m₂ of G_i = n∇(−V_i) (Alg. 2), and where they were calibrated; `second` is m₂, its diagonal, or m₂Ω."""

    anchor: Position
    mean: Float[Array, " d"]
    second: Float[Array, "d *k"]
    sketch: Float[Array, "d k"] | None

    def stretched(self, root: Float[Array, " d"] | None) -> "Moments":
        """The moments of √P·G_i, for the diagonal √P; Ω goes with it, as Ω/√P, so that ΩᵀĈΩ stays what it was."""
        if root is None:
            return self
        mean = root * self.mean
        if self.sketch is None:
            return self._replace(mean=mean, second=stretched(self.second, root))
        return self._replace(mean=mean, second=root[:, None] * self.second, sketch=self.sketch / root[:, None])


def stretched(covariance: Float[Array, "d *d"], root: Float[Array, " d"] | None) -> Float[Array, "d *d"]:
    """√P C √P for the diagonal √P, of a matrix C or of its diagonal."""
    if root is None:
        return covariance
    return covariance * (root**2 if covariance.ndim == 1 else root[:, None] * root[None])


def orthonormal(matrix: Float[Array, "d k"]) -> Float[Array, "d k"]:
    return jnp.linalg.qr(pytree.widened(matrix))[0].astype(matrix.dtype)


def sketched(moments: Moments, sketch: Float[Array, "d k"]) -> Float[Array, "d k"]:
    """(m₂ − m₁m₁ᵀ) Ω."""
    return moments.second - moments.mean[:, None] * (moments.mean @ sketch)[None]


def clip(rates: Array, ceiling: Scalar | None) -> Array:
    rates = jnp.maximum(rates, 0.0)
    return rates if ceiling is None else jnp.minimum(rates, ceiling)


def moment_drag(
    moments: Moments, momentum: Float[Array, " d"], scale: Scalar, ceiling: Scalar | None, form: str
) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
    """scale · (m₂ − m₁m₁ᵀ)₊ r, and whether the projection had anything to do beyond rounding."""
    mean = moments.mean
    rounding = float(_ROUNDING * jnp.finfo(mean.dtype).eps)
    if form == "diagonal":
        variance = moments.second - mean**2
        return clip(scale * variance, ceiling) * momentum, jnp.any(variance < -rounding * moments.second)
    if form == "full":
        drag, values = matrix_drag(moments.second - jnp.outer(mean, mean), momentum, scale, ceiling)
        return drag, values[0] < -rounding * (values[-1] + mean @ mean)
    assert moments.sketch is not None
    rows = sketched(moments, moments.sketch)
    small = moments.sketch.T @ rows
    values, vectors = _eigh((small + small.T) / 2)
    floor = rounding * (values[-1] + mean @ mean)
    inverse = jnp.where(values > floor, 1 / jnp.sqrt(jnp.maximum(values, floor)), 0.0)
    factor = rows @ (vectors * inverse[None])
    return factor_drag(factor, momentum, scale, ceiling), values[0] < -floor


def matrix_drag(
    covariance: Float[Array, "d d"], momentum: Float[Array, " d"], scale: Scalar, ceiling: Scalar | None
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """scale · C₊ r by the eigenvectors of C, and the eigenvalues."""
    values, vectors = _eigh(covariance)
    return vectors @ (clip(scale * values, ceiling) * (momentum @ vectors)), values


def factor_drag(
    factor: Float[Array, "d k"], momentum: Float[Array, " d"], scale: Scalar, ceiling: Scalar | None
) -> Float[Array, " d"]:
    """scale · ZZᵀ r for a d × k factor Z."""
    if ceiling is None:
        return scale * (factor @ (momentum @ factor))
    values, vectors = _eigh(factor.T @ factor)
    axes = factor @ vectors
    shrink = jnp.minimum(1.0, ceiling / (scale * jnp.maximum(values, 0.0)))
    return scale * (axes @ (shrink * (momentum @ axes)))


def _eigh(matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Eigenvalues and eigenvectors, computed in float32 at least: no library has them in half precision."""
    values, vectors = jnp.linalg.eigh(pytree.widened(matrix))
    return values.astype(matrix.dtype), vectors.astype(matrix.dtype)
