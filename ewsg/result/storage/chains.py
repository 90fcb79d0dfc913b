"""The chains of a saved run, put back where they were: the sampler says what they are, the file where they are."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import _random
from ..._engine import loop, state
from ..._random.streams import chain_keys
from ...collect import AbstractCollector
from ...errors import FileFormatError, InputError
from ...sampler import AbstractSampler
from ..run import Checkpoint, Run, SavedChains
from .trees import StoredTree, flatten, store

_ANOTHER = "the saved run was made with another estimator, integrator or collector: pass the same ones"


def restore(run: Run, sampler: AbstractSampler, collector: AbstractCollector) -> Run:
    """A run as `read` gives it, with its chains, keys and limits on the device and draws in the collector's classes."""
    assert isinstance(run.checkpoint, SavedChains)
    saved = run.checkpoint.tree
    try:
        example = jax.eval_shape(lambda: _example(run, saved, sampler, collector))
        rows = jax.eval_shape(lambda: loop.empty_rows(collector, example.carry, 1))
    except InputError:
        raise
    except Exception as error:
        raise InputError(_ANOTHER) from error
    named, structure = flatten(example, "the run")
    if [path for path, _ in named] != saved.form.paths:
        raise InputError(_ANOTHER)
    generator = run.settings["rng"]
    leaves = [_to_device(array, leaf, generator) for array, (_, leaf) in zip(saved.leaves, named, strict=True)]
    draws = _fit(run, "draws", rows["draw"])
    _fit(run, "stats", rows["stats"])
    return dataclasses.replace(run, draws=draws, checkpoint=structure.unflatten(leaves))


def _example(run: Run, saved: StoredTree, sampler: AbstractSampler, collector: AbstractCollector) -> Checkpoint:
    """Chains of this sampler, at the start: only their shapes are looked at."""
    num_chains = run.settings["num_chains"]
    position = jax.tree.map(jnp.asarray, run.fingerprint["position"])
    positions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position)
    keys = chain_keys(_random.make_key(0, run.settings["rng"]), num_chains)
    limits = [leaf for path, leaf in zip(saved.form.paths, saved.leaves, strict=True) if path.startswith(".limits")]
    return Checkpoint(loop.start(sampler, collector, keys, positions), keys, state.Limits(*map(jnp.asarray, limits)))


def _to_device(array: np.ndarray, example: Any, generator: str) -> jax.Array:
    """A copy on the device, which may be donated."""
    is_key = jnp.issubdtype(example.dtype, jax.dtypes.prng_key)
    expected = jax.eval_shape(jax.random.key_data, example) if is_key else example
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise InputError(_ANOTHER)
    copy = jnp.array(array)
    return _random.unpack(copy, generator) if is_key else copy


def _fit(run: Run, name: str, rows: Any) -> Any:
    """The saved draws, or stats, with the structure of the rows that this collector makes; raises unless they fit.

    Args:
        run: as read.
        name: of the tree.
        rows: shapes of one row, with the axes (draw, chain) before all others.
    """
    settings, saved = run.settings, _as_saved(run, name)
    num_draws = max(0, settings["num_steps"] - settings["discard"]) // settings["thin"]
    named, structure = flatten(rows, "the run")
    if [path for path, _ in named] != saved.form.paths:
        raise InputError(_ANOTHER)
    for (_, row), array in zip(named, saved.leaves, strict=True):
        if array.shape[2:] != row.shape[2:] or array.dtype != row.dtype:
            raise InputError(_ANOTHER)
        if array.shape[:2] != (settings["num_chains"], num_draws):
            raise FileFormatError(
                f"the saved run has {array.shape[1]} draws and should have {num_draws}: it was changed after sampling, "
                "and its chains cannot go on"
            )
    return structure.unflatten(saved.leaves)


def _as_saved(run: Run, name: str) -> StoredTree:
    """A tree of a run as the file has it, whether `load` gave it its classes or named its leaves by their paths."""
    assert isinstance(run.checkpoint, SavedChains)
    tree, form = getattr(run, name), run.checkpoint.forms.get(name)
    leaves = None if form is None else form.arrange(tree)
    return store(tree) if form is None or leaves is None else StoredTree(form, leaves)
