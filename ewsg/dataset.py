"""Data on the device: a pytree of arrays that share one leading axis."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ._types import Batch
from .errors import InputError


class Dataset(eqx.Module):
    """n data as arrays on the device, shared by all chains; a minibatch is a gather of rows."""

    arrays: Batch
    size: int = eqx.field(static=True)

    def __init__(self, arrays: Batch):
        self.arrays = jax.tree.map(jnp.asarray, _checked(arrays))
        self.size = jax.tree.leaves(self.arrays)[0].shape[0]

    def take(self, indices: Int[Array, "..."]) -> Batch:
        """The rows at `indices`, which must lie in [0, size)."""
        return jax.tree.map(lambda array: array.at[indices].get(mode="promise_in_bounds"), self.arrays)

    def rows(self, start, count: int) -> Batch:
        """`count` consecutive rows."""
        return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, start, count), self.arrays)


def _checked(arrays: Batch) -> Batch:
    named = jax.tree_util.tree_leaves_with_path(arrays)
    if not named:
        raise InputError("data is empty: give a pytree of arrays with one leading axis, one row a datum")
    sizes = {}
    for path, leaf in named:
        name = "data" + jax.tree_util.keystr(path)
        array = np.asarray(leaf)
        if array.dtype == object or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
            raise InputError(f"{name} has dtype {array.dtype}: data must be numbers (encode categories as integers)")
        if array.ndim == 0:
            raise InputError(f"{name} is a scalar: data needs a leading axis, one row a datum")
        if np.issubdtype(array.dtype, np.inexact) and not np.all(np.isfinite(array)):
            bad = int(np.sum(~np.isfinite(array)))
            raise InputError(f"{name} has {bad} NaN or infinite entries: drop or impute those rows first")
        sizes[name] = array.shape[0]
    if len(set(sizes.values())) > 1:
        listing = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise InputError(f"the leading axes of data disagree ({listing}): every array needs one row a datum")
    if next(iter(sizes.values())) == 0:
        raise InputError("data has no rows: at least one datum is needed")
    return arrays
