"""Every random number of the library is drawn here, from typed keys.

Samplers never call `jax.random` themselves, so that the generator can be changed in one place. A key is either folded
(any number of times, with different numbers) or used up by one split or draw, never both: `fold(key, 0)` and the first
of `split(key)` may be the same key.
"""

import itertools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._types import Indices, Key, Position

_SHUFFLE_ROUNDS = 24


def fold(key: Key, number: Int[Array, ""] | int) -> Key:
    """The key of stream `number` under `key`; different numbers give independent streams."""
    return jax.random.fold_in(key, number)


def split(key: Key, num: int = 2) -> Array:
    """`num` independent keys; `key` is used up."""
    return jax.random.split(key, num)


def pack(key: Key) -> Array:
    """A key as plain words, for a state that is selected, stored and compared like any array."""
    return jax.random.key_data(key)


def unpack(words: Array) -> Key:
    """The key that `pack` put away."""
    return jax.random.wrap_key_data(words)


def uniform(key: Key, shape: tuple[int, ...], dtype: jnp.dtype) -> Float[Array, "..."]:
    """Uniform on [0, 1)."""
    return jax.random.uniform(key, shape, dtype)


def normal_like(key: Key, tree: Position) -> Position:
    """A standard normal vector with the structure and dtypes of `tree`, in one draw."""
    leaves, structure = jax.tree.flatten(tree)
    sizes = [leaf.size for leaf in leaves]
    drawn = jax.random.normal(key, (sum(sizes),), jnp.result_type(*(leaf.dtype for leaf in leaves)))
    starts = itertools.accumulate(sizes, initial=0)
    return structure.unflatten(
        [
            drawn[start : start + size].reshape(leaf.shape).astype(leaf.dtype)
            for start, size, leaf in zip(starts, sizes, leaves, strict=False)
        ]
    )


def categorical(key: Key, log_weights: Float[Array, " k"]) -> Int[Array, ""]:
    """An index with probability proportional to exp(log_weights)."""
    return jax.random.categorical(key, log_weights)


def indices(key: Key, num_data: Int[Array, " b"] | int, batch_size: int) -> Indices:
    """`batch_size` independent uniform indices in [0, num_data): with replacement; each entry may have its own bound.

    ⌊u·n / 2^64⌋ for a uniform 64-bit u, in 32-bit arithmetic: no index is favoured by more than n / 2^64.
    """
    high, low = jax.random.bits(key, (2, batch_size), jnp.uint32)
    n = jnp.uint32(num_data)
    product = high * n
    carry = (product + _multiply_high(low, n)) < product
    return (_multiply_high(high, n) + carry.astype(jnp.uint32)).astype(jnp.int32)


def _multiply_high(a: Array, b: Array) -> Array:
    """The upper 32 bits of the 64-bit product of two 32-bit words."""
    a_high, a_low, b_high, b_low = a >> 16, a & 0xFFFF, b >> 16, b & 0xFFFF
    middle = a_high * b_low + ((a_low * b_low) >> 16)
    other = a_low * b_high + (middle & 0xFFFF)
    return a_high * b_high + (middle >> 16) + (other >> 16)


def distinct_indices(key: Key, num_data: int, batch_size: int) -> Indices:
    """`batch_size` different indices in [0, num_data), in random order: without replacement, in O(batch_size)."""
    return shuffled(key, jnp.arange(batch_size, dtype=jnp.int32), num_data)


def shuffled(key: Key, places: Indices, num_data: int) -> Indices:
    """Where a random permutation of [0, num_data), fixed by `key`, sends `places`, without storing it.

    The swap-or-not shuffle (Hoang, Morris, Rogaway 2012): in every round x and its mirror image K − x (mod n) trade
    places or not, by one hashed bit of the larger of the two. It is a bijection for any key and any n. A datum, or a
    pair of data, stays where it was with probability 2^−24, so that minibatch means have their exact mean and
    covariance to float precision.
    """
    words = jax.random.bits(key, (2, _SHUFFLE_ROUNDS), jnp.uint32)
    n = jnp.uint32(num_data)
    mirrors = _multiply_high(words[0], n)
    x = places.astype(jnp.uint32)
    for mirror, word in zip(mirrors, words[1], strict=True):
        image = jnp.where(mirror >= x, mirror - x, mirror + n - x)
        swap = _mix(jnp.maximum(x, image) ^ word) >> 31 == 1
        x = jnp.where(swap, image, x)
    return x.astype(jnp.int32)


def _mix(word: Array) -> Array:
    """The finaliser of MurmurHash3: every input bit affects every output bit."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)
