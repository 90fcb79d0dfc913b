"""The same posterior, with data drawn with unequal probabilities p_i and weighted by 1/(n p_i) to correct for it."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Batch, Indices, Key, Position
from ..errors import InputError
from .alias import AliasTable
from .data import Dataset
from .likelihood import AbstractLikelihood
from .target import Target


class WeightedLikelihood(AbstractLikelihood):
    """w_i ℓ_i(θ), for data that are pairs (w_i, datum_i), no w_i being negative."""

    likelihood: AbstractLikelihood

    @property
    def log_concave(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """As the likelihood itself: weights are not negative."""
        return self.likelihood.log_concave

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        weight, own = datum
        return _times(weight, self.likelihood(params, own))

    def values(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        weight, own = batch
        return _times(weight, self.likelihood.values(params, own))

    def gradient(self, params: Position, batch: Batch, weights: Float[Array, " b"]) -> Position:
        weight, own = batch
        return self.likelihood.gradient(params, own, weights * weight.astype(weights.dtype))

    def directional(self, params: Position, batch: Batch, direction: Position) -> Float[Array, " b"]:
        weight, own = batch
        return _times(weight, self.likelihood.directional(params, own, direction))

    def gradients(self, params: Position, batch: Batch) -> Position:
        weight, own = batch
        return jax.tree.map(lambda leaf: _times(weight, leaf), self.likelihood.gradients(params, own))

    def gradient_changes(self, params: Position, anchor: Position, batch: Batch) -> Position:
        weight, own = batch
        changes = self.likelihood.gradient_changes(params, anchor, own)
        return jax.tree.map(lambda leaf: _times(weight, leaf), changes)

    def passes(self, points: int) -> int:
        return self.likelihood.passes(points)

    def datum_bytes(self, params: Position, data: Batch) -> int:
        return self.likelihood.datum_bytes(params, data[1])


class WeightedData(eqx.Module):
    """Pairs (w_i, datum_i), drawn with the probabilities of an alias table."""

    data: Dataset
    table: AliasTable

    @property
    def size(self) -> int:
        """n."""
        return self.data.size

    @property
    def arrays(self) -> Batch:
        """All pairs."""
        return self.table.weight, self.data.arrays

    def take(self, indices: Indices) -> Batch:
        """The pairs at `indices`, which must lie in [0, size)."""
        return self.table.weight.at[indices].get(mode="promise_in_bounds"), self.data.take(indices)

    def rows(self, start: Array | int, count: int) -> Batch:
        """`count` consecutive pairs."""
        return jax.lax.dynamic_slice_in_dim(self.table.weight, start, count), self.data.rows(start, count)

    def draw(self, key: Key, count: int, replace: bool) -> Indices:
        """`count` independent row numbers, i with probability p_i."""
        if not replace:
            raise InputError("data with unequal probabilities can only be drawn with replacement: set replace=True")
        return self.table.draw(key, count)


def weighted(target: Target, table: AliasTable) -> Target:
    r"""A target whose minibatches are drawn with the probabilities p_i of a table, each datum divided by n p_i.

    ℓ_i(θ) → ℓ_i(θ)/(n p_i),   so that E[n ∇ℓ_i/(n p_i)] = Σ_i p_i ∇ℓ_i/p_i = Σ_i ∇ℓ_i.

    Forces of minibatches are unbiased for the posterior of `target`. Sums over all data (`full_force`, `log_density`)
    are not those of the posterior: do not call them.
    """
    parts = WeightedLikelihood(target.likelihood), WeightedData(target.data, table)
    return eqx.tree_at(lambda t: (t.likelihood, t.data), target, parts)


def _times(weight: Array, values: Array) -> Array:
    """weight · values along the leading axes, in at least float32, in the dtype of `values`."""
    wide = pytree.wide_dtype(values)
    aligned = weight.astype(wide).reshape(weight.shape + (1,) * (values.ndim - weight.ndim))
    return (aligned * values.astype(wide)).astype(values.dtype)
