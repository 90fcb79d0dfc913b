"""The same posterior, written around an anchor where the full gradient is known: control variates for estimators."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Batch, HostOrDevice, Position
from .likelihood import AbstractLikelihood
from .target import Target

_ROWS_PER_BLOCK = 16_384
_DIRECTIONS_BYTES = 128 * 2**20


class AnchoredLikelihood(AbstractLikelihood):
    """ℓ_i(θ) − ∇ℓ_i(a)·x, x = θ − a: each datum without its first-order part at the anchor a.

    At order 2 also without its second-order part ½ xᵀ∇²ℓ_i(a)x, computed by Hessian-vector products.
    """

    likelihood: AbstractLikelihood
    anchor: Position
    order: int = eqx.field(static=True, default=1)

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        alone = jax.tree.map(lambda leaf: leaf[None], datum)
        return self.values(params, alone)[0]

    def values(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        from_anchor = pytree.subtract(params, self.anchor)
        here = self.likelihood.values(params, batch)
        if self.order == 1:
            return here - self.likelihood.directional(self.anchor, batch, from_anchor)
        tangent, bend = self._at_anchor(params, lambda p: self.likelihood.directional(p, batch, from_anchor))
        return here - tangent - 0.5 * bend

    def gradient(self, params: Position, batch: Batch, weights: Float[Array, " b"]) -> Position:
        return self._remainder(params, lambda p: self.likelihood.gradient(p, batch, weights))

    def directional(self, params: Position, batch: Batch, direction: Position) -> Float[Array, " b"]:
        return self._remainder(params, lambda p: self.likelihood.directional(p, batch, direction))

    def gradients(self, params: Position, batch: Batch) -> Position:
        if self.order == 1:
            return self.likelihood.gradient_changes(params, self.anchor, batch)
        return self._remainder(params, lambda p: self.likelihood.gradients(p, batch))

    def passes(self, points: int) -> int:
        bends = 0 if self.order == 1 else 2 * self.likelihood.passes(points)
        return self.likelihood.passes(points) + self.likelihood.passes(1) + bends

    def _remainder(self, params: Position, derivative: Callable[[Position], Position]) -> Position:
        """f(θ) − f(a) for a first derivative f; at order 2, f(θ) − f(a) − f'(a)x."""
        if self.order == 1:
            return pytree.subtract(derivative(params), derivative(self.anchor))
        there, bend = self._at_anchor(params, derivative)
        return pytree.subtract(pytree.subtract(derivative(params), there), bend)

    def _at_anchor(self, params: Position, derivative: Callable[[Position], Position]) -> tuple[Position, Position]:
        """f(a) and f'(a)x."""
        return jax.jvp(derivative, (self.anchor,), (pytree.subtract(params, self.anchor),))


class AnchoredPrior(eqx.Module):
    """log π(θ) + s·x + ½ xᵀSx, x = θ − a: the prior plus the data's Taylor terms at the anchor a.

    s = Σ_i ∇ℓ_i(a) is the `slope`; S = Σ_i ∇²ℓ_i(a), a matrix in the order of `ravel_pytree`, is the `curvature` (None
    at order 1).
    """

    log_prior: Callable
    anchor: Position
    slope: Position
    curvature: Float[HostOrDevice, "d d"] | None = None

    def __call__(self, params: Position) -> Float[Array, ""]:
        from_anchor = pytree.subtract(params, self.anchor)
        first = self.log_prior(params) + pytree.dot(self.slope, from_anchor)
        if self.curvature is None:
            return first
        x = pytree.rows(from_anchor, leading=0).astype(self.curvature.dtype)
        return first + (0.5 * jnp.dot(x, self.curvature @ x)).astype(first.dtype)


def anchored(
    target: Target, anchor: Position, slope: Position, curvature: Float[HostOrDevice, "d d"] | None = None
) -> Target:
    r"""The same posterior, in which the forces of single data vary less near the anchor a.

    The first-order part of each datum at a is moved to the prior, with x = θ − a:
    ℓ_i(θ) → ℓ_i(θ) − ∇ℓ_i(a)·x,   log π(θ) → log π(θ) + Σ_i ∇ℓ_i(a)·x;
    given the `curvature`, so is the second-order part ½ xᵀ∇²ℓ_i(a)x.

    The density is unchanged. With G_i = n∇(−V_i) and F = ∇(−V), the force of datum i becomes G_i(θ) − G_i(a) + F(a);
    at second order, with H_i and H the derivatives of G_i and F, G_i(θ) − G_i(a) − H_i(a)x + F(a) + H(a)x. The result
    is a `Target`, so every estimator works on it unchanged; a minibatch is gathered once for all gradients.

    Args:
        target: the posterior.
        anchor: a.
        slope: Σ_i ∇ℓ_i(a), from `slope_at`.
        curvature: Σ_i ∇²ℓ_i(a), from `curvature_at`, for second order; None for first order.
    """
    anchor = pytree.as_arrays(anchor)
    likelihood = AnchoredLikelihood(target.likelihood, anchor, 1 if curvature is None else 2)
    prior = AnchoredPrior(target.log_prior, anchor, slope, curvature)
    return eqx.tree_at(lambda t: (t.likelihood, t.log_prior), target, (likelihood, prior))


def slope_at(target: Target, anchor: Position) -> Position:
    """Σ_i ∇ℓ_i(a) over all n data: the full force without the prior's part."""
    return pytree.cast_like(pytree.subtract(target.full_force(anchor), target.prior_force(anchor)), anchor)


def curvature_at(target: Target, anchor: Position) -> Float[Array, "d d"]:
    """Σ_i ∇²ℓ_i(a) over all n data, in the order of `ravel_pytree`: d Hessian-vector products per datum."""
    zero = pytree.widened(pytree.zeros_like(anchor))
    start, unravel = ravel_pytree(anchor)

    def slope(position: Position) -> Position:
        return target.sum_blocks(position, target.block_force, zero)

    def column(unit: Float[Array, " d"]) -> Float[Array, " d"]:
        return pytree.rows(jax.jvp(slope, (anchor,), (unravel(unit),))[1], leading=0)

    at_once = target.block(anchor, start.size, _DIRECTIONS_BYTES // min(_ROWS_PER_BLOCK, target.num_data))
    matrix = jax.lax.map(column, jnp.eye(start.size, dtype=start.dtype), batch_size=at_once)
    return (matrix + matrix.T) / 2
