"""A quadratic lower bound of the logistic likelihood, tangent at the mode."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...errors import InputError
from ...interface import Cost
from ...target.mode import find_mode
from ...target.target import Target
from .base import AbstractBound, Prepared, filled, only_array

_ROWS_PER_BLOCK = 16_384
_MOST_PASSES = 50


class LogisticBound(AbstractBound):
    r"""The quadratic bound of Jaakkola and Jordan for `ewsg.models.logistic`, tangent at the mode θ̂.

    For a row z = (2y − 1) x of the data, with s = θ·z, ξ = θ̂·z and λ(ξ) = tanh(ξ/2)/(4ξ):

    log B(θ) = log σ(ξ) + (s − ξ)/2 − λ(ξ)(s² − ξ²) ≤ log σ(s),   with equality at s = ±ξ.

    Σ_i log B_i = const + h·g − hᵀAh,  h = θ − θ̂,  g = Σ σ(−ξ_i) z_i,  A = Σ λ(ξ_i) z_i z_iᵀ.

    Valid everywhere. The mode is that of the posterior, found by Newton's method (`ewsg.find_mode`), each of whose
    passes counts as n (d + 1) datum gradients; g and A take n more.

    Args:
        mode: θ̂, of shape (d,); None searches for it. Any point is valid, but far from the mode more data are bright.

    References:
        T. Jaakkola and M. Jordan, Statistics and Computing 10 (2000); D. Maclaurin and R. Adams (2015), section 3.1.
    """

    mode: Float[Array | np.ndarray, " d"] | None = None

    def prepare(self, target: Target) -> Prepared:
        rows = only_array("LogisticBound", target, 2, "the rows of ewsg.models.logistic, (n, d)")
        mode, spent = self.mode, target.num_data
        if mode is None:
            found = find_mode(target, jnp.zeros(rows.shape[1]), method="newton", max_passes=_MOST_PASSES)
            mode, spent = found.position, spent + int(found.cost.datum_gradients)
        mode = jnp.asarray(mode)
        if mode.shape != rows.shape[1:]:
            raise InputError(f"LogisticBound: mode has shape {mode.shape}, but the data have {rows.shape[1]} columns")
        statistics = tuple(jnp.asarray(np.sum(np.asarray(part, np.float64), axis=0)) for part in _sums(rows, mode))
        return Prepared(LogisticBound(mode), statistics, Cost(spent))

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


@jax.jit
def _sums(rows: Float[Array, "n d"], theta: Float[Array, " d"]) -> tuple[Float[Array, "k d"], Float[Array, "k d d"]]:
    """g and A for each of k blocks of rows, to be added up in float64."""
    size = min(len(rows), _ROWS_PER_BLOCK)
    whole, rest = divmod(len(rows), size)

    def block(rows: Array) -> tuple[Array, Array]:
        z = rows.astype(theta.dtype)
        s = z @ theta
        return jax.nn.sigmoid(-s) @ z, (z * _curvature(s)[:, None]).T @ z

    numbers = jnp.arange(whole, dtype=jnp.int32)
    sums = jax.lax.map(lambda number: block(jax.lax.dynamic_slice_in_dim(rows, number * size, size)), numbers)
    if rest:
        last = block(rows[whole * size :])
        sums = jax.tree.map(lambda many, one: jnp.concatenate([many, one[None]]), sums, last)
    return sums


def _curvature(xi: Array) -> Array:
    """λ(ξ) = tanh(ξ/2)/(4ξ), also at 0."""
    small = jnp.abs(xi) < 1e-2
    safe = jnp.where(small, 1, xi)
    return jnp.where(small, 0.125 - xi**2 / 96, jnp.tanh(safe / 2) / (4 * safe))
