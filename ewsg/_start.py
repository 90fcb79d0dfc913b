"""How a run begins: its length, its key, and its checked starting points."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from . import _random
from ._component import check_choice, check_count, check_positive
from ._record import Plan
from ._types import Indices, Position
from .errors import InputError
from .sampler import AbstractSampler
from .target import Target

_DEFAULT_STEPS = 2_000
_DEFAULT_DRAWS = 1_000
_CHECKED_VALUES = 4_000_000
_CHECKED_BYTES = 4 * 2**30


def count_steps(
    sampler: AbstractSampler, num_steps: int | None, data_passes: float | None, *, resumed: bool = False
) -> int:
    """The length of a run, or of its continuation, from whichever of the two the caller gave."""
    if num_steps is not None and data_passes is not None:
        raise InputError("give num_steps= or data_passes=, not both: each fixes the length of the run")
    if data_passes is not None:
        check_positive("sample", "data_passes", data_passes)
        budget = round(data_passes * sampler.target.num_data)
        paid = int(sampler.preparation_cost().datum_gradients) if resumed else 0
        num_steps = sampler.num_steps(budget + paid)
        if num_steps < 1:
            raise InputError(f"data_passes={data_passes} pays for no step: raise it, or take a smaller batch")
    num_steps = _DEFAULT_STEPS if num_steps is None else num_steps
    check_count("sample", "num_steps", num_steps, 1)
    if num_steps >= 2**31:
        raise InputError(f"num_steps {num_steps} is above 2^31 − 1: run in parts with save and resume")
    return num_steps


def make_plan(num_steps: int, discard: float | int, thin: int | None) -> Plan:
    """Which steps are kept, from what the caller gave."""
    if isinstance(discard, float) and 0 <= discard < 1:
        discard = int(discard * num_steps)
    check_count("sample", "discard", discard, 0)
    discard = int(discard)
    if discard >= num_steps:
        raise InputError(f"discard={discard} throws away all of the {num_steps} steps: discard fewer, or run longer")
    if thin is None:
        thin = max(1, (num_steps - discard) // _DEFAULT_DRAWS)
    check_count("sample", "thin", thin, 1)
    if thin > num_steps - discard:
        raise InputError(f"thin={thin} keeps no draw of the {num_steps - discard} steps after discard: lower it")
    return Plan(num_steps, discard, int(thin))


def root_key(seed: int | jax.Array, generator: str | None) -> jax.Array:
    """The key that a whole run hangs on; a typed key keeps its own generator."""
    if generator is not None:
        check_choice("sample", "rng", generator, _random.GENERATORS)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return _random.make_key(int(seed), generator or _random.default_generator())
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ():
        if generator not in (None, _random.generator_of(seed)):
            raise InputError(
                f"seed is a {_random.generator_of(seed)} key and rng={generator!r}: leave rng out, or "
                "give a whole number as seed"
            )
        return seed
    raise InputError(f"seed must be a whole number or a typed key (jax.random.key(0)), not {seed!r}")


def initial_positions(target: Target, init: Any, keys: jax.Array, num_chains: int) -> Position:
    """The starting points of all chains, checked."""
    if callable(init):
        try:
            positions = jax.vmap(init)(keys)
        except Exception as error:
            raise InputError(f"init(key) failed: {str(error).splitlines()[0]}") from error
        target.check(jax.tree.map(lambda leaf: leaf[0], positions))
        distinct = positions
    else:
        position = jax.tree.map(_as_parameter, init)
        target.check(position)
        distinct = jax.tree.map(lambda leaf: leaf[None], position)
        positions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position)
    _check_density(target, distinct)
    return positions


def _as_parameter(leaf: Any) -> Any:
    """An array as given, but without weak types; other leaves are left for the check to name."""
    try:
        array = jnp.asarray(leaf)
    except TypeError:
        return leaf
    return jax.lax.convert_element_type(array, array.dtype)


def _check_density(target: Target, positions: Position) -> None:
    """Refuse starts of zero density, judged by up to 4 million values of the likelihood, evenly spaced in the data.

    Fewer, if a value takes much to compute, as a convolutional network's does.
    """
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    most = min(target.num_data, max(1, _CHECKED_VALUES // num_chains))
    count = target.block(jax.tree.map(lambda leaf: leaf[0], positions), most, _CHECKED_BYTES // num_chains)
    indices = jnp.asarray(np.linspace(0, target.num_data - 1, count).round(), jnp.int32)
    for name, values in zip(("log_prior", "log_likelihood"), _densities(target, positions, indices), strict=True):
        bad = np.flatnonzero(~np.isfinite(np.asarray(values)))
        if bad.size:
            raise InputError(
                f"the initial potential is not finite: {name} is {float(values[bad[0]])} where chain {bad[0]} starts: "
                "start from a point of positive density (see init=)"
            )


@jax.jit
def _densities(target: Target, positions: Position, indices: Indices) -> tuple[Array, Array]:
    """(log prior, Σ log-likelihood over the given data) at each of the stacked positions."""

    def at(position: Position) -> tuple[Array, Array]:
        block = target.block(position, indices.shape[0])
        value = functools.partial(target.likelihood, position)
        values = jax.lax.map(lambda i: value(target.data.take(i)), indices, batch_size=block)
        return target.log_prior(position), jnp.sum(values)

    return jax.lax.map(at, positions)
