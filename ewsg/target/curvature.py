"""The curvature of a potential: its Hessian, products with it, and the spectrum of a precision matrix."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Position
from .target import Target

_CURVATURE_BYTES = 256 * 2**20
_SMALLEST_EIGENVALUE_RATIO = 1e-6
_INVARIANT_SUBSPACE_RATIO = 1e-6


@jax.jit
def curvature(target: Target, position: Position) -> Float[Array, "d d"]:
    """∇²V(θ), the Hessian of the potential over all data, in the order of `jax.flatten_util.ravel_pytree`.

    Its inverse at the mode is the covariance of Laplace's approximation. Costs d Hessian-vector products over all n
    data; as many of the d columns are computed at once as fit into 256 MiB.
    """
    flat, unravel = ravel_pytree(position)
    rows = target.block(position, target.num_data) * target.datum_bytes(position)

    def force(theta: Float[Array, " d"]) -> Float[Array, " d"]:
        return ravel_pytree(target.full_force(unravel(theta)))[0]

    def column(direction: Float[Array, " d"]) -> Float[Array, " d"]:
        return jax.jvp(force, (flat,), (direction,))[1]

    together = max(1, min(flat.size, _CURVATURE_BYTES // rows))
    hessian = -jax.lax.map(column, jnp.eye(flat.size, dtype=flat.dtype), batch_size=together)
    return (hessian + hessian.T) / 2


@jax.jit
def hessian_product(target: Target, position: Position, direction: Position) -> Position:
    """∇²V(θ) v over all data. Costs 2 n datum gradients."""
    return pytree.scaled(-1, jax.jvp(target.full_force, (position,), (direction,))[1])


def lanczos(
    product: Callable[[Float[np.ndarray, " d"]], Float[np.ndarray, " d"]], start: Float[np.ndarray, " d"], steps: int
) -> Float[np.ndarray, " k"]:
    """Ritz values of a symmetric matrix that is known by its products with vectors; the extreme ones converge first.

    References:
        G. Golub and C. Van Loan, Matrix Computations, 4th edition (2013), section 10.1.
    """
    if steps == 0:
        return np.zeros(0)
    basis, images = [start / np.linalg.norm(start)], []
    for _ in range(steps):
        images.append(product(basis[-1]))
        rest = images[-1]
        for _twice in range(2):
            rest = rest - np.stack(basis).T @ (np.stack(basis) @ rest)
        size = float(np.linalg.norm(rest))
        if not size > _INVARIANT_SUBSPACE_RATIO * np.linalg.norm(images[-1]):
            break
        basis.append(rest / size)
    within = np.stack(basis[: len(images)]) @ np.stack(images).T
    return np.linalg.eigvalsh((within + within.T) / 2) if np.all(np.isfinite(within)) else np.zeros(0)


class Spectrum:
    """D⁻¹ H D⁻¹ = U diag(λ) Uᵀ with D² = |diag H|: a precision matrix H in units in which its diagonal is ±1.

    In these units the spectrum does not depend on the units of the parameters. `solve`, `length` and `root` use |λ|,
    raised to at least 1e-6 of the largest |λ| and, if the matrix `least` is given, to its smallest eigenvalue in the
    same units. Directions with |λ| at most 1e-6 of the largest are called flat.
    """

    def __init__(self, matrix: Float[np.ndarray, "d d"], least: Float[np.ndarray, "d d"] | None = None):
        diagonal = np.sqrt(np.abs(np.diag(matrix)))
        self.scale = np.where(diagonal > 0, diagonal, 1.0)
        self.eigenvalues, self.vectors = np.linalg.eigh(matrix / self.scale / self.scale[:, None])
        largest = float(np.max(np.abs(self.eigenvalues))) or 1.0
        floor = _SMALLEST_EIGENVALUE_RATIO * largest
        self.num_negative = int(np.sum(self.eigenvalues < -floor))
        self._flat = np.abs(self.eigenvalues) <= floor
        self.num_flat = int(np.sum(self._flat))
        if least is not None:
            floor = max(floor, float(np.linalg.eigvalsh(least / self.scale / self.scale[:, None])[0]))
        self._bounded = np.maximum(np.abs(self.eigenvalues), floor)

    def solve(self, gradient: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """H⁻¹ g."""
        return self.vectors @ ((gradient / self.scale) @ self.vectors / self._bounded) / self.scale

    def length(self, gradient: Float[np.ndarray, " d"]) -> float:
        """√(gᵀ H⁻¹ g)."""
        return float(np.linalg.norm((gradient / self.scale) @ self.vectors / np.sqrt(self._bounded)))

    def distance(self, gradient: Float[np.ndarray, " d"]) -> float:
        """√(gᵀ H⁻¹ g / d), d the directions that are not flat: the rms step to the mode in standard deviations."""
        return self.length(gradient) / float(np.sqrt(max(1, gradient.size - self.num_flat)))

    @property
    def root(self) -> Float[np.ndarray, "d k"]:
        """R with R Rᵀ = H⁻¹ in the k directions that are not flat."""
        return (self.vectors / self.scale[:, None] / np.sqrt(self._bounded))[:, ~self._flat]
