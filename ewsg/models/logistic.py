"""Logistic regression."""

from typing import ClassVar

import jax
from numpy.typing import ArrayLike

from .._core.types import Batch, Scalar
from ..target import arrays
from ..target.target import Target
from . import _inputs, priors
from ._linear_predictor import AbstractLinearPredictor
from ._shapes import Each, Rows, Vector


class Logistic(AbstractLinearPredictor):
    r"""ℓ(θ, z) = −softplus(−θ·z),  with the label y in {0, 1} folded into the row: z = (2y − 1) x.

    ∇ℓ = sigmoid(−θ·z) z.   The one data array is z, of shape (n, d); θ has shape (d,).
    """

    log_concave: ClassVar[bool] = True

    def features(self, data: Batch) -> Rows | Vector:
        return data

    def of_predictor(self, eta: Each, data: Batch) -> Each:
        del data
        return jax.nn.log_sigmoid(eta)

    def slope(self, eta: Each, data: Batch) -> Each:
        del data
        return jax.nn.sigmoid(-eta)


def logistic(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""P(y_i = 1) = sigmoid(θ·x_i),  θ ~ N(0, prior_scale² I).

    Chains start at θ = 0, an array of shape (d,), unless `init=` says otherwise.

    Args:
        features: x, of shape (n, d).
        labels: y, of shape (n,): 0 or 1 (or booleans).
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead (the paper's Covertype: 10); 0 is the flat prior, under which
            the posterior is improper if the classes can be separated.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.logistic([[1.0, 0.5], [1.0, -2.0]], [1, 0], prior_precision=10.0)
        >>> target.full_force(jnp.zeros(2)).tolist()  # ½ Σ z_i at the origin
        [0.0, 1.25]
    """
    rows = _inputs.feature_copy("logistic", features)
    labels = _inputs.as_responses("logistic", "labels", labels, len(rows))
    _inputs.raise_if("logistic", "labels", labels, (labels != 0) & (labels != 1), "0 or 1")
    prior = priors.gaussian("logistic", prior_scale, prior_precision)
    rows *= 2 * labels.astype(rows.dtype)[:, None] - 1
    return Target(Logistic(), prior, arrays.to_device(rows), init=_inputs.origin(rows))
