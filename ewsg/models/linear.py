"""Linear regression with normal errors, of known or unknown scale."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from .._types import Batch, Scalar
from ..likelihood import AbstractLikelihood
from ..target import Target
from . import _inputs, priors

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


class Linear(AbstractLikelihood):
    r"""ℓ(θ, (x, y)) = −½ u² − log σ − ½ log 2π,  u = (y − θ·x)/σ, with σ known.

    ∇ℓ = (u/σ) x.   Data: {"features": (n, d), "responses": (n,)}; θ has shape (d,).

    Args:
        noise_scale: σ > 0, a leaf.
    """

    noise_scale: Scalar

    def __check_init__(self):
        priors.check_number("Linear", "noise_scale", self.noise_scale)

    def __call__(self, params: Float[Array, " d"], datum: Batch) -> Float[Array, ""]:
        return self.values(params, {name: leaf[None] for name, leaf in datum.items()})[0]

    def values(self, params: Float[Array, " d"], batch: Batch) -> Float[Array, " b"]:
        scale = self._scale(params)
        return -0.5 * (_residuals(params, batch) / scale) ** 2 - jnp.log(scale) - _HALF_LOG_2PI

    def gradient(self, params: Float[Array, " d"], batch: Batch, weights: Float[Array, " b"]) -> Float[Array, " d"]:
        return (weights * self._slopes(params, batch)) @ _rows(params, batch)

    def directional(
        self, params: Float[Array, " d"], batch: Batch, direction: Float[Array, " d"]
    ) -> Float[Array, " b"]:
        return self._slopes(params, batch) * (_rows(params, batch) @ direction)

    def gradients(self, params: Float[Array, " d"], batch: Batch) -> Float[Array, "b d"]:
        return self._slopes(params, batch)[:, None] * _rows(params, batch)

    def _slopes(self, params: Float[Array, " d"], batch: Batch) -> Float[Array, " b"]:
        """u/σ."""
        return _residuals(params, batch) / self._scale(params) ** 2

    def _scale(self, params: Float[Array, " d"]) -> Float[Array, ""]:
        return jnp.asarray(self.noise_scale, params.dtype)


class LinearUnknownScale(AbstractLikelihood):
    r"""ℓ((β, s), (x, y)) = −½ u² − s − ½ log 2π,  u = (y − β·x) e^{−s}, where s = log σ is unknown.

    ∇_β ℓ = u e^{−s} x,   ∂ℓ/∂s = u² − 1.   Data: {"features": (n, d), "responses": (n,)};
    parameters {"coefficients": β of shape (d,), "log_scale": s of shape ()}.
    """

    def __call__(self, params: dict[str, Array], datum: Batch) -> Float[Array, ""]:
        return self.values(params, {name: leaf[None] for name, leaf in datum.items()})[0]

    def values(self, params: dict[str, Array], batch: Batch) -> Float[Array, " b"]:
        scaled, _ = _scaled_residuals(params, batch)
        return -0.5 * scaled**2 - params["log_scale"] - _HALF_LOG_2PI

    def gradient(self, params: dict[str, Array], batch: Batch, weights: Float[Array, " b"]) -> dict[str, Array]:
        scaled, inverse = _scaled_residuals(params, batch)
        coefficients = (weights * scaled * inverse) @ _rows(params["coefficients"], batch)
        return {"coefficients": coefficients, "log_scale": jnp.dot(weights, scaled**2 - 1)}

    def directional(self, params: dict[str, Array], batch: Batch, direction: dict[str, Array]) -> Float[Array, " b"]:
        scaled, inverse = _scaled_residuals(params, batch)
        along = _rows(params["coefficients"], batch) @ direction["coefficients"]
        return scaled * inverse * along + (scaled**2 - 1) * direction["log_scale"]

    def gradients(self, params: dict[str, Array], batch: Batch) -> dict[str, Array]:
        scaled, inverse = _scaled_residuals(params, batch)
        coefficients = (scaled * inverse)[:, None] * _rows(params["coefficients"], batch)
        return {"coefficients": coefficients, "log_scale": scaled**2 - 1}


class _CoefficientPrior(eqx.Module):
    """log π(β, s) = log π(β): flat in s = log σ."""

    prior: priors.GaussianPrior

    def __call__(self, params: dict[str, Array]) -> Float[Array, ""]:
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
    `init={"coefficients": jnp.zeros(d), "log_scale": jnp.zeros(())}`. Standardise the responses or choose the prior:
    the default scale is for responses of order one.

    Args:
        features: x, of shape (n, d).
        responses: y, of shape (n,).
        noise_scale: σ, the standard deviation of the errors; None if it is unknown, then its logarithm is a parameter.
        prior_scale: the prior's standard deviation; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead; 0 is the flat prior.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.linear([[1.0], [2.0]], [3.0, 1.0])
        >>> force = target.full_force({"coefficients": jnp.zeros(1), "log_scale": jnp.zeros(())})
        >>> force["coefficients"].tolist(), force["log_scale"].item()  # Σ y_i x_i and Σ (y_i² − 1) at the origin
        ([5.0], 8.0)
    """
    rows = _inputs.as_features("linear", features)
    responses = _inputs.as_responses("linear", "responses", responses, len(rows))
    prior = priors.gaussian("linear", prior_scale, prior_precision)
    data = {"features": rows, "responses": responses.astype(rows.dtype)}
    if noise_scale is None:
        return Target(LinearUnknownScale(), _CoefficientPrior(prior), data)
    priors.check_number("linear", "noise_scale", noise_scale)
    return Target(Linear(noise_scale), prior, data)


def _rows(coefficients: Float[Array, " d"], batch: Batch) -> Float[Array, "b d"]:
    return batch["features"].astype(coefficients.dtype)


def _residuals(coefficients: Float[Array, " d"], batch: Batch) -> Float[Array, " b"]:
    """y − β·x."""
    return batch["responses"].astype(coefficients.dtype) - _rows(coefficients, batch) @ coefficients


def _scaled_residuals(params: dict[str, Array], batch: Batch) -> tuple[Float[Array, " b"], Float[Array, ""]]:
    """u and e^{−s}."""
    inverse = jnp.exp(-params["log_scale"])
    return _residuals(params["coefficients"], batch) * inverse, inverse
