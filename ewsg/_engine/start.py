"""The start of a run: its key, and its starting points, checked."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import _random
from .._core import memory, pytree
from .._core.component import check_choice
from .._core.types import Key, Position
from .._random.streams import chain_keys
from ..errors import InputError, first_line, shown
from ..target.checking import check_start
from ..target.density import densities, spaced
from ..target.fingerprint import probed_rows
from ..target.target import Target

_CHECKED_VALUES = 4_000_000
_CHECKED_BYTES = 4 * 2**30
_WORKING_COPIES = 3


def root_key(seed: int | jax.Array, generator: str | None) -> jax.Array:
    """The root PRNG key of a run; a typed key keeps its own generator."""
    if generator is not None:
        check_choice("sample", "rng", generator, _random.GENERATORS)
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return _random.checked_key(seed, generator or _random.default_generator())
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ():
        if generator not in (None, _random.generator_of(seed)):
            raise InputError(
                f"seed is a {_random.generator_of(seed)} key and rng={generator!r}: leave rng out, or "
                "give a whole number as seed"
            )
        return seed
    raise InputError(f"seed must be a whole number or a typed key (jax.random.key(0)), not {shown(seed)}")


class Start(NamedTuple):
    """The starting points of a run.

    Attributes:
        positions: the starting points of all chains, unconstrained, stacked along a leading axis.
        first: the starting point of the first chain.
        densities: the log prior at `first`, and the log-likelihoods there that go into the fingerprint.
    """

    positions: Position
    first: Position
    densities: tuple[np.ndarray, np.ndarray]


def starting_points(target: Target, init: Any, key: Key, num_chains: int) -> Start:
    """The starting points of all chains, checked."""
    init = target.init if init is None else init
    if init is None:
        raise InputError("sample needs init=, the point where the chains start: give a pytree like the parameters")
    check_start(init)
    if pytree.is_function(init):
        positions = _drawn(target, init, key, num_chains)
        first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], positions)
        target.check(first)
        return Start(positions, first, _checked_densities(target, positions))
    position = target.starting_at(init)
    target.check(position)
    host = jax.tree.map(np.asarray, position)
    found = _checked_densities(target, jax.tree.map(lambda leaf: leaf[None], host))
    stacked = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (num_chains, *leaf.shape)), host)
    check_chains(stacked, num_chains)
    return Start(stacked, position, found)


def stacked_points(target: Target, positions: Position) -> Start:
    """The start for given starting points, stacked along a leading axis; their densities are checked."""
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], positions)
    return Start(positions, first, _checked_densities(target, positions))


def _drawn(target: Target, init: Callable[[Key], Position], key: Key, num_chains: int) -> Position:
    """One starting point per chain, each from its own key."""

    @jax.jit
    def draw(key: Key) -> Position:
        return jax.vmap(lambda own: pytree.as_arrays(init(own)))(chain_keys(key, num_chains).init)

    try:
        check_chains(jax.eval_shape(draw, key), num_chains)
        drawn = draw(key)
        if target.support is not None:
            target.starting_at(jax.tree.map(lambda leaf: np.asarray(leaf)[0], drawn))
        return target.positions_of(drawn, leading=1)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"init(key) failed: {first_line(error)}") from error


def check_chains(start: Any, num_chains: int) -> None:
    """Raise InputError for more chains than memory allows; `start` is the state of all chains, as arrays or shapes."""
    memory.check(_WORKING_COPIES * pytree.num_bytes(start), f"num_chains={num_chains:,}", "run fewer chains")


def _checked_densities(target: Target, positions: Position) -> tuple[np.ndarray, np.ndarray]:
    """The densities that the fingerprint of the first start needs; raises InputError for a start of zero density.

    The density is checked on up to 4 million values of the likelihood, at evenly spaced data; on fewer if each takes
    much memory, as a convolutional network's does. One compiled program evaluates both.
    """
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    most = min(target.num_data, max(1, _CHECKED_VALUES // num_chains))
    count = target.block(jax.tree.map(lambda leaf: leaf[0], positions), most, _CHECKED_BYTES // num_chains)
    probed = probed_rows(target)
    rows = np.concatenate([probed, spaced(target.num_data, count)])
    prior, each = (np.asarray(part) for part in densities(target, positions, rows))
    with np.errstate(over="ignore", invalid="ignore"):  # infinities and NaN are reported below
        likelihood = np.asarray(each[:, probed.size :], np.float64).sum(axis=1)
    for name, values in (("log_prior", prior), ("log_likelihood", likelihood)):
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise InputError(
                f"the initial potential is not finite: {name} is {float(values[bad[0]])} where chain {bad[0]} starts: "
                "start from a point of positive density (see init=)"
            )
    return np.asarray(prior[0]), each[0, : probed.size]
