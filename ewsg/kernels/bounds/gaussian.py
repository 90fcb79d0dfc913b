"""A Taylor expansion as a lower bound of the normal likelihood with unknown mean and scale."""

import dataclasses
import math
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.component import check_choice
from ..._core.types import Position, Scalar
from ...errors import InputError
from ...interface import Cost
from ...target.likelihood import AbstractLikelihood
from ...target.target import Target
from .base import AbstractBound, Gap, Prepared, filled, only_array

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_SERIES_TERMS = 17


class Offset(NamedTuple):
    """A position of the normal model relative to the mode: α, b, and E₀, E₁, E₂ of `GaussianTaylorBound`."""

    alpha: Float[Array, ""]
    b: Float[Array, ""]
    remainders: tuple[Array, Array, Array]


class GaussianTaylorBound(AbstractBound):
    r"""A second-order Taylor expansion minus a bound of its remainder, for x_i ~ N(μ, σ²) with (μ, log σ) unknown.

    With s = log σ, u = (x − μ̂)e^{−ŝ}, α = (μ − μ̂)e^{−ŝ}, b = s − ŝ, the log density log N(x; μ, σ²) is

    ℓ = ℓ(θ̂) + uα + (u² − 1)b − ½α² − 2uαb − u²b² + R,    R = −½u²E₂ + uαE₁ − ½α²E₀,

    where E₀ = e^y − 1, E₁ = E₀ − y, E₂ = E₁ − y²/2 at y = −2b. The bound replaces R by −ρ ≤ R:

    - remainder="datum":    ρ = ½u²E₂⁺ + |uα|E₁ + ½α²E₀⁺, each datum's own remainder with the worst signs (E₁ ≥ 0);
    - remainder="largest":  ρ = (e^{2b⁻}/6)(2 + 4(w + |α|)²)(|α| + |b|)³, w = max_i |u_i|, one cubic for all data, as in
      Bardenet et al.: between θ̂ and θ no third derivative in (α, b) exceeds e^{2b⁻} max(2, 4v, 4v²) with v = |u| +
      |α|, and max(2, 4v, 4v²) ≤ 2 + 4v².

    x⁺ and x⁻ are positive and negative parts. Both bounds are valid everywhere; "datum" is much tighter. The sum needs
    n, Σu, Σ|u| and Σu²; computing them counts as n evaluations, and so does finding the mode.

    The likelihood must be the normalised normal density, the data one array x of shape (n,), and the parameters
    (μ, log σ) in this order, as an array of shape (2,) or a tuple, or a dict with the keys "mu" and "log_sigma".

    Args:
        remainder: "datum" or "largest".
        mode: θ̂ = (μ̂, log σ̂); None is the maximum-likelihood estimate, in closed form: the mode under a flat prior.
        largest: w, filled in by `prepare`.

    References:
        R. Bardenet, A. Doucet and C. Holmes, On Markov chain Monte Carlo methods for tall data, JMLR 18 (2017).
    """

    remainder: str = eqx.field(static=True, default="datum")
    mode: tuple[Scalar, Scalar] | None = None
    largest: Scalar | None = None

    def __check_init__(self):
        check_choice("GaussianTaylorBound", "remainder", self.remainder, ("datum", "largest"))
        if self.mode is not None and len(self.mode) != 2:
            raise InputError(f"GaussianTaylorBound: mode must be (mu, log_sigma), not {self.mode!r}")

    def prepare(self, target: Target) -> Prepared:
        x = np.asarray(only_array("GaussianTaylorBound", target, 1, "one number each, (n,)"), np.float64)
        mode, passes = self.mode, 1
        if mode is None:
            if np.std(x) == 0:
                raise InputError("GaussianTaylorBound: all data are equal, so sigma has no estimate: give mode=")
            mode, passes = (np.mean(x), np.log(np.std(x))), 2
        mode = (jnp.asarray(float(mode[0])), jnp.asarray(float(mode[1])))
        u = (x - float(mode[0])) * np.exp(-float(mode[1]))
        sums = tuple(jnp.asarray(float(np.sum(term))) for term in (np.ones_like(u), u, np.abs(u), u**2))
        bound = dataclasses.replace(self, mode=mode, largest=jnp.asarray(float(np.max(np.abs(u)))))
        return Prepared(bound, sums, Cost(passes * target.num_data))

    def log_bound(self, params: Position, datum: Float[Array, ""]) -> Float[Array, ""]:
        offset = self._offset(params)
        u, log_scale = self._standardized(offset, datum)
        at_mode = -0.5 * u**2 - log_scale - _HALF_LOG_2PI
        return at_mode + self._lowered(offset, jnp.ones_like(u), u, jnp.abs(u), u**2)

    def log_bound_sum(self, params: Position, statistics: tuple[Array, ...]) -> Float[Array, ""]:
        offset = self._offset(params)
        return self._lowered(offset, *(leaf.astype(offset.b.dtype) for leaf in statistics))

    def gap(self, params: Position, batch: Float[Array, " b"], likelihood: AbstractLikelihood) -> Gap:
        """R + ρ; with remainder="datum" a sum of non-negative terms, in which no digits are lost."""
        del likelihood
        offset = self._offset(params)
        u, _ = self._standardized(offset, batch)
        eps = float(jnp.finfo(u.dtype).eps)
        e0, e1, e2 = offset.remainders
        cross = u * offset.alpha * e1
        if self.remainder == "datum":
            own = _negative(e2) * u**2 / 2 + (cross + jnp.abs(cross)) + _negative(e0) * offset.alpha**2 / 2
            return Gap(own, eps**2)
        rest = cross - e2 * u**2 / 2 - e0 * offset.alpha**2 / 2
        return Gap(rest + self._cubic(offset), eps * (jnp.abs(rest) + self._cubic(offset)))

    def _offset(self, params: Position) -> Offset:
        mu, log_sigma = (params["mu"], params["log_sigma"]) if isinstance(params, dict) else (params[0], params[1])
        mode_mu, mode_scale = (jnp.asarray(leaf, mu.dtype) for leaf in filled("GaussianTaylorBound", self.mode))
        b = log_sigma - mode_scale
        return Offset((mu - mode_mu) * jnp.exp(-mode_scale), b, _exponential_remainders(-2 * b))

    def _standardized(self, offset: Offset, x: Array) -> tuple[Array, Array]:
        """The u of each datum, and log σ̂."""
        mu, log_scale = (jnp.asarray(leaf, offset.b.dtype) for leaf in filled("GaussianTaylorBound", self.mode))
        return (x.astype(mu.dtype) - mu) * jnp.exp(-log_scale), log_scale

    def _lowered(self, offset: Offset, count: Array, first: Array, absolute: Array, second: Array) -> Array:
        """Σ (log B − ℓ(θ̂)) over data with the given sums of 1, u, |u| and u²."""
        alpha, b, (e0, e1, e2) = offset
        taylor = alpha * first * (1 - 2 * b) + (second - count) * b - count * alpha**2 / 2 - second * b**2
        if self.remainder == "largest":
            return taylor - count * self._cubic(offset)
        cross = jnp.abs(alpha) * e1
        return taylor - (_positive(e2) / 2 * second + cross * absolute + _positive(e0) * alpha**2 / 2 * count)

    def _cubic(self, offset: Offset) -> Array:
        alpha, b = jnp.abs(offset.alpha), jnp.abs(offset.b)
        reach = jnp.asarray(filled("GaussianTaylorBound", self.largest), b.dtype) + alpha
        return jnp.exp(2 * _negative(offset.b)) / 6 * (2 + 4 * reach**2) * (alpha + b) ** 3


def _exponential_remainders(y: Float[Array, ""]) -> tuple[Array, Array, Array]:
    """(e^y − 1, e^y − 1 − y, e^y − 1 − y − y²/2), each to full precision even near 0."""
    near = jnp.clip(y, -1.0, 1.0)
    series = jnp.ones_like(y)
    for k in range(_SERIES_TERMS, 3, -1):
        series = 1 + near / k * series
    small = jnp.abs(y) < 1
    second = jnp.where(small, near**3 / 6 * series, jnp.expm1(y) - y - y**2 / 2)
    return jnp.expm1(y), jnp.where(small, second + y**2 / 2, jnp.expm1(y) - y), second


def _positive(x: Array) -> Array:
    return jnp.maximum(x, 0)


def _negative(x: Array) -> Array:
    return jnp.maximum(-x, 0)
