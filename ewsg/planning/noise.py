"""The noise of minibatch gradients, measured at points of the posterior."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _random
from .._core.types import Key
from ..estimators import AbstractEstimator
from ..result.paired import sd_error_of_tilts
from ..target.target import Target

_FEWEST_DATA, _MOST_DATA = 16, 256
_QUANTILE = 0.9


class Noise(NamedTuple):
    """The noise of the force that one datum gives, in coordinates z.

    Attributes:
        local: s² = Tr Cov(n ∇ℓ)/d at each point.
        tilts: at each point, samples of q = r·(G_j − G_i), r ~ N(0, I), over pairs of data.
    """

    local: Float[np.ndarray, " p"]
    tilts: Float[np.ndarray, "p pairs"]

    @property
    def mean(self) -> float:
        """s², averaged over the points."""
        return float(self.local.mean())

    @property
    def high(self) -> float:
        """The 90 % quantile of s² over the points."""
        return float(np.quantile(self.local, _QUANTILE))

    def calmer_half(self) -> "Noise":
        """The noise at the half of the points where it is smallest."""
        calm = np.argsort(self.local)[: math.ceil(len(self.local) / 2)]
        return Noise(self.local[calm], self.tilts[calm])

    def bias(self, rate: float, rule: str) -> float:
        """The relative error of the sd that `Paired` leaves with `rate` data per unit of time."""
        return sd_error_of_tilts(self.tilts / rate, self.mean / (2 * rate), rule)


def measure(
    target: Target, estimator: AbstractEstimator, points: Float[np.ndarray, "p d"], key: Key
) -> tuple[Noise, int]:
    """The noise of the data that an estimator draws, and how many data were drawn for it.

    Args:
        target: in coordinates z.
        estimator: prepared.
        points: of z.
        key: for the data and for r.
    """
    data = 2 * (min(_MOST_DATA, max(_FEWEST_DATA, target.num_data // len(points))) // 2)
    local, tilts = _measure(target, estimator, data, np.asarray(points, jnp.result_type(target.init)), key)
    return Noise(np.asarray(local, np.float64), np.asarray(tilts, np.float64)), len(points) * data


@functools.partial(jax.jit, static_argnames="data")
def _measure(
    target: Target, estimator: AbstractEstimator, data: int, points: Float[Array, "p d"], key: Key
) -> tuple[Float[Array, " p"], Float[Array, "p pairs"]]:
    def at(point_key: tuple[Float[Array, " d"], Key]) -> tuple[Array, Array]:
        point, own = point_key
        key_data, key_momentum = _random.split(own)
        seen = estimator.seen(target, point)
        indices = seen.draw(key_data, data, replace=True)
        forces = seen.forces(point, indices)
        along = forces @ _random.normal_like(key_momentum, point)
        first, second = jnp.split(along, 2)
        return jnp.sum(jnp.var(forces, axis=0, ddof=1)) / point.size, first - second

    keys = jax.vmap(_random.fold, in_axes=(None, 0))(key, jnp.arange(points.shape[0]))
    return jax.lax.map(at, (points, keys))
