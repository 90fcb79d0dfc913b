"""Runs on disk: one zip file of arrays (`.npz`) with a JSON header, written atomically, never pickled."""

import contextlib
import dataclasses
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _chains, _loop, _random
from ._component import describe
from ._types import Position
from .collect import AbstractCollector, Draws
from .errors import FileFormatError, InputError
from .result import Checkpoint, Run, RunCost
from .sampler import AbstractSampler

_FORMAT = "ewsg-run"
_VERSION = 1


class SavedRun(NamedTuple):
    """A run as read from disk; `restore` rebuilds its chains once the sampler is known."""

    run: Run
    settings: dict[str, Any]
    fingerprint: dict[str, Any]
    arrays: list[np.ndarray]

    def restore(self, sampler: AbstractSampler, collector: AbstractCollector) -> Checkpoint:
        """The chains, keys and limits as they were when the run was saved."""
        position = jax.tree.map(jnp.asarray, self.fingerprint["position"])
        num_chains = self.settings["num_chains"]
        generator = self.settings.get("rng", "threefry")
        positions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position)

        def example():
            keys = _loop.chain_keys(_random.make_key(0, generator), num_chains)
            carry = _loop.start(sampler, collector, keys, positions)
            return Checkpoint(carry, keys, _chains.Limits(jnp.float32(0), jnp.int32(0)))

        leaves, structure = jax.tree.flatten(jax.eval_shape(example))
        if len(leaves) != len(self.arrays):
            raise InputError(
                "the saved run was made with another estimator, integrator or collector: pass the same ones"
            )
        return structure.unflatten([_to_device(a, b, generator) for a, b in zip(self.arrays, leaves, strict=True)])


def write(run: Run, path: str | os.PathLike) -> None:
    """Saves a run; the file appears whole or not at all."""
    path = Path(path)
    check_writable(path)
    arrays: dict[str, np.ndarray] = {}
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": run.settings,
        "cost": dataclasses.asdict(run.cost),
        "status": run.status.tolist(),
        "trees": {
            name: _encode(tree, name, arrays)
            for name, tree in (
                ("draws", run.draws),
                ("stats", run.stats),
                ("collected", run.collected),
                ("position", run.fingerprint["position"]),
            )
        },
        "fingerprint": {key: value for key, value in run.fingerprint.items() if key != "position"},
    }
    for i, leaf in enumerate(jax.tree.leaves(run.checkpoint)):
        arrays[f"checkpoint/{i}"] = _to_host(leaf)
    header["dtypes"] = {name: str(array.dtype) for name, array in arrays.items()}
    arrays = {name: _plain(array) for name, array in arrays.items()}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def load(path: str | os.PathLike, like: Position | None = None) -> Run:
    """Reads a run that `run.save` wrote.

    Args:
        path: the file.
        like: an example of the parameters; needed only to give back classes of your own (named tuples, modules), whose
            draws are otherwise a dict from names to arrays.
    """
    return read(path, like).run


def read(path: str | os.PathLike, like: Position | None = None) -> SavedRun:
    """Reads a saved run with what is needed to go on from it."""
    if not Path(path).is_file():
        raise InputError(f"no saved run at {path}: check the path")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop("header").tobytes())
        if header["format"] != _FORMAT:
            raise KeyError("format")
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FileFormatError(
            f"{path} is not a complete file written by run.save (truncated, or of another kind): restore a copy, or "
            "sample again"
        ) from error
    if header["version"] > _VERSION:
        raise FileFormatError(
            f"{path} was written by a newer ewsg (format {header['version']}): update ewsg to read it"
        )
    arrays = {name: _typed(array, header["dtypes"][name]) for name, array in arrays.items()}
    trees = {name: _decode(spec, arrays) for name, spec in header["trees"].items()}
    if like is not None:
        structure = jax.tree.structure(like)
        whole = header["settings"]["collect"] == describe(Draws())
        for name in ("draws", "position") if whole else ("position",):
            trees[name] = structure.unflatten(_leaves(header["trees"][name], arrays))
    fingerprint = header["fingerprint"] | {"position": trees["position"]}
    run = Run(
        draws=trees["draws"],
        stats=trees["stats"],
        status=np.array(header["status"]),
        cost=RunCost(**header["cost"]),
        settings=header["settings"],
        collected=trees["collected"],
        fingerprint=fingerprint,
    )
    count = sum(name.startswith("checkpoint/") for name in arrays)
    return SavedRun(run, header["settings"], fingerprint, [arrays[f"checkpoint/{i}"] for i in range(count)])


def check_writable(path: str | os.PathLike) -> None:
    """Refuse a path that cannot be written, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file in it")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.parent} does not exist; create it first")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write {path}: no permission in the folder {path.parent}; choose another place")


def _encode(tree: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """The structure of a pytree as JSON; its leaves go to `arrays`. Classes of the user's become dicts of paths."""
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: _encode(tree[key], f"{name}/{key}", arrays) for key in sorted(tree)}}
    if type(tree) in (list, tuple):
        children = [_encode(child, f"{name}/{i}", arrays) for i, child in enumerate(tree)]
        return {type(tree).__name__: children}
    if tree is None:
        return {"none": True}
    if hasattr(tree, "dtype"):
        arrays[name] = _to_host(tree)
        return {"leaf": name}
    named = jax.tree_util.tree_leaves_with_path(tree)
    return {
        "custom": [
            [jax.tree_util.keystr(path), _encode(leaf, f"{name}/{i}", arrays)] for i, (path, leaf) in enumerate(named)
        ]
    }


def _decode(spec: Any, arrays: dict[str, np.ndarray]) -> Any:
    kind, content = next(iter(spec.items()))
    if kind == "dict":
        return {key: _decode(child, arrays) for key, child in content.items()}
    if kind in ("list", "tuple"):
        return {"list": list, "tuple": tuple}[kind](_decode(child, arrays) for child in content)
    if kind == "custom":
        return {key: _decode(child, arrays) for key, child in content}
    return arrays[content] if kind == "leaf" else None


def _leaves(spec: Any, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The leaves in the order in which JAX flattens the original tree."""
    kind, content = next(iter(spec.items()))
    if kind == "leaf":
        return [arrays[content]]
    children = {"dict": lambda: content.values(), "custom": lambda: [child for _, child in content]}
    nested = children.get(kind, lambda: [] if kind == "none" else content)()
    return [leaf for child in nested for leaf in _leaves(child, arrays)]


def _to_host(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _to_device(array: np.ndarray, example: Any, generator: str) -> jax.Array:
    if jnp.issubdtype(example.dtype, jax.dtypes.prng_key):
        return _random.unpack(jnp.asarray(array), generator)
    if array.shape != example.shape:
        raise InputError("the saved run was made with another estimator, integrator or collector: pass the same ones")
    return jnp.asarray(array, example.dtype)


def _plain(array: np.ndarray) -> np.ndarray:
    """Dtypes that NumPy's format does not know (bfloat16) as raw integers."""
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.dtype.itemsize}")


def _typed(array: np.ndarray, dtype: str) -> np.ndarray:
    return array if str(array.dtype) == dtype else array.view(jnp.dtype(dtype))
