"""Every random number of the library is drawn here, from typed keys.

Samplers never call `jax.random` themselves, so that the generator can be changed in one place. A key is either folded
(any number of times, with different numbers) or used up by one split or draw, never both: `fold(key, 0)` and the first
of `split(key)` may be the same key.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._types import Indices, Key, Position

_PAIRWISE_LIMIT = 256
_SHUFFLE_ROUNDS = 24


def fold(key: Key, number: Int[Array, ""] | int) -> Key:
    """The key of stream `number` under `key`; different numbers give independent streams."""
    return jax.random.fold_in(key, number)


def split(key: Key, num: int = 2) -> Array:
    """`num` independent keys; `key` is used up."""
    return jax.random.split(key, num)


def uniform(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Uniform on [0, 1)."""
    return jax.random.uniform(key, shape, dtype)


def normal_like(key: Key, tree: Position) -> Position:
    """A standard normal vector with the structure and dtypes of `tree`."""
    leaves, structure = jax.tree.flatten(tree)
    keys = split(key, len(leaves))
    return structure.unflatten(
        [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, leaves, strict=True)]
    )


def categorical(key: Key, log_weights: Float[Array, " k"]) -> Int[Array, ""]:
    """An index with probability proportional to exp(log_weights)."""
    return jax.random.categorical(key, log_weights)


def indices(key: Key, num_data: int, batch_size: int) -> Indices:
    """`batch_size` independent uniform indices in [0, num_data): with replacement."""
    return jax.random.randint(key, (batch_size,), 0, num_data)


def distinct_indices(key: Key, num_data: int, batch_size: int) -> Indices:
    """A uniform ordered draw without replacement, in O(batch_size) work and memory.

    Draws with replacement, then redraws every entry that repeats an earlier one until none does. The procedure treats
    all labels alike, hence every ordered tuple of distinct indices is equally likely.
    """
    if 2 * batch_size > num_data:
        return jax.random.permutation(key, num_data)[:batch_size].astype(jnp.int32)

    def redraw(carry):
        round_, drawn, repeated = carry
        fresh = indices(fold(key, round_), num_data, batch_size)
        drawn = jnp.where(repeated, fresh, drawn)
        return round_ + 1, drawn, _repeats(drawn)

    start = (jnp.int32(0), jnp.zeros(batch_size, jnp.int32), jnp.ones(batch_size, bool))
    return jax.lax.while_loop(lambda carry: jnp.any(carry[2]), redraw, start)[1]


def _repeats(drawn: Indices) -> Array:
    """Which entries equal an earlier one."""
    size = drawn.shape[0]
    if size <= _PAIRWISE_LIMIT:
        earlier = jnp.tril(jnp.ones((size, size), bool), k=-1)
        return jnp.any((drawn[:, None] == drawn[None, :]) & earlier, axis=1)
    order = jnp.argsort(drawn, stable=True)
    ordered = drawn[order]
    repeated = jnp.concatenate([jnp.zeros(1, bool), ordered[1:] == ordered[:-1]])
    return jnp.zeros(size, bool).at[order].set(repeated)


def shuffled(key: Key, places: Indices, num_data: int) -> Indices:
    """Where a random permutation of [0, num_data), fixed by `key`, sends `places`, without storing it.

    The swap-or-not shuffle (Hoang, Morris, Rogaway 2012): in every round x and its mirror image K − x (mod n) trade
    places or not, by one hashed bit of the larger of the two. It is a bijection for any key and any n.
    """
    words = jax.random.bits(key, (2, _SHUFFLE_ROUNDS), jnp.uint32)
    mirrors = words[0] % jnp.uint32(num_data)
    n = jnp.uint32(num_data)

    def swap_or_not(i, x):
        image = (mirrors[i] + (n - x)) % n
        bit = _mix(jnp.maximum(x, image) ^ words[1, i]) >> 31
        return jnp.where(bit == 1, image, x)

    return jax.lax.fori_loop(0, _SHUFFLE_ROUNDS, swap_or_not, places.astype(jnp.uint32)).astype(jnp.int32)


def _mix(word: Array) -> Array:
    """The finaliser of MurmurHash3: every input bit affects every output bit."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)
