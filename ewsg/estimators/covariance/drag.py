"""The drag scale · Ĉ r on a momentum r, for a covariance Ĉ given as a matrix or by a factor."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core import pytree
from ..._core.types import Scalar


class Rates(NamedTuple):
    """The map from eigenvalues of Ĉ to rates of friction: scale · value, at least 0 and at most `ceiling`."""

    scale: Scalar
    ceiling: Scalar | None

    def of(self, values: Float[Array, " d"]) -> Float[Array, " d"]:
        """The rates along eigenvectors with these eigenvalues."""
        rates = jnp.maximum(self.scale * values, 0.0)
        return rates if self.ceiling is None else jnp.minimum(rates, self.ceiling)


def matrix_drag(
    covariance: Float[Array, "d d"], momentum: Float[Array, " d"], rates: Rates
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """scale · C₊ r from the eigenvectors of C, with C₊ its positive part; and the eigenvalues."""
    values, vectors = eigh(covariance)
    return vectors @ (rates.of(values) * (momentum @ vectors)), values


def factor_drag(factor: Float[Array, "d k"], momentum: Float[Array, " d"], rates: Rates) -> Float[Array, " d"]:
    """scale · ZZᵀ r for a d × k factor Z."""
    if rates.ceiling is None:
        return rates.scale * (factor @ (momentum @ factor))
    values, vectors = eigh(factor.T @ factor)
    axes = factor @ vectors
    shrink = jnp.minimum(1.0, rates.ceiling / (rates.scale * jnp.maximum(values, 0.0)))
    return rates.scale * (axes @ (shrink * (momentum @ axes)))


def eigh(matrix: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    """Eigenvalues and eigenvectors, computed in at least float32: no library has them in half precision."""
    values, vectors = jnp.linalg.eigh(pytree.widened(matrix))
    return values.astype(matrix.dtype), vectors.astype(matrix.dtype)


def orthonormal(matrix: Float[Array, "d k"]) -> Float[Array, "d k"]:
    """An orthonormal basis of the span of the columns, computed in at least float32."""
    return jnp.linalg.qr(pytree.widened(matrix))[0].astype(matrix.dtype)


def stretched(covariance: Float[Array, "d *d"], root: Float[Array, " d"] | None) -> Float[Array, "d *d"]:
    """√P C √P for the diagonal √P, of a matrix C or of its diagonal."""
    if root is None:
        return covariance
    return covariance * (root**2 if covariance.ndim == 1 else root[:, None] * root[None])
