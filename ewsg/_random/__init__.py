"""Every random number of the library is drawn here, from typed keys.

Samplers never call `jax.random` themselves, so that the generator can be changed in one place; every key carries its
generator. A key is either folded (any number of times, with different numbers) or used up by one split or draw, never
both: of a threefry key, `fold(key, 0)` and the first of `split(key)` may be equal.

Arithmetic on words is behind `jax.jit`, here and in the generator: a shape is traced once per process and lowered once
per program, however many draws a step makes. The compiler inlines it, so that it is fused as before.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from .._core import pytree
from .._core.compiler import platform, stored
from .._core.types import HostOrDevice, Indices, Key, Position
from ..errors import InputError
from .generator import FAST, seeded_on_host
from .normal_quantile import normal

_SHUFFLE_ROUNDS = 24
_ONE_WORD = 4_096
_MOST_SEED = 2**64 - 1

GENERATORS = ("fast", "threefry")
"""Generators by name: the library's own counter-based stream (`generator`), and JAX's threefry2x32."""


def make_key(seed: int, generator: str) -> Key:
    """The key of a whole number below 2^64, for a generator named as by `generator_of`.

    The number is split into two words here, because without x64 JAX would take it modulo 2^32.
    """
    low, high = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    if generator == "fast":
        return unpack(seeded_on_host(seed), generator)
    if generator == "threefry":
        return unpack(np.array([high, low]), generator)
    return jax.random.key(low, impl=_implementation(generator))


def checked_key(seed: Any, generator: str = "threefry") -> Key:
    """The key of a user's seed; raise InputError unless it is a whole number below 2^64."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= _MOST_SEED:
        raise InputError(f"seed={seed!r} must be a whole number from 0 to 2^64 − 1")
    return make_key(int(seed), generator)


def default_generator() -> str:
    """The fastest generator on the platform in use: "fast" on the CPU, else "threefry"."""
    return "fast" if platform() == "cpu" else "threefry"


def generator_of(key: Key) -> str:
    """The name of a key's generator: one of `GENERATORS`, or JAX's name for any other."""
    implementation = jax.random.key_impl(key)
    if implementation == FAST:
        return "fast"
    return {"threefry2x32": "threefry"}.get(str(implementation), str(implementation))


def _implementation(generator: str) -> Any:
    return {"fast": FAST, "threefry": "threefry2x32"}.get(generator, generator)


def fold(key: Key, number: Int[Array, ""] | int) -> Key:
    """The key of stream `number` under `key`; different numbers give independent streams."""
    return jax.random.fold_in(key, number)


def split(key: Key, num: int = 2) -> Array:
    """`num` independent keys; `key` is used up."""
    return jax.random.split(key, num)


def pack(key: Array) -> Array:
    """A key as plain words, for a state that is selected, stored and compared like any array."""
    return jax.random.key_data(key)


def unpack(words: HostOrDevice, generator: str) -> Array:
    """The key whose words `pack` returned."""
    array = jax.device_put(words) if isinstance(words, np.ndarray) else words  # jnp.asarray would compile a program
    return jax.random.wrap_key_data(array, impl=_implementation(generator))


def uniform(key: Key, shape: tuple[int, ...], dtype: DTypeLike) -> Float[Array, "..."]:
    """Uniform on [0, 1)."""
    return jax.random.uniform(key, shape, dtype)


def uniform_like(key: Key, tree: Position) -> Position:
    """Uniform on [0, 1) with the structure of `tree`, in one draw; every leaf in `pytree.wide_dtype(tree)`.

    In a narrower dtype an event of small probability would never happen.
    """
    return _shaped_like(tree, uniform(key, (pytree.size(tree),), pytree.wide_dtype(tree)))


def normal_like(key: Key, tree: Position) -> Position:
    """A standard normal vector with the structure and dtypes of `tree`, in one draw."""
    dtype = jnp.result_type(*(leaf.dtype for leaf in jax.tree.leaves(tree)))
    drawn = _shaped_like(tree, _normal(key, pytree.size(tree), dtype))
    return jax.tree.map(lambda number, leaf: number.astype(leaf.dtype), drawn, tree)


def _shaped_like(tree: Position, drawn: Float[Array, " d"]) -> Position:
    """The numbers of one vector in the leaves of `tree`."""
    leaves, structure = jax.tree.flatten(tree)
    starts = itertools.accumulate((leaf.size for leaf in leaves), initial=0)
    return structure.unflatten(
        [drawn[start : start + leaf.size].reshape(leaf.shape) for start, leaf in zip(starts, leaves, strict=False)]
    )


def _normal(key: Key, count: int, dtype: jnp.dtype) -> Float[Array, " count"]:
    """`count` standard normal numbers: in double precision as JAX draws them, else from one 32-bit word each."""
    if dtype == jnp.float64:
        return jax.random.normal(key, (count,), dtype)
    return normal(jax.random.bits(key, (count,), jnp.uint32))


def categorical(key: Key, log_weights: Float[Array, " k"]) -> Int[Array, ""]:
    """An index with probability proportional to exp(log_weights)."""
    return jax.random.categorical(key, log_weights)


def indices(key: Key, num_data: Int[Array, " b"] | int, batch_size: int) -> Indices:
    """`batch_size` independent uniform indices in [0, num_data): with replacement; each entry may have its own bound.

    ⌊u·n / 2^64⌋ for a uniform 64-bit u, in 32-bit arithmetic: no index is favoured by more than n / 2^64. Up to
    n = 4,096 only the upper 32 bits of u are drawn: ⌊u·n / 2^32⌋, which favours none by more than a millionth.
    """
    n = jnp.uint32(num_data)
    if isinstance(num_data, int) and num_data <= _ONE_WORD:
        return stored(_scaled(jax.random.bits(key, (batch_size,), jnp.uint32), n))
    high, low = jax.random.bits(key, (2, batch_size), jnp.uint32)
    return stored(_scaled_pair(high, low, n))


@jax.jit
def _scaled(word: Array, n: Array) -> Indices:
    """⌊word·n / 2^32⌋, for n below 2^16."""
    product = (word >> 16) * n + ((word & 0xFFFF) * n >> 16)
    return (product >> 16).astype(jnp.int32)


@jax.jit
def _scaled_pair(high: Array, low: Array, n: Array) -> Indices:
    """⌊(2^32 high + low)·n / 2^64⌋."""
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
    """The images of `places` under a random permutation of [0, num_data) fixed by `key`, without storing it.

    The swap-or-not shuffle (Hoang, Morris, Rogaway 2012): in every round x and its mirror image K − x (mod n) are
    swapped or not, by one hashed bit of the larger of the two. It is a bijection for any key and any n. A datum, or a
    pair of data, stays where it was with probability 2^−24, so that minibatch means have their exact mean and
    covariance to float precision.
    """
    words = jax.random.bits(key, (2, _SHUFFLE_ROUNDS), jnp.uint32)
    return stored(_swap_or_not(words, places.astype(jnp.uint32), jnp.uint32(num_data)))


@jax.jit
def _swap_or_not(words: Array, x: Array, n: Array) -> Indices:
    """The rounds of the shuffle, each with two words."""
    for mirror, word in zip(_multiply_high(words[0], n), words[1], strict=True):
        image = jnp.where(mirror >= x, mirror - x, mirror + n - x)
        swap = _mix(jnp.maximum(x, image) ^ word) >> 31 == 1
        x = jnp.where(swap, image, x)
    return x.astype(jnp.int32)


def _mix(word: Array) -> Array:
    """The finaliser of MurmurHash3: every input bit affects every output bit."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)
