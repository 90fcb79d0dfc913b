"""Restoring the chains of a saved run: their structure comes from the sampler, their values from the file."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _random
from .._engine import loop, state
from ..collect import AbstractCollector, InCoordinates
from ..errors import FileFormatError, InputError
from ..sampler import AbstractSampler
from .file.trees import SavedChains, StoredTree, flatten, store
from .run import Run

_ANOTHER = (
    "the saved run was made with a different estimator, integrator or collector (pass the same ones), or by a "
    "different version of ewsg (sample again)"
)


def restore(run: Run, sampler: AbstractSampler, collector: AbstractCollector) -> Run:
    """The run that `read` returned, with chains, keys and limits on the device and draws in the collector's classes."""
    assert isinstance(run.checkpoint, SavedChains)
    saved = run.checkpoint.tree
    try:
        example = jax.eval_shape(lambda: _example(run, saved, sampler, collector))
        row = loop.row_shapes(collector, example.carry)
    except InputError:
        raise
    except Exception as error:
        raise InputError(_ANOTHER) from error
    named, structure = flatten(example, "the run")
    if [path for path, _ in named] != saved.form.paths:
        raise InputError(_ANOTHER)
    generator = run.settings["rng"]
    leaves = [_to_device(array, leaf, generator) for array, (_, leaf) in zip(saved.leaves, named, strict=True)]
    draws = _fit(run, "draws", row["draw"])
    _fit(run, "stats", row["stats"])
    return dataclasses.replace(run, draws=draws, checkpoint=structure.unflatten(leaves))


def _example(run: Run, saved: StoredTree, sampler: AbstractSampler, collector: AbstractCollector) -> state.Checkpoint:
    """Chains of this sampler at their start, for their shapes only."""
    num_chains = run.settings["num_chains"]
    position = jax.tree.map(jnp.asarray, run.fingerprint["position"])
    if isinstance(collector, InCoordinates):
        position = collector.coordinates.locate(position)
    positions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position)
    key = _random.make_key(0, run.settings["rng"])
    limits = [leaf for path, leaf in zip(saved.form.paths, saved.leaves, strict=True) if path.startswith(".limits")]
    vectors = any("virial" in path for path in saved.form.paths)
    carry, keys = loop.start(sampler, collector, key, positions, vectors)
    return state.Checkpoint(carry, keys, state.Limits(*map(jnp.asarray, limits)))


def _to_device(array: np.ndarray, example: Any, generator: str) -> jax.Array:
    """A copy on the device, which may be donated; raises InputError unless it is like the example."""
    is_key = jnp.issubdtype(example.dtype, jax.dtypes.prng_key)
    expected = jax.eval_shape(jax.random.key_data, example) if is_key else example
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise InputError(_ANOTHER)
    copy = jnp.array(array)
    return _random.unpack(copy, generator) if is_key else copy


def _fit(run: Run, name: str, row: Any) -> Any:
    """The saved draws, or stats, in the structure of this collector's rows; raises InputError unless they fit.

    Args:
        run: the run that `read` returned.
        name: the name of the tree, "draws" or "stats".
        row: the shapes of one draw, with a leading axis of chains.
    """
    settings, saved = run.settings, _as_saved(run, name)
    num_draws = max(0, settings["num_steps"] - settings["discard"]) // settings["thin"]
    named, structure = flatten(row, "the run")
    if [path for path, _ in named] != saved.form.paths:
        raise InputError(_ANOTHER)
    for (_, shape), array in zip(named, saved.leaves, strict=True):
        if array.shape[2:] != shape.shape[1:] or array.dtype != shape.dtype:
            raise InputError(_ANOTHER)
        if array.shape[:2] != (settings["num_chains"], num_draws):
            raise FileFormatError(
                f"the saved run has {array.shape[1]} draws and should have {num_draws}: it was changed after sampling, "
                "so its chains cannot continue"
            )
    return structure.unflatten(saved.leaves)


def _as_saved(run: Run, name: str) -> StoredTree:
    """A tree of a run as in its file, whether `load` restored its classes or named its leaves by their paths."""
    assert isinstance(run.checkpoint, SavedChains)
    tree, form = getattr(run, name), run.checkpoint.forms.get(name)
    leaves = None if form is None else form.arrange(tree)
    return store(tree) if form is None or leaves is None else StoredTree(form, leaves)
