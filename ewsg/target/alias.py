"""Walker's alias table: draws from any distribution over n data, in constant time per draw."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _random
from .._core.types import Indices, Key

_NEARLY_ONE = 1 - 1e-9


class AliasTable(NamedTuple):
    """A uniform i is kept with probability `keep[i]`, else replaced by `other[i]`; `weight[i]` is 1/(n p_i)."""

    keep: Float[Array, " n"]
    other: Int[Array, " n"]
    weight: Float[Array, " n"]

    def draw(self, key: Key, count: int) -> Indices:
        """`count` independent indices, i with probability p_i."""
        key_index, key_keep = _random.split(key)
        indices = _random.indices(key_index, self.keep.shape[0], count)
        threshold = _random.uniform(key_keep, (count,), self.keep.dtype)
        keep, other = (array.at[indices].get(mode="promise_in_bounds") for array in (self.keep, self.other))
        return jnp.where(threshold < keep, indices, other)


def alias_table(law: Float[np.ndarray, " n"]) -> AliasTable:
    """The table of the probabilities p_i = law_i / Σ law; every law_i must be positive."""
    scaled = law.astype(np.float64) * (len(law) / np.sum(law, dtype=np.float64))
    keep, other = _aliases(scaled)
    return AliasTable(*jax.device_put((keep, other, 1 / scaled)))  # jnp.asarray would compile programs


def _aliases(scaled: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    r"""(keep, other) for s_i = n p_i, without a loop over the data.

    Let D be the running sums of the deficits 1 − s of light data (s < 1), and E those of the excesses s − 1 of heavy
    data (s ≥ 1). Light datum k is filled up by the first heavy datum j with E_j > D_{k−1}. The K_j light data with
    D_{k−1} < E_j overdraw j by D_{K_j} − E_j < 1, which the next heavy datum makes up: keep_j = 1 + E_j − D_{K_j}.
    """
    keep, other = np.ones(len(scaled)), np.arange(len(scaled), dtype=np.int32)
    is_light = scaled < _NEARLY_ONE
    light, heavy = np.flatnonzero(is_light), np.flatnonzero(~is_light)
    if light.size == 0 or heavy.size == 0:
        return keep, other
    lacking = np.concatenate([[0.0], np.cumsum(1 - scaled[light])])
    excess = np.cumsum(np.maximum(scaled[heavy] - 1, 0))
    excess *= lacking[-1] / excess[-1]  # equal up to rounding
    giver = np.searchsorted(excess, lacking[:-1], side="right")
    keep[light], other[light] = scaled[light], heavy[np.minimum(giver, heavy.size - 1)]
    filled = np.searchsorted(lacking[:-1], excess, side="left")
    keep[heavy[:-1]] = np.clip(1 + excess - lacking[filled], 0, 1)[:-1]
    other[heavy[:-1]] = heavy[1:]
    return keep, other
