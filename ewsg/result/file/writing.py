"""Writing a run: it is taken apart into a header and arrays, which are written to one file atomically."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import atomic
from ...collect import MomentsSummary
from ...errors import InputError
from . import archive, header as headers
from .trees import Form, SavedChains, StoredTree, store

if TYPE_CHECKING:
    from ..run import Run


def write(run: "Run", path: str | os.PathLike) -> None:
    """Save a run, atomically."""
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
    """Raise InputError for a path that cannot be written, before any work is done."""
    atomic.destination(path)


def _take_apart(run: "Run") -> dict[str, StoredTree | None]:
    """The trees of a run, in the order of the file; dicts that `load` made from other classes get their old form."""
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


def _arranged(forms: dict[str, Form], name: str, tree: Any) -> list[Any] | None:
    """The leaves of a tree made by `load`, in the order of its file; None if its structure has changed since."""
    if not isinstance(tree, MomentsSummary) or "position" not in forms:
        return forms[name].arrange(tree)
    parts = [forms["position"].arrange(part) for part in tree]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]
