"""Logistic regression."""

import jax
from jaxtyping import Array, ArrayLike, Float

from .._types import Scalar
from ..likelihood import AbstractLikelihood
from ..target import Target
from . import _inputs, priors


class Logistic(AbstractLikelihood):
    r"""ℓ(θ, z) = −softplus(−θ·z),  with the label y in {0, 1} folded into the row: z = (2y − 1) x.

    ∇ℓ = sigmoid(−θ·z) z.   The one data array is z, of shape (n, d); θ has shape (d,).
    """

    def __call__(self, params: Float[Array, " d"], datum: Float[Array, " d"]) -> Float[Array, ""]:
        return jax.nn.log_sigmoid(datum.astype(params.dtype) @ params)

    def values(self, params: Float[Array, " d"], batch: Float[Array, "b d"]) -> Float[Array, " b"]:
        return jax.nn.log_sigmoid(batch.astype(params.dtype) @ params)

    def gradient(
        self, params: Float[Array, " d"], batch: Float[Array, "b d"], weights: Float[Array, " b"]
    ) -> Float[Array, " d"]:
        rows = batch.astype(params.dtype)
        return (weights * jax.nn.sigmoid(-(rows @ params))) @ rows

    def directional(
        self, params: Float[Array, " d"], batch: Float[Array, "b d"], direction: Float[Array, " d"]
    ) -> Float[Array, " b"]:
        rows = batch.astype(params.dtype)
        return jax.nn.sigmoid(-(rows @ params)) * (rows @ direction)

    def gradients(self, params: Float[Array, " d"], batch: Float[Array, "b d"]) -> Float[Array, "b d"]:
        rows = batch.astype(params.dtype)
        return jax.nn.sigmoid(-(rows @ params))[:, None] * rows


def logistic(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""P(y_i = 1) = sigmoid(θ·x_i),  θ ~ N(0, prior_scale² I).

    Start at an array of shape (d,), e.g. `init=jnp.zeros(d)`.

    Args:
        features: x, of shape (n, d).
        labels: y, of shape (n,): 0 or 1 (or booleans).
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead (the paper's Covertype: 10); 0 is the flat prior, under which the
            posterior is improper if the classes can be separated.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.logistic([[1.0, 0.5], [1.0, -2.0]], [1, 0], prior_precision=10.0)
        >>> target.full_force(jnp.zeros(2)).tolist()  # ½ Σ z_i at the origin
        [0.0, 1.25]
    """
    rows = _inputs.as_features("logistic", features)
    labels = _inputs.as_responses("logistic", "labels", labels, len(rows))
    _inputs.refuse("logistic", "labels", labels, (labels != 0) & (labels != 1), "0 or 1")
    prior = priors.gaussian("logistic", prior_scale, prior_precision)
    signs = 2 * labels.astype(rows.dtype) - 1
    return Target(Logistic(), prior, signs[:, None] * rows)
