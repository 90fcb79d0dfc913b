"""Linear regression with normal errors, of known or unknown scale."""

import math
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._core.component import check_positive
from .._core.types import Batch, Scalar
from ..target.target import Target
from . import _inputs, priors
from ._linear_predictor import AbstractLinearPredictor
from ._predictor_and_scalar import AbstractPredictorAndScalar, Named, Slopes
from ._shapes import Each, Real, Rows, Vector

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Linear(AbstractLinearPredictor):
    r"""ℓ(θ, (x, y)) = −½ u² − log σ − ½ log 2π,  u = (y − θ·x)/σ, with σ known.

    ∇ℓ = (u/σ) x.   Data: {"features": (n, d), "responses": (n,)}; θ has shape (d,).

    Args:
        noise_scale: σ > 0, a leaf.
    """

    log_concave: ClassVar[bool] = True
    noise_scale: Scalar

    def __check_init__(self):
        check_positive("Linear", "noise_scale", self.noise_scale)

    def features(self, data: Batch) -> Rows | Vector:
        return data["features"]

    def of_predictor(self, eta: Each, data: Batch) -> Each:
        log_scale = jnp.log(jnp.asarray(self.noise_scale, eta.dtype))
        return _log_density(_residuals(eta, data), log_scale)

    def slope(self, eta: Each, data: Batch) -> Each:
        """u/σ."""
        return _residuals(eta, data) / jnp.asarray(self.noise_scale, eta.dtype) ** 2


class LinearUnknownScale(AbstractPredictorAndScalar):
    r"""ℓ((β, s), (x, y)) = −½ u² − s − ½ log 2π,  u = (y − β·x) e^{−s}, where s = log σ is unknown.

    ∇_β ℓ = u e^{−s} x,   ∂ℓ/∂s = u² − 1.   Data: {"features": (n, d), "responses": (n,)};
    parameters: {"coefficients": β of shape (d,), "log_scale": s of shape ()}.
    """

    scalar: ClassVar[str] = "log_scale"

    def of_predictor(self, eta: Each, scalar: Real, data: Batch) -> Each:
        return _log_density(_residuals(eta, data), scalar)

    def slopes(self, eta: Each, scalar: Real, data: Batch) -> Slopes:
        """u e^{−s} and u² − 1."""
        inverse = jnp.exp(-scalar)
        u = _residuals(eta, data) * inverse
        return Slopes(u * inverse, u**2 - 1)


class _CoefficientPrior(eqx.Module):
    """log π(β, s) = log π(β): flat in s = log σ."""

    prior: priors.GaussianPrior

    def __call__(self, params: Named) -> Real:
        return self.prior(params["coefficients"])


def linear(
    features: ArrayLike,
    responses: ArrayLike,
    *,
    noise_scale: Scalar | None = None,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""y_i ~ N(β·x_i, σ²),  β ~ N(0, prior_scale² I),  and p(log σ) flat if σ is unknown.

    Start at an array of shape (d,), e.g. `init=jnp.zeros(d)`, if `noise_scale` is given, else at
    `init={"coefficients": jnp.zeros(d), "log_scale": jnp.zeros(())}`. Standardise the responses, or choose a
    prior to suit them: its default scale is for responses of order one.

    Args:
        features: x, of shape (n, d).
        responses: y, of shape (n,).
        noise_scale: σ, the errors' standard deviation; None if unknown: log σ is then a parameter.
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead; 0 is the flat prior.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.linear([[1.0], [2.0]], [3.0, 1.0])
        >>> force = target.full_force({"coefficients": jnp.zeros(1), "log_scale": jnp.zeros(())})
        >>> force["coefficients"].tolist(), force["log_scale"].item()  # Σ y_i x_i and Σ (y_i² − 1)
        ([5.0], 8.0)
    """
    rows = _inputs.as_features("linear", features)
    responses = _inputs.as_responses("linear", "responses", responses, len(rows))
    prior = priors.gaussian("linear", prior_scale, prior_precision)
    data = {"features": rows, "responses": _inputs.cast("linear", "responses", responses, rows.dtype)}
    if noise_scale is None:
        start = {"coefficients": _inputs.origin(rows), "log_scale": np.zeros((), rows.dtype)}
        return Target(LinearUnknownScale(), _CoefficientPrior(prior), data, init=start)
    check_positive("linear", "noise_scale", noise_scale)
    return Target(Linear(noise_scale), prior, data, init=_inputs.origin(rows))


def _residuals(eta: Each, data: Batch) -> Each:
    """y − η."""
    return data["responses"].astype(eta.dtype) - eta


def _log_density(residuals: Each, log_scale: Real) -> Each:
    return -0.5 * (residuals * jnp.exp(-log_scale)) ** 2 - log_scale - _HALF_LOG_2PI
