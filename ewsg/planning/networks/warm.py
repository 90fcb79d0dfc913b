"""Warm start of a network: Adam, until the temperature of the posterior would undo what more of it gains."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from ... import _random
from ..._core import pytree
from ..._core.types import Indices, Key, Position
from ...target.target import Target

BATCH = 32
_LEARNING_RATE = 5e-3
_FEWEST_EPOCHS = 4
_GAIN = 0.25


class Warm(NamedTuple):
    """Where the warm start ended.

    Attributes:
        positions: of all starts, stacked along a leading axis.
        potentials: the mean over starts of V = −log posterior, of each epoch.
        settled: whether it ended because V had settled, not because it was to take no longer.
        spent: datum gradients.
    """

    positions: Position
    potentials: list[float]
    settled: bool
    spent: int


def warm_start(
    target: Target,
    starts: Position,
    key: Key,
    go_on: Callable[[int], bool],
    tell: Callable[[int, float], None],
) -> Warm:
    """Adam on minibatches of 32 data, every start for itself.

    Ends with epoch k = 4, 8, 16, ... if the mean of V over the epochs from k/2 to k is less than d/4 below that from
    k/4 to k/2. A chain at temperature 1 gives back about d/2 of whatever an optimiser gains, d being the number of
    parameters.

    Args:
        target: the posterior.
        starts: stacked along a leading axis.
        key: of the order of the data.
        go_on: whether there may be another epoch, given the datum gradients after it.
        tell: is told the number of epochs, and V.
    """
    batch = min(BATCH, target.num_data)
    num_starts = jax.tree.leaves(starts)[0].shape[0]
    per_epoch = num_starts * (target.num_data // batch) * batch
    gain = _GAIN * pytree.size(starts) / num_starts
    positions = jax.tree.map(jnp.asarray, starts)
    with jax.numpy_dtype_promotion("standard"):  # inside optax
        states = jax.vmap(_adam().init)(positions)
        potentials: list[float] = []
        while go_on((len(potentials) + 1) * per_epoch):
            keys = _random.split(_random.fold(key, len(potentials)), num_starts)
            positions, states, found = _epoch(target, batch, positions, states, keys)
            potentials.append(float(np.mean(np.asarray(found, np.float64))))
            tell(len(potentials), potentials[-1])
            if _settled(potentials, gain):
                return Warm(positions, potentials, True, len(potentials) * per_epoch)
    return Warm(positions, potentials, False, len(potentials) * per_epoch)


def _settled(potentials: list[float], gain: float) -> bool:
    """Whether the last doubling of the number of epochs lowered V by less than `gain`; asked at powers of 2."""
    epochs = len(potentials)
    if epochs < _FEWEST_EPOCHS or epochs & (epochs - 1):
        return False
    before, now = potentials[epochs // 4 : epochs // 2], potentials[epochs // 2 :]
    return bool(np.mean(before) - np.mean(now) < gain)


def _adam() -> optax.GradientTransformation:
    return optax.adam(_LEARNING_RATE)


@functools.partial(jax.jit, static_argnames="batch")
def _epoch(
    target: Target, batch: int, positions: Position, states: Any, keys: Array
) -> tuple[Position, Any, Float[Array, " starts"]]:
    """Every datum once (but the last n mod `batch`), in an order of its own for each start; and the mean of V."""
    steps = target.num_data // batch

    def potential(position: Position, indices: Indices) -> Float[Array, ""]:
        values = target.likelihood.values(position, target.take(indices))
        return -jnp.mean(values) * target.num_data - target.log_prior(position)

    def one(position: Position, state: Any, key: Key) -> tuple[Position, Any, Array]:
        places = jnp.arange(steps * batch, dtype=jnp.int32)
        order = _random.shuffled(key, places, target.num_data).reshape(steps, batch)

        def step(carry: tuple[Position, Any], indices: Indices) -> tuple[tuple[Position, Any], Array]:
            position, state = carry
            value, gradient = jax.value_and_grad(potential)(position, indices)
            updates, state = _adam().update(gradient, state, position)
            return (pytree.cast_like(optax.apply_updates(position, updates), position), state), value

        (position, state), values = jax.lax.scan(step, (position, state), order)
        return position, state, jnp.mean(values)

    return jax.vmap(one)(positions, states, keys)
