"""Is a bound a bound? Compared with the likelihood before a run."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import _random
from .._types import Position, Scalar
from ..errors import InputError
from ..target import Target
from .bounds import AbstractBound

_STARTS = 4
_DISTANCES = (0.0, 1.0, 3.0, 10.0)
_DATA = 1_024
_BLOCK = 16_384
_ROUNDING = 64.0


def check_bound(target: Target, bound: AbstractBound, statistics: Any, positions: Position, scale: Scalar) -> None:
    """Refuse a bound that is above the likelihood or inconsistent, at the first starting points and around them.

    Args:
        target: the posterior.
        bound: prepared.
        statistics: of its sum.
        positions: starting points, stacked along a leading axis.
        scale: the step size; positions are drawn 0, 1, 3 and 10 of it away, by normal vectors.
    """
    name = type(bound).__name__
    points = _around(positions, scale)
    n = target.num_data
    every = n <= _DATA
    indices = jnp.arange(n) if every else _random.indices(jax.random.key(1), n, _DATA)
    with jax.debug_key_reuse(False):
        values, bounds, gaps, rounding = (
            np.asarray(part, np.float64) for part in _evaluate(target, bound, points, indices)
        )
    if not np.all(np.isfinite(values) <= np.isfinite(bounds)):
        place = np.argwhere(np.isfinite(values) & ~np.isfinite(bounds))[0]
        raise InputError(
            f"{name}: log_bound is {bounds[tuple(place)]} for datum {indices[place[1]]}: it must be finite"
        )
