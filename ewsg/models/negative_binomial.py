"""Negative binomial regression: counts that vary more than Poisson's, with the log link."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln
from jaxtyping import Array, Bool
from numpy.typing import ArrayLike

from .._core.types import Batch, Scalar
from ..target.target import Target
from . import _inputs, priors
from ._predictor_and_scalar import AbstractPredictorAndScalar, Named, Slopes
from ._shapes import Each, Real

_SERIES_FROM = 16.0
"""1/α from which Stirling's series stand for differences of gammaln and digamma, which would cancel."""
_MOST_LOG_DISPERSION = 40.0
_LOG_GAMMA_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240)


class NegativeBinomial(AbstractPredictorAndScalar):
    r"""ℓ = log Γ(y + 1/α) − log Γ(1/α) − log y! + y log(αμ) − (y + 1/α) log(1 + αμ),  μ = e^η, η = β·x, α = e^s.

    The mean is μ, the variance μ + α μ²; α → 0 is Poisson. ∂ℓ/∂η = (y − μ)/(1 + αμ).
    Data: {"features": (n, d), "counts": (n,)}; parameters: {"coefficients": β, "log_dispersion": s = log α}.

    Beyond |s| = 40 nothing changes any more: α is held there.
    """

    scalar: ClassVar[str] = "log_dispersion"

    def of_predictor(self, eta: Each, scalar: Real, data: Batch) -> Each:
        counts, wide, s = _widened(eta, scalar, data)
        ways = _log_rising(counts, s) - gammaln(counts + 1)
        return (ways + counts * wide - (counts + jnp.exp(-s)) * jax.nn.softplus(wide + s)).astype(eta.dtype)

    def slopes(self, eta: Each, scalar: Real, data: Batch) -> Slopes:
        """(y − μ)/(1 + αμ), and −(ψ(y + 1/α) − ψ(1/α) − log(1 + αμ))/α + (y − μ)/(1 + αμ)."""
        counts, wide, s = _widened(eta, scalar, data)
        inverse, log_ratio = jnp.exp(-s), jax.nn.softplus(wide + s)
        by_eta = counts * jax.nn.sigmoid(-(wide + s)) - inverse * jax.nn.sigmoid(wide + s)
        by_scalar = by_eta - inverse * _digamma_rise(counts, s, log_ratio, by_eta)
        by_scalar = jnp.where(jnp.abs(scalar) < _MOST_LOG_DISPERSION, by_scalar, 0)
        return Slopes(by_eta.astype(eta.dtype), by_scalar.astype(eta.dtype))


class _Prior(eqx.Module):
    """log π(β, s) = log π(β) + log N(s; 0, 2.5²), without constants."""

    coefficients: priors.GaussianPrior
    log_dispersion: priors.GaussianPrior

    def __call__(self, params: Named) -> Real:
        return self.coefficients(params["coefficients"]) + self.log_dispersion(params["log_dispersion"])


def negative_binomial(
    features: ArrayLike,
    counts: ArrayLike,
    *,
    prior_scale: Scalar | None = None,
    prior_precision: Scalar | None = None,
) -> Target:
    r"""y_i ~ NegativeBinomial(mean μ_i, variance μ_i + α μ_i²),  μ_i = exp(β·x_i),  β ~ N(0, prior_scale² I).

    The dispersion α is a parameter too: log α ~ N(0, 2.5²), which covers α from 0.007 to 150 with 95 %.
    Chains start at β = 0 and α = 1, unless `init=` says otherwise.

    Args:
        features: x, of shape (n, d).
        counts: y, of shape (n,): 0, 1, 2, ...
        prior_scale: the standard deviation of the coefficients' prior; 2.5 if neither it nor the precision is given.
        prior_precision: 1/prior_scale² instead; 0 is the flat prior.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.negative_binomial([[1.0], [2.0]], [4, 0])
        >>> force = target.full_force({"coefficients": jnp.zeros(1), "log_dispersion": jnp.zeros(())})
        >>> force["coefficients"].tolist()  # Σ ½ (y_i − 1) x_i at the origin
        [0.5]
    """
    rows = _inputs.as_features("negative_binomial", features)
    counts = _inputs.as_counts("negative_binomial", counts, rows)
    prior = _Prior(
        priors.gaussian("negative_binomial", prior_scale, prior_precision),
        priors.gaussian("negative_binomial", None, None),
    )
    start = {"coefficients": _inputs.origin(rows), "log_dispersion": np.zeros((), rows.dtype)}
    return Target(NegativeBinomial(), prior, {"features": rows, "counts": counts}, init=start)


def _widened(eta: Each, log_dispersion: Real, data: Batch) -> tuple[Each, Each, Real]:
    """Counts, η and s in at least float32, since their functions cancel; s is held within ±40."""
    dtype = eta.dtype if jnp.finfo(eta.dtype).bits >= 32 else jnp.float32
    s = jnp.clip(log_dispersion.astype(dtype), -_MOST_LOG_DISPERSION, _MOST_LOG_DISPERSION)
    return data["counts"].astype(dtype), eta.astype(dtype), s


def _log_rising(counts: Each, s: Real) -> Each:
    """log Γ(y + r) − log Γ(r) − y log r, with r = e^{−s}: Σ log(1 + k/r) over k < y."""
    large, small, is_large = _shape(s)
    stirling = (large + counts - 0.5) * jnp.log1p(counts / large) - counts
    for power, factor in enumerate(_LOG_GAMMA_SERIES):
        stirling += factor * ((large + counts) ** -(2 * power + 1) - large ** -(2 * power + 1))
    direct = gammaln(counts + small) - gammaln(small) - counts * jnp.log(small)
    return jnp.where(is_large, stirling, direct)


def _digamma_rise(counts: Each, s: Real, log_ratio: Each, by_eta: Each) -> Each:
    """ψ(y + r) − ψ(r) − log(1 + αμ), with r = 1/α = e^{−s}."""
    large, small, is_large = _shape(s)
    t = jnp.maximum(by_eta / large, -0.5)  # (y − μ)/(r + μ): log(r + y) − log(r + μ) is log1p of it
    difference = jnp.where(by_eta / large > -0.5, jnp.log1p(t), jnp.log1p(counts / large) - log_ratio)
    series = difference + 0.5 * counts / large / (large + counts)
    for power, factor in enumerate(_DIGAMMA_SERIES):
        series += factor * (large ** -(2 * power + 2) - (large + counts) ** -(2 * power + 2))
    direct = digamma(counts + small) - digamma(small) - log_ratio
    return jnp.where(is_large, series, direct)


def _shape(s: Real) -> tuple[Real, Real, Bool[Array, ""]]:
    """r = e^{−s} for the series, and for the functions themselves (a harmless number in the other); is it large?"""
    inverse = jnp.exp(-s)
    is_large = inverse >= _SERIES_FROM
    return jnp.where(is_large, inverse, _SERIES_FROM), jnp.where(is_large, 1.0, inverse), is_large
