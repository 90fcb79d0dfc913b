"""The same posterior, written around an anchor where the full gradient is known: control variates for estimators."""

from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Batch, Position
from .likelihood import AbstractLikelihood
from .target import Target


class AnchoredLikelihood(AbstractLikelihood):
    """ℓ_i(θ) − ∇ℓ_i(a)·(θ − a): each datum without its first-order part at the anchor a."""

    likelihood: AbstractLikelihood
    anchor: Position

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        alone = jax.tree.map(lambda leaf: leaf[None], datum)
        return self.values(params, alone)[0]

    def values(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        from_anchor = pytree.subtract(params, self.anchor)
        tangent = self.likelihood.directional(self.anchor, batch, from_anchor)
        return self.likelihood.values(params, batch) - tangent

    def gradient(self, params: Position, batch: Batch, weights: Float[Array, " b"]) -> Position:
        here, there = (self.likelihood.gradient(point, batch, weights) for point in (params, self.anchor))
        return pytree.subtract(here, there)

    def directional(self, params: Position, batch: Batch, direction: Position) -> Float[Array, " b"]:
        here, there = (self.likelihood.directional(point, batch, direction) for point in (params, self.anchor))
        return here - there

    def gradients(self, params: Position, batch: Batch) -> Position:
        here, there = (self.likelihood.gradients(point, batch) for point in (params, self.anchor))
        return pytree.subtract(here, there)

    def passes(self, points: int) -> int:
        return self.likelihood.passes(points) + self.likelihood.passes(1)


class AnchoredPrior(eqx.Module):
    """log π(θ) + s·(θ − a), s = Σ_i ∇ℓ_i(a): the prior with the data's first-order part at the anchor a."""

    log_prior: Callable
    anchor: Position
    slope: Position

    def __call__(self, params: Position) -> Float[Array, ""]:
        return self.log_prior(params) + pytree.dot(self.slope, pytree.subtract(params, self.anchor))


def anchored(target: Target, anchor: Position, slope: Position) -> Target:
    r"""The same posterior, whose data have forces with less spread near the anchor a.

    The first-order part of each datum at a is moved to the prior:
    ℓ_i(θ) → ℓ_i(θ) − ∇ℓ_i(a)·(θ − a),   log π(θ) → log π(θ) + Σ_i ∇ℓ_i(a)·(θ − a).

    The density is unchanged, and with G_i = n∇(−V_i) and F = ∇(−V) the force of datum i becomes
    G_i(θ) − G_i(a) + F(a). The result is a `Target`, so every estimator can work on it, as it is; a minibatch is
    gathered once for both gradients.

    Args:
        target: the posterior.
        anchor: a.
        slope: Σ_i ∇ℓ_i(a), from `slope_at`.
    """
    likelihood = AnchoredLikelihood(target.likelihood, anchor)
    prior = AnchoredPrior(target.log_prior, anchor, slope)
    return eqx.tree_at(lambda t: (t.likelihood, t.log_prior), target, (likelihood, prior))


def slope_at(target: Target, anchor: Position) -> Position:
    """Σ_i ∇ℓ_i(a) over all n data: the full force without the prior's part."""
    return pytree.cast_like(pytree.subtract(target.full_force(anchor), target.prior_force(anchor)), anchor)
