"""Saving, loading and going on: a `Run` taken apart into a header and arrays, and put together again."""

import os
from typing import Any, NamedTuple

import jax
import numpy as np

from ..._core import atomic
from ..._core.component import describe
from ..._core.types import Position
from ...collect import AbstractCollector, Draws, Moments, MomentsSummary
from ...errors import FileFormatError, InputError, shown
from ...sampler import AbstractSampler
from ..run import Run, RunCost, SavedChains
from . import archive, header as headers
from .chains import restore
from .trees import Form, StoredTree, flatten, store


class SavedRun(NamedTuple):
    """A run as read from disk, which can go on once its sampler is known."""

    run: Run

    @property
    def settings(self) -> dict[str, Any]:
        """How the run was made."""
        return self.run.settings

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What tells its target from others."""
        return self.run.fingerprint

    def restored(self, sampler: AbstractSampler, collector: AbstractCollector) -> Run:
        """The run with its chains, keys and limits, and its draws in the classes that the collector gives them."""
        return restore(self.run, sampler, collector)


def write(run: Run, path: str | os.PathLike) -> None:
    """Saves a run; the file appears whole or not at all."""
    check_writable(path)
    trees = _take_apart(run)
    fingerprint = {name: value for name, value in run.fingerprint.items() if name != "position"}
    header = headers.make(run.settings, run.cost, run.status.tolist(), fingerprint, trees)
    try:
        headers.check_fields(header)
    except Exception as error:
        raise InputError(f"the run cannot be saved: {error or type(error).__name__}") from error
    leaves = [leaf for tree in trees.values() if tree is not None for leaf in tree.leaves]
    atomic.write(path, lambda file: archive.write(file, header, leaves))


def check_writable(path: str | os.PathLike) -> None:
    """Raises InputError for a path that cannot be written, before any work is done for it."""
    atomic.destination(path)


def load(path: str | os.PathLike, like: Position | None = None) -> Run:
    """Reads a run that `run.save` wrote.

    Args:
        path: the file.
        like: an example of the parameters; needed only to give back classes of your own (named tuples, modules, ordered
            dicts), whose draws are otherwise a dict from names to arrays.
    """
    return _read(path, like)[1]


def read(path: str | os.PathLike, like: Position | None = None) -> SavedRun:
    """Reads a saved run to go on from it; raises InputError if the file, or `like`, does not suffice for that."""
    header, run = _read(path, like)
    if not headers.can_go_on(header):
        raise InputError(f"{path} holds draws but not the state of their chains: resume from the file they came from")
    if like is None and not headers.Form(**header["trees"]["position"]).is_plain():
        raise InputError(
            "the parameters of the saved run are not nested dicts, lists and tuples: pass like=, an example of them"
        )
    return SavedRun(run)


def _read(path: str | os.PathLike, like: Position | None) -> tuple[dict[str, Any], Run]:
    header, trees = _open(path)
    built: dict[str, Any] = {
        name: None if tree is None else tree.form.build(tree.leaves) for name, tree in trees.items()
    }
    if like is not None:
        built |= _shaped(trees, like, whole=header["settings"]["collect"] == describe(Draws()))
    if header["settings"]["collect"] == describe(Moments()):
        built["collected"] = _moments(trees, like) or built["collected"]
    fingerprint = dict(header["fingerprint"])
    if built["position"] is not None:
        fingerprint["position"] = built["position"]
    chains, forms = trees["checkpoint"], {name: tree.form for name, tree in trees.items() if tree is not None}
    run = Run(
        draws=built["draws"],
        stats=built["stats"],
        status=np.array(header["status"]),
        cost=RunCost(**header["cost"]),
        settings=header["settings"],
        collected=built["collected"],
        checkpoint=None if chains is None else SavedChains(chains, forms),
        fingerprint=fingerprint,
    )
    return header, run


def _open(path: Any) -> tuple[dict[str, Any], dict[str, StoredTree | None]]:
    if not isinstance(path, str | os.PathLike) or not os.path.isfile(path):
        raise InputError(
            f"no saved run at {path if isinstance(path, str | os.PathLike) else shown(path)}: check the path"
        )
    try:
        with open(path, "rb") as file:
            header, arrays = archive.read(file, lambda header: headers.check(header, path))
        return header, headers.split(header["trees"], arrays)
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"cannot read {path}: no permission to open it") from error
    except Exception as error:  # a damaged file fails in many ways, and all mean the same
        raise FileFormatError(
            f"{path} is not a complete file written by run.save (damaged, truncated, or of another kind): restore a "
            "copy, or sample again"
        ) from error


def _take_apart(run: Run) -> dict[str, StoredTree | None]:
    """The trees of a run, in the order of the file; those that `load` named by their paths become what they were."""
    position, chains = run.fingerprint.get("position"), run.checkpoint
    trees: dict[str, StoredTree | None] = {
        "draws": store(run.draws),
        "stats": store(run.stats),
        "collected": store(run.collected),
        "position": None if position is None else store(position),
        "checkpoint": None if chains is None else chains.tree if isinstance(chains, SavedChains) else store(chains),
    }
    if isinstance(chains, SavedChains):
        whole = {"draws": run.draws, "collected": run.collected, "position": position}
        for name, form in chains.forms.items():
            leaves = None if form.is_plain() or name not in whole else _arranged(chains.forms, name, whole[name])
            if leaves is not None:
                trees[name] = StoredTree(form, [np.asarray(leaf) for leaf in leaves])
    return trees


def _shaped(trees: dict[str, StoredTree | None], like: Position, *, whole: bool) -> dict[str, Any]:
    """Position and (if whole draws were kept) draws in the classes of `like`, whose paths and arrays must be theirs."""
    position, draws = trees["position"], trees["draws"]
    if position is None:
        return {}
    named, structure = flatten(like, "like")
    if [path for path, _ in named] != position.form.paths:
        raise InputError(
            f"like= has the parameters {_listed([path for path, _ in named])} and the saved run has "
            f"{_listed(position.form.paths)}: pass an example of the parameters it was made with"
        )
    for (path, leaf), saved in zip(named, position.leaves, strict=True):
        if np.shape(leaf) != saved.shape or (hasattr(leaf, "dtype") and _canonical(leaf) != _canonical(saved)):
            given = f"{np.shape(leaf)} {getattr(leaf, 'dtype', '')}".strip()
            raise InputError(
                f"like{path} has shape and dtype {given} and the saved run has {saved.shape} {saved.dtype}: pass an "
                "example of the parameters it was made with"
            )
    shaped = {"position": structure.unflatten(position.leaves)}
    if whole and draws is not None and draws.form.paths == position.form.paths:
        shaped["draws"] = structure.unflatten(draws.leaves)
    return shaped


def _moments(trees: dict[str, StoredTree | None], like: Position | None) -> MomentsSummary | None:
    """Mean and variance, each in the structure of the position; None if the file does not hold just these."""
    position, collected = trees["position"], trees["collected"]
    if position is None or collected is None:
        return None
    paths, half = position.form.paths, len(position.form.paths)
    if collected.form.paths != [f".{field}{path}" for field in MomentsSummary._fields for path in paths]:
        return None
    build = position.form.build if like is None else jax.tree.structure(like).unflatten
    return MomentsSummary(build(collected.leaves[:half]), build(collected.leaves[half:]))


def _arranged(forms: dict[str, Form], name: str, tree: Any) -> list[Any] | None:
    """The leaves of a tree that `load` gave, in the order of its file; None if it has another structure since."""
    if not isinstance(tree, MomentsSummary) or "position" not in forms:
        return forms[name].arrange(tree)
    parts = [forms["position"].arrange(part) for part in tree]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]


def _canonical(leaf: Any) -> np.dtype:
    return jax.dtypes.canonicalize_dtype(leaf.dtype)


def _listed(paths: list[str]) -> str:
    shown = ", ".join(path or "(one array)" for path in paths[:5])
    return f"{shown}, ... ({len(paths)} in all)" if len(paths) > 5 else shown
