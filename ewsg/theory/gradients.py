"""All n data gradients at a point, as one matrix in double precision: the subject of Theorems 1 and 2."""

import jax
import jax.numpy as jnp
import numpy as np

from .._core import pytree
from .._core.types import Position
from ..errors import InputError
from ..target.target import Target

_BLOCK_ENTRIES = 4_000_000


def datum_gradients(target: Target, position: Position) -> np.ndarray:
    """n∇V_i for i = 1..n, the prior shared out: shape (n, d); their mean over i is ∇V."""
    position = jax.tree.map(jnp.asarray, position)
    target.check(position)
    dimension = pytree.size(position)
    rows = max(1, _BLOCK_ENTRIES // dimension)
    blocks = []
    for start in range(0, target.num_data, rows):
        indices = jnp.arange(start, min(start + rows, target.num_data), dtype=jnp.int32)
        blocks.append(-pytree.host_rows(target.forces(position, indices)))
    gradients = np.concatenate(blocks)
    if not np.all(np.isfinite(gradients)):
        raise InputError("some datum gradients are NaN or infinite here: take a position of positive density")
    return gradients
