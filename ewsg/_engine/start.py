"""How a run begins: its length, its key, and its checked starting points."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _random
from .._core import memory, pytree
from .._core.component import check_choice, check_count, check_positive
from .._core.types import Position
from ..errors import InputError, first_line
from ..sampler import AbstractSampler
from ..target.density import densities, spaced
from ..target.target import Target, check_start
from .draws import Plan

_DEFAULT_STEPS = 2_000
_DEFAULT_DRAWS, _FEWEST_DRAWS = 1_000, 10
_DEFAULT_BYTES = 2**30
_MOST_STEPS = 2**31 - 1
_MOST_SEED = 2**64 - 1
_CHECKED_VALUES = 4_000_000
_CHECKED_BYTES = 4 * 2**30
_WORKING_COPIES = 3


def count_steps(
    sampler: AbstractSampler, num_steps: int | None, data_passes: float | None, *, resumed: bool = False
) -> int:
    """The length of a run, or of its continuation, from whichever of the two the caller gave."""
    if data_passes is not None:
        check_positive("sample", "data_passes", data_passes)
        budget = round(float(data_passes) * sampler.target.num_data)
        paid = int(sampler.preparation_cost().datum_gradients) if resumed else 0
        num_steps = sampler.num_steps(budget + paid)
        if num_steps < 1:
            raise InputError(f"data_passes={data_passes} pays for no step: raise it, or take a smaller batch")
    num_steps = _DEFAULT_STEPS if num_steps is None else num_steps
    check_count("sample", "num_steps", num_steps, 1)
    return int(num_steps)


def check_length(num_steps: int | None, data_passes: float | None) -> None:
    """Refuse a length given twice, or one that is no number, before anything is prepared for it."""
    if num_steps is not None and data_passes is not None:
        raise InputError("give num_steps= or data_passes=, not both: each fixes the length of the run")
    if num_steps is not None:
        check_count("sample", "num_steps", num_steps, 1)
    if data_passes is not None:
        check_positive("sample", "data_passes", data_passes)


def check_total(num_steps: int) -> None:
    """Refuse more steps than a run can count."""
    if num_steps > _MOST_STEPS:
        raise InputError(
            f"{num_steps:,} steps are more than the {_MOST_STEPS:,} that a run can count: take fewer, or start a "
            "new run from the last draws of this one, with another seed"
        )


def check_plan(discard: float | int, thin: int | None) -> None:
    """Refuse what cannot say which steps are kept, whatever the length of the run."""
    if isinstance(discard, float | np.floating):
        if not 0 <= discard < 1:
            raise InputError(f"discard={discard} must be a share from 0.0 to below 1.0, or a whole number of steps")
    else:
        check_count("sample", "discard", discard, 0)
    if thin is not None:
        check_count("sample", "thin", thin, 1)


def make_plan(num_steps: int, discard: float | int, thin: int | None, draw_bytes: int) -> Plan:
    """Which steps are kept, from what the caller gave; `draw_bytes` is what one draw of all chains takes.

    Without `thin`, about 1,000 draws are kept; fewer, but at least 10, if these would take more than 1 GiB.
    """
    check_total(num_steps)
    discard = int(discard * num_steps) if isinstance(discard, float | np.floating) else int(discard)
    if discard >= num_steps:
        raise InputError(f"discard={discard} throws away all of the {num_steps} steps: discard fewer, or run longer")
    if thin is None:
        wanted = max(_FEWEST_DRAWS, min(_DEFAULT_DRAWS, _DEFAULT_BYTES // max(1, draw_bytes)))
        thin = max(1, (num_steps - discard) // wanted)
    if thin > num_steps - discard:
        raise InputError(f"thin={thin} keeps no draw of the {num_steps - discard} steps after discard: lower it")
    return Plan(num_steps, discard, int(thin))


def root_key(seed: int | jax.Array, generator: str | None) -> jax.Array:
    """The key that a whole run hangs on; a typed key keeps its own generator."""
    if generator is not None:
        check_choice("sample", "rng", generator, _random.GENERATORS)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        if not 0 <= seed <= _MOST_SEED:
            raise InputError(f"seed={seed} must be a whole number from 0 to 2^64 − 1")
        return _random.make_key(int(seed), generator or _random.default_generator())
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ():
        if generator not in (None, _random.generator_of(seed)):
            raise InputError(
                f"seed is a {_random.generator_of(seed)} key and rng={generator!r}: leave rng out, or "
                "give a whole number as seed"
            )
        return seed
    raise InputError(f"seed must be a whole number or a typed key (jax.random.key(0)), not {seed!r}")


def initial_positions(target: Target, init: Any, keys: jax.Array) -> tuple[Position, Position]:
    """The starting points of all chains, checked and stacked along a leading axis; and the first of them."""
    if init is None:
        raise InputError("sample needs init=: where the chains start, a pytree of arrays like the parameters")
    check_start(init)
    if pytree.is_function(init):
        draw = jax.jit(jax.vmap(lambda key: pytree.as_arrays(init(key))))
        try:
            check_chains(jax.eval_shape(draw, keys), len(keys))
            positions = draw(keys)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"init(key) failed: {first_line(error)}") from error
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], positions)
        target.check(first)
        _check_density(target, positions)
        return positions, first
    position = pytree.as_arrays(init)
    target.check(position)
    check_chains(jax.eval_shape(lambda: _stacked(position, len(keys))), len(keys))
    _check_density(target, jax.tree.map(lambda leaf: np.asarray(leaf)[None], position))
    return _stacked(position, len(keys)), position


@functools.partial(jax.jit, static_argnums=1)
def _stacked(position: Position, num_chains: int) -> Position:
    """The same starting point for every chain."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position)


def check_chains(start: Any, num_chains: int) -> None:
    """Refuse more chains than there is memory for; `start` is what all of them carry, as arrays or shapes."""
    memory.check(_WORKING_COPIES * pytree.num_bytes(start), f"num_chains={num_chains:,}", "run fewer chains")


def _check_density(target: Target, positions: Position) -> None:
    """Refuse starts of zero density, judged by up to 4 million values of the likelihood, evenly spaced in the data.

    Fewer, if a value takes much to compute, as a convolutional network's does.
    """
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    most = min(target.num_data, max(1, _CHECKED_VALUES // num_chains))
    count = target.block(jax.tree.map(lambda leaf: leaf[0], positions), most, _CHECKED_BYTES // num_chains)
    prior, each = (np.asarray(part) for part in densities(target, positions, spaced(target.num_data, count)))
    with np.errstate(over="ignore", invalid="ignore"):  # infinite or NaN then, which is reported
        likelihood = np.asarray(each, np.float64).sum(axis=1)
    for name, values in (("log_prior", prior), ("log_likelihood", likelihood)):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise InputError(
                f"the initial potential is not finite: {name} is {float(values[bad[0]])} where chain {bad[0]} starts: "
                "start from a point of positive density (see init=)"
            )
