"""Lower bounds of one datum's likelihood whose logarithm can be summed over all data in O(1): what FlyMC needs."""

import abc
import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._component import Component, check_choice
from .._types import Batch, Position, Scalar
from ..contract import Cost
from ..errors import InputError
from ..likelihood import AbstractLikelihood
from ..target import Target

_ROWS = 16_384
_MOST_PASSES = 50
_CLOSE = 1e-4
_NOISE = 1e-6
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_SERIES_TERMS = 17


class Gap(NamedTuple):
    """ℓ_i − log B_i for each datum of a batch, and how large its rounding error may be."""

    value: Float[Array, " b"]
    rounding: Float[Array, " b"] | Scalar


class Prepared(NamedTuple):
    """A bound ready for use: itself with what it was missing, the statistics of its sum, and what both cost."""

    bound: "AbstractBound"
    statistics: Any
    cost: Cost


class AbstractBound(Component):
    """A positive function B_i(θ) ≤ L_i(θ) of one datum, with Σ_i log B_i(θ) in O(1) in the number of data.

    A bound of your own is one subclass with the three methods below. Before a run it is compared with the likelihood at
    random data and at positions around the start (up to ten proposals away), and its sum with the sum over all data;
    during the run `stats["bound_violations"]` counts the evaluations that found it above the likelihood.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> from ewsg.contract import Cost
        >>> from ewsg.kernels.bounds import AbstractBound, Prepared
        >>> class Half(AbstractBound):  # for exp(−½(x − θ)²): the same, halved
        ...     def prepare(self, target):
        ...         x = target.data.arrays
        ...         return Prepared(self, (x.size, jnp.sum(x)), Cost(target.num_data))
        ...
        ...     def log_bound(self, params, datum):
        ...         return -0.5 * (datum - params) ** 2 - jnp.log(2.0)
        ...
        ...     def log_bound_sum(self, params, statistics):
        ...         count, total = statistics
        ...         return params * total - 0.5 * count * params**2
        >>> target = ewsg.Target(lambda theta, x: -0.5 * (x - theta) ** 2, None, jnp.arange(4.0))
        >>> Half().prepare(target).statistics
        (4, Array(6., dtype=float32))
    """

    @abc.abstractmethod
    def prepare(self, target: Target) -> Prepared:
        """Work done once, before the first step: where the bound is tight, and the statistics of its sum."""

    @abc.abstractmethod
    def log_bound(self, params: Position, datum: Batch) -> Float[Array, ""]:
        """log B(θ) of one datum."""

    @abc.abstractmethod
    def log_bound_sum(self, params: Position, statistics: Any) -> Float[Array, ""]:
        """Σ_i log B_i(θ) over all data, up to a constant that does not depend on θ (leave it out: it costs digits)."""

    def log_bounds(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        """log B_i for every datum of a batch."""
        return jax.vmap(self.log_bound, in_axes=(None, 0))(params, batch)

    def gap(self, params: Position, batch: Batch, likelihood: AbstractLikelihood) -> Gap:
        """ℓ_i − log B_i for every datum; a bound that knows it without a subtraction keeps more digits."""
        values, bounds = likelihood.values(params, batch), self.log_bounds(params, batch)
        return Gap(values - bounds, jnp.finfo(values.dtype).eps * (jnp.abs(values) + jnp.abs(bounds)))


class LogisticBound(AbstractBound):
    r"""The quadratic bound of Jaakkola and Jordan for `ewsg.models.logistic`, tangent at the mode θ̂.

    With s = θ·z, ξ = θ̂·z and λ(ξ) = tanh(ξ/2)/(4ξ):

    log B(θ) = log σ(ξ) + (s − ξ)/2 − λ(ξ)(s² − ξ²) ≤ log σ(s),   with equality at s = ±ξ.

    Σ_i log B_i = const + h·g − hᵀAh,  h = θ − θ̂,  g = Σ σ(−ξ_i) z_i,  A = Σ λ(ξ_i) z_i z_iᵀ.

    Valid everywhere. The mode is that of the posterior, found by Newton's method; each pass over the data (gradient,
    Hessian, and g and A together) counts n datum gradients.

    Args:
        mode: θ̂, of shape (d,); None searches for it. Any point is valid; far from the mode more data are bright.

    References:
        T. Jaakkola and M. Jordan, Statistics and Computing 10 (2000); D. Maclaurin and R. Adams (2015), section 3.1.
    """

    mode: Float[Array, " d"] | None = None

    def prepare(self, target: Target) -> Prepared:
        rows = _only_array("LogisticBound", target, 2, "the rows of ewsg.models.logistic, (n, d)")
        mode, sums, passes = _newton(target, rows) if self.mode is None else (jnp.asarray(self.mode), None, 1)
        if mode.shape != rows.shape[1:]:
            raise InputError(f"LogisticBound: mode has shape {mode.shape}, and the data have {rows.shape[1]} columns")
        sums = sums or _total(_logistic_sums(rows, mode))
        statistics = (jnp.asarray(sums.slope), jnp.asarray(sums.bound))
        return Prepared(LogisticBound(mode), statistics, Cost(passes * target.num_data))

    def log_bound(self, params: Float[Array, " d"], datum: Float[Array, " d"]) -> Float[Array, ""]:
        return self.log_bounds(params, datum)

    def log_bounds(self, params: Float[Array, " d"], batch: Float[Array, "*b d"]) -> Float[Array, "*b"]:
        rows = batch.astype(params.dtype)
        s, xi = rows @ params, rows @ self._tangent(params)
        return jax.nn.log_sigmoid(xi) + (s - xi) / 2 - _curvature(xi) * (s - xi) * (s + xi)

    def log_bound_sum(self, params: Float[Array, " d"], statistics: tuple[Array, Array]) -> Float[Array, ""]:
        slope, curvature = (leaf.astype(params.dtype) for leaf in statistics)
        step = params - self._tangent(params)
        return step @ slope - step @ (curvature @ step)

    def _tangent(self, params: Float[Array, " d"]) -> Float[Array, " d"]:
        return _filled("LogisticBound", self.mode).astype(params.dtype)


class Offset(NamedTuple):
    """A position of the normal model as seen from the mode: α, b, and E₀, E₁, E₂ of `GaussianTaylorBound`."""

    alpha: Float[Array, ""]
    b: Float[Array, ""]
    remainders: tuple[Array, Array, Array]


class GaussianTaylorBound(AbstractBound):
    r"""A second-order Taylor expansion minus a bound of its remainder, for x_i ~ N(μ, σ²) with (μ, log σ) unknown.

    With s = log σ, u = (x − μ̂)e^{−ŝ}, α = (μ − μ̂)e^{−ŝ}, b = s − ŝ, the log density log N(x; μ, σ²) is

    ℓ = ℓ(θ̂) + uα + (u² − 1)b − ½α² − 2uαb − u²b² + R,    R = −½u²E₂ + uαE₁ − ½α²E₀,

    where E₀ = e^y − 1, E₁ = E₀ − y, E₂ = E₁ − y²/2 at y = −2b. The bound replaces R by −ρ ≤ R:

    - remainder="datum":    ρ = ½u²E₂⁺ + |uα|E₁ + ½α²E₀⁺, each datum's own, its signs at their worst (E₁ ≥ 0);
    - remainder="largest":  ρ = (e^{2b⁻}/6)(2 + 4(w + |α|)²)(|α| + |b|)³, w = max_i |u_i|, one cubic for all data, as
      Bardenet et al. have it: along the way from θ̂ to θ no third derivative by (α, b) exceeds
      e^{2b⁻} max(2, 4v, 4v²) with v = |u| + |α|, and max(2, 4v, 4v²) ≤ 2 + 4v².

    x⁺ and x⁻ are positive and negative parts. Both are valid everywhere. "datum" is by far the tighter. The sum needs
    n, Σu, Σ|u| and Σu²; finding them, and the mode, count n evaluations each.

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
        x = np.asarray(_only_array("GaussianTaylorBound", target, 1, "one number each, (n,)"), np.float64)
        mode, passes = self.mode, 1
        if mode is None:
            if np.std(x) == 0:
                raise InputError("GaussianTaylorBound: all data are equal, no sigma is the most likely: give mode=")
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
        """R + ρ; with remainder="datum" a sum of terms that are not negative: no digits are lost."""
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
        mode_mu, mode_scale = (jnp.asarray(leaf, mu.dtype) for leaf in _filled("GaussianTaylorBound", self.mode))
        b = log_sigma - mode_scale
        return Offset((mu - mode_mu) * jnp.exp(-mode_scale), b, _exponential_remainders(-2 * b))

    def _standardized(self, offset: Offset, x: Array) -> tuple[Array, Array]:
        """u of the data, and log σ̂."""
        mu, log_scale = (jnp.asarray(leaf, offset.b.dtype) for leaf in _filled("GaussianTaylorBound", self.mode))
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
        reach = jnp.asarray(_filled("GaussianTaylorBound", self.largest), b.dtype) + alpha
        return jnp.exp(2 * _negative(offset.b)) / 6 * (2 + 4 * reach**2) * (alpha + b) ** 3


def _filled(owner: str, setting: Any) -> Any:
    if setting is None:
        raise InputError(f"{owner} is not prepared: use ewsg.compose, or bound.prepare(target).bound")
    return setting


def _only_array(owner: str, target: Target, axes: int, what: str) -> Array:
    leaves = jax.tree.leaves(target.data.arrays)
    if len(leaves) != 1 or leaves[0].ndim != axes:
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise InputError(f"{owner} needs data that are {what}, not arrays of shape {shapes}")
    return leaves[0]


class _Sums(NamedTuple):
    """Over data: log σ(s), its gradient and minus its Hessian by θ, and λ(s) z zᵀ."""

    value: Any
    slope: Any
    curvature: Any
    bound: Any


@jax.jit
def _logistic_sums(rows: Float[Array, "n d"], theta: Float[Array, " d"]) -> _Sums:
    """The sums over each block of rows; they are added up in float64, by `_total`."""
    size = min(len(rows), _ROWS)
    whole, rest = divmod(len(rows), size)

    def block(rows: Array) -> _Sums:
        z = rows.astype(theta.dtype)
        s = z @ theta
        away = jax.nn.sigmoid(-s)
        curvature, bound = ((z * weight[:, None]).T @ z for weight in (away * (1 - away), _curvature(s)))
        return _Sums(jnp.sum(jax.nn.log_sigmoid(s)), away @ z, curvature, bound)

    numbers = jnp.arange(whole, dtype=jnp.int32)
    sums = jax.lax.map(lambda number: block(jax.lax.dynamic_slice_in_dim(rows, number * size, size)), numbers)
    if rest:
        last = block(rows[whole * size :])
        sums = jax.tree.map(lambda many, one: jnp.concatenate([many, one[None]]), sums, last)
    return sums


def _total(sums: _Sums) -> _Sums:
    return jax.tree.map(lambda leaf: np.sum(np.asarray(leaf, np.float64), axis=0), sums)


def _newton(target: Target, rows: Float[Array, "n d"]) -> tuple[Float[Array, " d"], _Sums, int]:
    """(the mode of a logistic regression's posterior, sums there, passes over the data); steps that overshoot shrink."""
    prior = jax.jit(
        lambda theta: (target.log_prior(theta), target.prior_force(theta), jax.hessian(target.log_prior)(theta))
    )

    def derivatives(theta: Array) -> tuple[_Sums, float, np.ndarray, np.ndarray]:
        value, slope, curvature = (np.asarray(part, np.float64) for part in prior(theta))
        sums = _total(_logistic_sums(rows, theta))
        return sums, float(sums.value + value), sums.slope + slope, sums.curvature - curvature

    theta, scale = jnp.zeros(rows.shape[1]), 1.0
    sums, value, slope, curvature = derivatives(theta)
    passes = 1
    while passes < _MOST_PASSES:
        eigenvalues, vectors = np.linalg.eigh(curvature)
        step = vectors @ ((slope @ vectors) / np.maximum(eigenvalues, 1e-6 * np.max(eigenvalues)))
        if slope @ step < _CLOSE:  # the squared distance that is left, in posterior standard deviations
            break
        candidate = theta + jnp.asarray(scale * step, theta.dtype)
        found = derivatives(candidate)
        passes += 1
        if found[1] < value - _NOISE * abs(value):
            scale /= 2
        else:
            theta, scale = candidate, 1.0
            sums, value, slope, curvature = found
    return theta, sums, passes


def _curvature(xi: Array) -> Array:
    """λ(ξ) = tanh(ξ/2)/(4ξ), also at 0."""
    small = jnp.abs(xi) < 1e-2
    safe = jnp.where(small, 1, xi)
    return jnp.where(small, 0.125 - xi**2 / 96, jnp.tanh(safe / 2) / (4 * safe))


def _exponential_remainders(y: Float[Array, ""]) -> tuple[Array, Array, Array]:
    """(e^y − 1, e^y − 1 − y, e^y − 1 − y − y²/2), each to full precision also near 0."""
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
