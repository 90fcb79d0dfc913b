r"""`FAST`: a counter-based random stream for the CPU, as an implementation of JAX keys.

A key is two 32-bit words (k₀, k₁). With the mixers f, g below (bijections of 32 bits, two multiplications each):

    word i of a key:    x = f(φ·i + k₀),   word = g(x + k₁) ⊕ x
    key number d:       k₀' = k₁ + s,   k₁' = (k₀ ⊕ t) + f(k₀'),   (s, t) = two hashes of d

A key's child is one round of a Feistel network on a 64-bit block into which d was hashed: for one key, different
numbers give different keys. The last bit of t says whether the number comes from `fold_in` or from `split`, so that the
two never give the same key. Everything is elementwise, with no table and no carry: under `vmap` the compiler fuses it
into whatever consumes the numbers, and the stream of a chain does not depend on how many chains there are.

Threefry, JAX's default, was built to resist an adversary; this was not. `docs/random.md` lists the tests it passes.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, UInt

_GOLDEN = 0x9E3779B9
_FOLD, _SPLIT = 0, 1
_UNROLLED_KEYS = 8

Word = UInt[Array, "..."]


def _mix(word: Any) -> Any:
    """f: `lowbias32` of C. Wellons's search for 32-bit mixers of least bias."""
    word = (word ^ (word >> 16)) * np.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * np.uint32(0x846CA68B)
    return word ^ (word >> 16)


def _remix(word: Any) -> Any:
    """g: the least biased mixer that this search has found since."""
    word = (word ^ (word >> 16)) * np.uint32(0x21F0AAAD)
    word = (word ^ (word >> 15)) * np.uint32(0xD35A2D97)
    return word ^ (word >> 15)


@functools.partial(jax.jit, static_argnames="kind")
def _child(key: Word, number: Word, kind: int) -> Word:
    """Key `number` under `key`."""
    s = _mix(number * jnp.uint32(_GOLDEN) + jnp.uint32(0x6A09E667))
    t = _remix(number + jnp.uint32(0xBB67AE85)) & jnp.uint32(0xFFFFFFFE) | jnp.uint32(kind)
    first = key[1] + s
    return _side_by_side(first, (key[0] ^ t) + _mix(first))


def _side_by_side(first: Word, second: Word) -> Word:
    """The two words of keys along a new last axis.

    A slice of a concatenation is simplified away by the compiler, so that no key is ever written to memory; but only if
    no transposition comes between them, as after `jnp.stack` under `vmap`.
    """
    words = [jax.lax.reshape(word, (*word.shape, 1)) for word in (first, second)]
    return jax.lax.concatenate(words, first.ndim)


def _seed(seed: Array) -> Word:
    """Called by `jax.random.key(seed, impl=FAST)`; without x64, JAX has already cut the seed to 32 bits."""
    low, high = seed.astype(jnp.uint32), jnp.zeros(seed.shape, jnp.uint32)
    if seed.dtype.itemsize == 8:
        high = jnp.right_shift(seed, 32).astype(jnp.uint32)
    return seeded(low, high)


def seeded(low: Word, high: Word) -> Word:
    """The key of a 64-bit number, given as two words: different numbers have different keys."""
    return _side_by_side(*_scrambled(low, high))


def seeded_on_host(seed: int) -> np.ndarray:
    """The same for a Python int, without compiling anything."""
    low, high = (np.array(word, np.uint32) for word in (seed & 0xFFFFFFFF, seed >> 32))
    with np.errstate(over="ignore"):  # arithmetic is modulo 2^32
        return np.stack(_scrambled(low, high))


def _scrambled(low: Any, high: Any) -> tuple[Any, Any]:
    low, high = low ^ np.uint32(0x243F6A88), high + np.uint32(0x85A308D3)
    for _ in range(2):
        high = high + _mix(low)
        low = low ^ _remix(high)
    return low, high


def _fold_in(key: Word, number: Array | int) -> Word:
    return _child(key, jnp.uint32(number), _FOLD)


def _split(key: Word, shape: tuple[int, ...]) -> Word:
    count = math.prod(shape)
    if count > _UNROLLED_KEYS:
        return _child(key, jax.lax.iota(jnp.uint32, count).reshape(shape), _SPLIT)
    children = [jax.lax.reshape(_child(key, jnp.uint32(number), _SPLIT), (1, 2)) for number in range(count)]
    return jax.lax.reshape(jax.lax.concatenate(children, 0), (*shape, 2))


def _random_bits(key: Word, bit_width: int, shape: tuple[int, ...]) -> Array:
    numbers = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    if bit_width == 64:
        high, low = (_word(key, 2 * numbers + jnp.uint32(half)).astype(jnp.uint64) for half in (0, 1))
        return high << 32 | low
    return _word(key, numbers).astype(jnp.dtype(f"uint{bit_width}"))


@jax.jit
def _word(key: Word, number: Word) -> Word:
    x = _mix(number * jnp.uint32(_GOLDEN) + key[0])
    return _remix(x + key[1]) ^ x


FAST = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="ewsg_fast",
    tag="ewsg",
)
"""For `jax.random.key(seed, impl=FAST)`."""
