"""How stiff a network is, and how noisy its minibatches: measured where the warm start ended."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ... import _random
from ..._core import pytree
from ..._core.types import Indices, Key, Position
from ...target.curvature import lanczos
from ...target.target import Target

_MOST_ROWS = 1_000
_STEPS = 16
_TILTED_DATA = 256


def largest_curvature(target: Target, position: Position, rng: np.random.Generator) -> tuple[float, int]:
    """λ_max, the largest eigenvalue of the Hessian of V, and datum gradients.

    From 16 products of the Hessian with vectors (Lanczos), two gradients per datum each, over all data or, if there
    are more than 1,000, over 1,000 of them times n/1,000.

    Args:
        target: the posterior.
        position: where.
        rng: chooses the data and the first vector.
    """
    n, position = target.num_data, jax.tree.map(jnp.asarray, position)
    rows = np.sort(rng.choice(n, min(n, _MOST_ROWS), replace=False)).astype(np.int32)
    flat, unravel = ravel_pytree(position)
    block = target.block(position, len(rows))
    parts = [rows[start : start + block] for start in range(0, len(rows), block)]
    products = 0

    def product(vector: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        nonlocal products
        products += 1
        direction = unravel(jnp.asarray(vector, flat.dtype))
        each = [len(part) * pytree.host_rows(_product(target, position, direction, part), 0) for part in parts]
        return np.sum(each, axis=0) / len(rows)

    values = lanczos(product, rng.normal(size=flat.size), min(_STEPS, flat.size))
    return float(values[-1]) if len(values) else float("nan"), 2 * products * len(rows)


@jax.jit
def _product(target: Target, position: Position, direction: Position, indices: Indices) -> Position:
    """The Hessian of V over some data, times n over their number, times a vector."""
    return pytree.scaled(-1, jax.jvp(lambda at: target.force(at, indices), (position,), (direction,))[1])


def tilts(target: Target, positions: Position, key: Key) -> tuple[Float[np.ndarray, "p pairs"], int]:
    """q = r·(G_j − G_i) of 128 pairs of data at every position, r ~ N(0, I); and how many derivatives that took.

    E[q²] = 2 Tr Cov(G), of the forces G_i = n ∇(−V_i) of single data.

    Args:
        target: the posterior.
        positions: stacked along a leading axis.
        key: of the data, and of r.
    """
    num_points = jax.tree.leaves(positions)[0].shape[0]
    found = _tilts(target, _TILTED_DATA, positions, _random.split(key, num_points))
    return np.asarray(found, np.float64), num_points * _TILTED_DATA


@functools.partial(jax.jit, static_argnames="data")
def _tilts(target: Target, data: int, positions: Position, keys: Array) -> Float[Array, "p pairs"]:
    def at(position_key: tuple[Position, Key]) -> Float[Array, " pairs"]:
        position, key = position_key
        key_data, key_momentum = _random.split(key)
        indices = _random.indices(key_data, target.num_data, data)
        along = target.directional(position, indices, _random.normal_like(key_momentum, position))
        first, second = jnp.split(along, 2)
        return first - second

    return jax.lax.map(at, (positions, keys))
