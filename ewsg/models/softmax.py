"""Softmax (multinomial logistic) regression."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from .._core.component import check_count
from .._core.types import Batch, Scalar
from ..errors import InputError
from ..target.likelihood import AbstractLikelihood
from ..target.target import Target
from . import _inputs, priors
from ._shapes import Column, Each, Matrix, Real, Rows

_MOST_CLASSES = np.iinfo(np.int32).max


class Softmax(AbstractLikelihood):
    r"""ℓ(Θ, (x, y)) = η_y − logsumexp(η),  η = xᵀΘ, for a label y in 0..K−1.

    ∇ℓ = x (e_y − softmax(η))ᵀ.   Data: {"features": (n, d), "labels": (n,)}; Θ has shape (d, K).

    Args:
        num_classes: K.
    """

    log_concave: ClassVar[bool] = True
    num_classes: int = eqx.field(static=True)

    def __check_init__(self):
        check_count("Softmax", "num_classes", self.num_classes, 2)

    def __call__(self, params: Matrix, datum: Batch) -> Real:
        return self._log_density(params, datum)

    def values(self, params: Matrix, batch: Batch) -> Column:
        return self._log_density(params, batch)

    def gradient(self, params: Matrix, batch: Batch, weights: Column) -> Matrix:
        rows, slopes = self._slopes(params, batch)
        dtype = weights.dtype
        return (rows.T.astype(dtype) @ (weights[:, None] * slopes.astype(dtype))).astype(rows.dtype)

    def directional(self, params: Matrix, batch: Batch, direction: Matrix) -> Column:
        rows, slopes = self._slopes(params, batch)
        return jnp.sum(slopes * (rows @ direction), axis=-1)

    def gradients(self, params: Matrix, batch: Batch) -> Float[Array, "b d K"]:
        rows, slopes = self._slopes(params, batch)
        return rows[:, :, None] * slopes[:, None, :]

    def _log_density(self, params: Matrix, data: Batch) -> Each:
        rows, chosen = self._rows_and_labels(params, data)
        return jnp.sum(chosen * jax.nn.log_softmax(rows @ params), axis=-1)

    def _slopes(self, params: Matrix, batch: Batch) -> tuple[Rows, Float[Array, "b K"]]:
        """The rows x, and e_y − softmax(η)."""
        rows, chosen = self._rows_and_labels(params, batch)
        return rows, chosen - jax.nn.softmax(rows @ params)

    def _rows_and_labels(self, params: Matrix, data: Batch) -> tuple[Array, Array]:
        """The rows x, and the labels as unit vectors e_y."""
        if params.ndim != 2 or params.shape[1] != self.num_classes:
            raise InputError(f"softmax: parameters need shape (d, {self.num_classes}), not {params.shape}")
        chosen = jax.nn.one_hot(data["labels"], self.num_classes, dtype=params.dtype)
        return data["features"].astype(params.dtype), chosen


def softmax(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    num_classes: int | None = None,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""P(y_i = k) = e^{η_k} / Σ_j e^{η_j},  η = x_iᵀΘ,  entries of Θ ~ N(0, prior_scale²).

    Start at an array of shape (d, K), e.g. `init=jnp.zeros((d, K))`. One vector added to all columns of Θ
    changes no probability: only the prior makes the posterior proper, and with `prior_precision=0` it is not.

    Args:
        features: x, of shape (n, d).
        labels: y, of shape (n,): 0, 1, ..., K − 1.
        num_classes: K; the largest label plus one if None.
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.softmax([[1.0], [2.0]], [0, 1])
        >>> target.full_force(jnp.zeros((1, 2))).tolist()
        [[-0.5, 0.5]]
    """
    rows = _inputs.as_features("softmax", features)
    labels = _inputs.as_responses("softmax", "labels", labels, len(rows))
    is_label = (labels >= 0) & (labels < np.inf) & (labels == np.floor(labels))
    _inputs.raise_if("softmax", "labels", labels, ~is_label, "whole numbers of at least 0")
    _inputs.raise_if("softmax", "labels", labels, labels >= _MOST_CLASSES, "below 2^31 − 1")
    num_classes = int(labels.max()) + 1 if num_classes is None else num_classes
    check_count("softmax", "num_classes", num_classes, 2)
    _inputs.raise_if("softmax", "labels", labels, labels >= num_classes, f"below num_classes = {num_classes}")
    prior = priors.gaussian("softmax", prior_scale, prior_precision)
    data = {"features": rows, "labels": _inputs.cast("softmax", "labels", labels, np.int32)}
    return Target(Softmax(int(num_classes)), prior, data, init=_inputs.origin(rows, int(num_classes)))
