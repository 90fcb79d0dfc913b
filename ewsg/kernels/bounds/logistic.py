"""A quadratic lower bound of the logistic likelihood, tangent at the mode."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...errors import InputError
from ...interface import Cost
from ...target.target import Target
from .base import AbstractBound, Prepared, filled, only_array

_ROWS = 16_384
_MOST_PASSES = 50
_CLOSE = 1e-4
_NOISE = 1e-6


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

    mode: Float[Array | np.ndarray, " d"] | None = None

    def prepare(self, target: Target) -> Prepared:
        rows = only_array("LogisticBound", target, 2, "the rows of ewsg.models.logistic, (n, d)")
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
        return filled("LogisticBound", self.mode).astype(params.dtype)


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
    """(the mode of a logistic posterior, the sums there, passes over the data); steps that overshoot shrink."""
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
