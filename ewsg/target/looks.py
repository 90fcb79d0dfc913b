"""Looks at data: passes over them, each giving log-likelihood, force and empirical Fisher information at one θ."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Batch, Indices, Position, Scalar
from .data import Dataset
from .target import Target

_ROWS_PER_BLOCK = 16_384


class Look(NamedTuple):
    """Log-likelihood and log prior at θ, with their derivatives, in float64 on the host.

    Attributes:
        theta: θ, in the order of `ravel_pytree`, rounded to the dtype of the parameters.
        value: Σ w_i ℓ_i.
        force: Σ w_i ∇ℓ_i.
        products: Σ w_i ∇ℓ_i ∇ℓ_iᵀ, the empirical Fisher information, not centred.
        prior: log π.
        prior_force: ∇ log π.
        prior_precision: −∇² log π.
        scores: ‖Rᵀ∇ℓ_i‖ of every datum, if a root R was given.
    """

    theta: Float[np.ndarray, " d"]
    value: float
    force: Float[np.ndarray, " d"]
    products: Float[np.ndarray, "d d"]
    prior: float
    prior_force: Float[np.ndarray, " d"]
    prior_precision: Float[np.ndarray, "d d"]
    scores: Float[np.ndarray, " n"] | None = None

    @property
    def is_finite(self) -> bool:
        """Whether every part other than `scores` is finite."""
        return all(bool(np.all(np.isfinite(part))) for part in self[:-1])

    def without_matrices(self) -> "Look":
        """The same without matrices and scores, for a path of many looks, which does not need them."""
        return self._replace(products=np.empty((0, 0)), prior_precision=np.empty((0, 0)), scores=None)


class Sample:
    """All or some of a target's data, with weights; counts the looks at them.

    Args:
        target: the posterior of all n data.
        example: a position, for its structure and dtypes.
        indices: the data in the sample; None is all of them.
        weights: w_i of each datum in the sample; None is 1.
    """

    def __init__(
        self,
        target: Target,
        example: Position,
        indices: np.ndarray | None = None,
        weights: Float[np.ndarray, " s"] | None = None,
    ):
        if indices is not None:
            some = Dataset(_take(target.data, np.asarray(indices, np.int32)))
            target = eqx.tree_at(lambda target: target.data, target, some)
        self._unravel = pytree.host_unraveller(example)
        self.target = target
        self.size = target.num_data
        self.looks = 0
        self._weights = None if weights is None else jax.device_put(weights.astype(pytree.wide_dtype(example)))
        self._total = self.size if weights is None else float(np.sum(weights))
        self._usual = 0.0

    @property
    def cost(self) -> int:
        """Datum gradients so far."""
        return self.looks * self.size

    def theta(self, position: Position) -> Float[np.ndarray, " d"]:
        """A position as a vector on the host."""
        return pytree.host_rows(position, 0)

    def position(self, theta: Float[np.ndarray, " d"]) -> Position:
        """θ in the structure and dtypes of the parameters, on the host, where nothing has to be compiled."""
        return self._unravel(theta)

    def look(self, theta: Float[np.ndarray, " d"], root: Float[np.ndarray, "d k"] | None = None) -> Look:
        """The log density and its derivatives at θ; and the scores ‖Rᵀ∇ℓ_i‖, if a root R is given."""
        self.looks += 1
        with np.errstate(over="ignore"):  # an overflow makes the look not finite
            position = self.position(theta)
            usual = np.asarray(self._usual, pytree.wide_dtype(position))
            scale = None if root is None else np.asarray(root, usual.dtype)
        *sums, scores = _likelihood(self.target, self._weights, position, usual, scale)
        value, force, products, prior, prior_force, prior_precision, rounded = (
            np.asarray(part, np.float64)
            for part in (*sums, *_prior(self.target.log_prior, position), self.theta(position))
        )
        total = float(value) + self._total * float(usual)
        if np.isfinite(total) and (self.looks == 1 or abs(total) < abs(self._usual * self._total)):
            self._usual = total / self._total
        scores = None if scores is None else np.asarray(scores)
        return Look(rounded, total, force, products, float(prior), prior_force, prior_precision, scores)


@jax.jit
def _likelihood(
    target: Target,
    weights: Float[Array, " n"] | None,
    position: Position,
    usual: Scalar,
    root: Float[Array, "d k"] | None,
) -> tuple[Array, Array, Array, Array | None]:
    """Σ w_i (ℓ_i − usual), Σ w_i ∇ℓ_i, Σ w_i ∇ℓ_i ∇ℓ_iᵀ, and ‖Rᵀ∇ℓ_i‖ of every datum.

    Subtracting the constant `usual`, the mean ℓ_i of smallest size in earlier looks, keeps the digits of large sums in
    float32. The loop over blocks is not `Target.sum_blocks`, which returns no number per datum.
    """
    dtype, size = pytree.wide_dtype(position), pytree.size(position)

    def add(sums: tuple[Array, Array, Array], start: Array | int, count: int) -> tuple[tuple, Array | None]:
        batch = target.data.rows(start, count)
        values = target.likelihood.values(position, batch).astype(dtype) - usual
        rows = pytree.rows(target.likelihood.gradients(position, batch)).astype(dtype)
        scores = None if root is None else jnp.linalg.norm(rows @ root, axis=1)
        weighted = rows
        if weights is not None:
            share = jax.lax.dynamic_slice_in_dim(weights, start, count)
            values, weighted = share * values, share[:, None] * rows
        products = jnp.matmul(rows.T, weighted, precision="highest")
        parts = jnp.sum(values), jnp.sum(weighted, 0), products
        return jax.tree.map(jnp.add, sums, parts), scores

    block = target.block(position, min(_ROWS_PER_BLOCK, target.num_data))
    whole, rest = divmod(target.num_data, block)
    zero = jnp.zeros((), dtype), jnp.zeros(size, dtype), jnp.zeros((size, size), dtype)
    sums, scores = jax.lax.scan(lambda sums, k: add(sums, k * block, block), zero, jnp.arange(whole))
    scores = None if scores is None else scores.ravel()
    if rest:
        sums, last = add(sums, whole * block, rest)
        scores = None if scores is None or last is None else jnp.concatenate([scores, last])
    value, force, products = sums
    return value, force, products, scores


@jax.jit
def _prior(log_prior: Callable, position: Position) -> tuple[Array, Array, Array]:
    """log π, ∇ log π and −∇² log π."""
    flat, unravel = ravel_pytree(position)

    def value(theta: Float[Array, " d"]) -> Array:
        return log_prior(unravel(theta))

    return value(flat), jax.grad(value)(flat), -jax.hessian(value)(flat)


@jax.jit
def _take(data: Dataset, indices: Indices) -> Batch:
    return data.take(indices)
