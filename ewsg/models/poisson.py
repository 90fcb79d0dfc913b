"""Poisson regression of counts, with the log link."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, ArrayLike, Float

from .._types import Batch, Scalar
from ..likelihood import AbstractLikelihood
from ..target import Target
from . import _inputs, priors


class Poisson(AbstractLikelihood):
    r"""ℓ(θ, (x, y)) = y η − e^η − log y!,  η = θ·x.

    ∇ℓ = (y − e^η) x.   Data: {"features": (n, d), "counts": (n,)}; θ has shape (d,).

    Above η = ½ log(largest number) (44 in float32, 354 in float64: no count comes near e^44) e^η is continued by its
    tangent, so that a chain that overshoots feels a large but finite force instead of infinity times zero.
    """

    def __call__(self, params: Float[Array, " d"], datum: Batch) -> Float[Array, ""]:
        return self.values(params, {name: leaf[None] for name, leaf in datum.items()})[0]

    def values(self, params: Float[Array, " d"], batch: Batch) -> Float[Array, " b"]:
        rows, counts = _cast(batch, params)
        eta = rows @ params
        excess = jnp.maximum(eta - _ceiling(eta), 0)
        return counts * eta - _rate(eta) * (1 + excess) - gammaln(counts + 1)

    def gradient(self, params: Float[Array, " d"], batch: Batch, weights: Float[Array, " b"]) -> Float[Array, " d"]:
        rows, counts = _cast(batch, params)
        return (weights * (counts - _rate(rows @ params))) @ rows

    def directional(
        self, params: Float[Array, " d"], batch: Batch, direction: Float[Array, " d"]
    ) -> Float[Array, " b"]:
        rows, counts = _cast(batch, params)
        return (counts - _rate(rows @ params)) * (rows @ direction)

    def gradients(self, params: Float[Array, " d"], batch: Batch) -> Float[Array, "b d"]:
        rows, counts = _cast(batch, params)
        return (counts - _rate(rows @ params))[:, None] * rows


def poisson(
    features: ArrayLike,
    counts: ArrayLike,
    *,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""y_i ~ Poisson(exp(θ·x_i)),  θ ~ N(0, prior_scale² I).

    Start at an array of shape (d,), e.g. `init=jnp.zeros(d)`.

    Args:
        features: x, of shape (n, d).
        counts: y, of shape (n,): 0, 1, 2, ...
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead; 0 is the flat prior.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.poisson([[1.0], [2.0]], [3, 0])
        >>> target.full_force(jnp.zeros(1)).tolist()  # Σ (y_i − 1) x_i at the origin
        [0.0]
    """
    rows = _inputs.as_features("poisson", features)
    counts = _inputs.as_responses("poisson", "counts", counts, len(rows))
    is_bad = ~((counts >= 0) & (counts < np.inf) & (counts == np.floor(counts)))
    _inputs.refuse("poisson", "counts", counts, is_bad, "whole numbers of at least 0")
    prior = priors.gaussian("poisson", prior_scale, prior_precision)
    return Target(Poisson(), prior, {"features": rows, "counts": counts.astype(rows.dtype)})


def _cast(batch: Batch, params: Float[Array, " d"]) -> tuple[Float[Array, "b d"], Float[Array, " b"]]:
    return batch["features"].astype(params.dtype), batch["counts"].astype(params.dtype)


def _ceiling(eta: Float[Array, " b"]) -> float:
    return 0.5 * float(np.log(jnp.finfo(eta.dtype).max))


def _rate(eta: Float[Array, " b"]) -> Float[Array, " b"]:
    """e^η, constant above the ceiling."""
    return jnp.exp(jnp.minimum(eta, _ceiling(eta)))
