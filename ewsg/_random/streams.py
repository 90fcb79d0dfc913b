"""The keys of the chains of a run: one stream per purpose."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .._core.types import Key
from . import fold


class Keys(NamedTuple):
    """The streams of each chain: starting point, first state, steps (one key each) and diagnostics."""

    init: Key
    start: Key
    steps: Key
    probe: Key


@functools.partial(jax.jit, static_argnames="num_chains")
def chain_keys(key: Key, num_chains: int) -> Keys:
    """The keys of the first `num_chains` chains; chain k's are the same whatever num_chains is."""
    of_streams = jax.vmap(fold, in_axes=(0, None))
    own = jax.vmap(fold, in_axes=(None, 0))(key, jnp.arange(num_chains))
    return Keys(*(of_streams(own, stream) for stream in range(4)))
