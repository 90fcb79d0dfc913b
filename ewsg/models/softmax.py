"""Softmax (multinomial logistic) regression."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from .._component import check_count
from .._types import Batch, Scalar
from ..errors import InputError
from ..likelihood import AbstractLikelihood
from ..target import Target
from . import _inputs, priors


class Softmax(AbstractLikelihood):
    r"""ℓ(Θ, (x, y)) = η_y − logsumexp(η),  η = xᵀΘ, for a label y in 0..K−1.

    ∇ℓ = x (e_y − softmax(η))ᵀ.   Data: {"features": (n, d), "labels": (n,)}; Θ has shape (d, K).

    Args:
        num_classes: K.
    """

    num_classes: int = eqx.field(static=True)

    def __check_init__(self):
        check_count("Softmax", "num_classes", self.num_classes, 2)

    def __call__(self, params: Float[Array, "d K"], datum: Batch) -> Float[Array, ""]:
        return self.values(params, {name: leaf[None] for name, leaf in datum.items()})[0]

    def values(self, params: Float[Array, "d K"], batch: Batch) -> Float[Array, " b"]:
        rows, chosen = self._cast(batch, params)
        return jnp.sum(chosen * jax.nn.log_softmax(rows @ params), axis=1)

    def gradient(self, params: Float[Array, "d K"], batch: Batch, weights: Float[Array, " b"]) -> Float[Array, "d K"]:
        rows, slopes = self._slopes(params, batch)
        return rows.T @ (weights[:, None] * slopes)

    def directional(
        self, params: Float[Array, "d K"], batch: Batch, direction: Float[Array, "d K"]
    ) -> Float[Array, " b"]:
        rows, slopes = self._slopes(params, batch)
        return jnp.sum(slopes * (rows @ direction), axis=1)

    def gradients(self, params: Float[Array, "d K"], batch: Batch) -> Float[Array, "b d K"]:
        rows, slopes = self._slopes(params, batch)
        return rows[:, :, None] * slopes[:, None, :]

    def _slopes(self, params: Float[Array, "d K"], batch: Batch) -> tuple[Float[Array, "b d"], Float[Array, "b K"]]:
        """The rows x, and ∂ℓ/∂η = e_y − softmax(η)."""
        rows, chosen = self._cast(batch, params)
        return rows, chosen - jax.nn.softmax(rows @ params)

    def _cast(self, batch: Batch, params: Float[Array, "d K"]) -> tuple[Float[Array, "b d"], Float[Array, "b K"]]:
        """The rows x, and the labels as unit vectors e_y."""
        if params.ndim != 2 or params.shape[1] != self.num_classes:
            raise InputError(f"softmax: parameters must have shape (d, {self.num_classes}), not {params.shape}")
        chosen = jax.nn.one_hot(batch["labels"], self.num_classes, dtype=params.dtype)
        return batch["features"].astype(params.dtype), chosen


def softmax(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    num_classes: int | None = None,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""P(y_i = k) = softmax(x_iᵀΘ)_k,  entries of Θ ~ N(0, prior_scale²).

    Start at an array of shape (d, K), e.g. `init=jnp.zeros((d, K))`. One vector added to all columns of Θ changes no
    probability, so only the prior makes the posterior proper: it cannot be flat.

    Args:
        features: x, of shape (n, d).
        labels: y, of shape (n,): 0, 1, ..., K − 1.
        num_classes: K; the largest label plus one if None.
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² > 0 instead.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.softmax([[1.0], [2.0]], [0, 1])
        >>> target.full_force(jnp.zeros((1, 2))).tolist()
        [[-0.5, 0.5]]
    """
    rows = _inputs.as_features("softmax", features)
    labels = _inputs.as_responses("softmax", "labels", labels, len(rows))
    is_bad = ~((labels >= 0) & (labels < 2**31 - 1) & (labels == np.floor(labels)))
    _inputs.refuse("softmax", "labels", labels, is_bad, "whole numbers of at least 0")
    num_classes = int(labels.max()) + 1 if num_classes is None else num_classes
    check_count("softmax", "num_classes", num_classes, 2)
    _inputs.refuse("softmax", "labels", labels, labels >= num_classes, f"below num_classes = {num_classes}")
    prior = priors.gaussian("softmax", prior_scale, prior_precision, allow_flat=False)
    return Target(Softmax(int(num_classes)), prior, {"features": rows, "labels": labels.astype(np.int32)})
