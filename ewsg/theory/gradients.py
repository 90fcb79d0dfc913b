"""All n data gradients at a point, as one matrix in double precision: what Theorems 1 and 2 speak about."""

import jax
import jax.numpy as jnp
import numpy as np

from .._core.types import Position
from ..errors import InputError
from ..target.target import Target

_BLOCK_ENTRIES = 4_000_000


def datum_gradients(target: Target, position: Position) -> np.ndarray:
    """n∇V_i for i = 1..n, the prior shared out: shape (n, d); their mean over i is ∇V."""
    position = jax.tree.map(jnp.asarray, position)
    target.check(position)
    dimension = flatten(position).size
    rows = max(1, _BLOCK_ENTRIES // dimension)
    blocks = []
    for start in range(0, target.num_data, rows):
        indices = jnp.arange(start, min(start + rows, target.num_data), dtype=jnp.int32)
        blocks.append(-flatten_rows(target.forces(position, indices)))
    gradients = np.concatenate(blocks)
    if not np.all(np.isfinite(gradients)):
        raise InputError("some datum gradients are NaN or infinite here: take a position of positive density")
    return gradients


def flatten(tree: Position) -> np.ndarray:
    """All entries of a pytree in one vector of doubles."""
    return np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)])


def flatten_rows(tree: Position, num_axes: int = 1) -> np.ndarray:
    """The same with the first `num_axes` axes, which all leaves share, kept."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
    return np.concatenate([leaf.reshape(*leaf.shape[:num_axes], -1) for leaf in leaves], axis=-1)
