"""Poisson regression of counts, with the log link."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from numpy.typing import ArrayLike

from .._core.types import Batch, Scalar
from ..target.target import Target
from . import _inputs, priors
from ._linear_predictor import AbstractLinearPredictor
from ._shapes import Each, Rows, Vector


class Poisson(AbstractLinearPredictor):
    r"""ℓ(θ, (x, y)) = y η − e^η − log y!,  η = θ·x.

    ∇ℓ = (y − e^η) x.   Data: {"features": (n, d), "counts": (n,)}; θ has shape (d,).

    Above η = ½ log(largest number), 44 in float32 and 354 in float64 (no count comes near e^44), e^η is
    continued by its tangent: a chain that overshoots feels a large finite force, not infinity times zero.
    """

    log_concave: ClassVar[bool] = True

    def features(self, data: Batch) -> Rows | Vector:
        return data["features"]

    def of_predictor(self, eta: Each, data: Batch) -> Each:
        counts = data["counts"].astype(eta.dtype)
        beyond = jnp.maximum(eta - _ceiling(eta), 0)
        return counts * eta - _rate(eta) * (1 + beyond) - gammaln(counts + 1)

    def slope(self, eta: Each, data: Batch) -> Each:
        """y − e^η."""
        return data["counts"].astype(eta.dtype) - _rate(eta)


def poisson(
    features: ArrayLike,
    counts: ArrayLike,
    *,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""y_i ~ Poisson(exp(θ·x_i)),  θ ~ N(0, prior_scale² I).

    Chains start at θ = 0, an array of shape (d,), unless `init=` says otherwise.

    Args:
        features: x, of shape (n, d).
        counts: y, of shape (n,): 0, 1, 2, ...
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead; 0 is the flat prior.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.poisson([[1.0], [2.0]], [4, 0])
        >>> target.full_force(jnp.zeros(1)).tolist()  # Σ (y_i − 1) x_i at the origin
        [1.0]
    """
    rows = _inputs.as_features("poisson", features)
    data = {"features": rows, "counts": _inputs.as_counts("poisson", counts, rows)}
    prior = priors.gaussian("poisson", prior_scale, prior_precision)
    return Target(Poisson(), prior, data, init=_inputs.origin(rows))


def _rate(eta: Each) -> Each:
    """e^η, constant above the ceiling."""
    return jnp.exp(jnp.minimum(eta, _ceiling(eta)))


def _ceiling(eta: Each) -> float:
    return 0.5 * float(np.log(jnp.finfo(eta.dtype).max))
