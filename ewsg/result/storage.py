"""Loading saved runs, to use or to continue them: a file becomes a `Run` again."""

import os
from typing import Any, NamedTuple

import jax
import numpy as np

from .._core.component import describe
from .._core.types import Position
from ..collect import AbstractCollector, Draws, Moments, MomentsSummary
from ..errors import FileFormatError, InputError, shown
from ..sampler import AbstractSampler
from .cost import RunCost
from .file import archive, header as headers
from .file.trees import Form, SavedChains, StoredTree, flatten
from .file.writing import check_writable, write
from .restore import restore
from .run import Run

__all__ = ["SavedRun", "check_replaceable", "check_writable", "load", "read", "write"]


class SavedRun(NamedTuple):
    """A run as read from disk, which can be continued once its sampler is known."""

    run: Run

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run."""
        return self.run.settings

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of its target."""
        return self.run.fingerprint

    def restored(self, sampler: AbstractSampler, collector: AbstractCollector) -> Run:
        """The run with its chains, keys and limits on the device, and its draws in the collector's classes."""
        return restore(self.run, sampler, collector)


def check_replaceable(path: str | os.PathLike) -> None:
    """Raise InputError for a path that cannot be written, or that holds a file other than a saved run."""
    check_writable(path)
    if not os.path.exists(path):
        return
    try:
        _open(path)
    except FileFormatError:
        raise InputError(f"{path} exists and is not a saved run: choose another name, or remove it first") from None


def load(path: str | os.PathLike, like: Position | None = None) -> Run:
    """Load a run that was saved by `run.save`.

    Args:
        path: the file.
        like: an example of the parameters; needed only to restore other classes than dicts, lists and tuples (named
            tuples, modules, ordered dicts), whose draws are otherwise a dict from names to arrays.
    """
    return _read(path, like)[1]


def read(path: str | os.PathLike, like: Position | None = None) -> SavedRun:
    """Read a saved run to continue it; raises InputError if the file or `like` does not suffice for that."""
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
        derived = (header["settings"].get("support") or {}).get("derived", [])
        built["collected"] = _moments(trees, like, derived) or built["collected"]
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
    except Exception as error:  # a damaged file fails in many ways, all of which mean the same
        raise FileFormatError(
            f"{path} is not a complete file written by run.save (damaged, truncated, or of another kind): restore a "
            "copy, or sample again"
        ) from error


def _shaped(trees: dict[str, StoredTree | None], like: Position, *, whole: bool) -> dict[str, Any]:
    """Position and (if whole draws were kept) draws in the classes of `like`, which must have the same arrays."""
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


def _moments(trees: dict[str, StoredTree | None], like: Position | None, derived: list[str]) -> MomentsSummary | None:
    """Mean and variance, each in the structure of the parameters; None if the file holds something else."""
    position, collected = trees["position"], trees["collected"]
    if position is None or collected is None:
        return None
    form = _with_derived(position.form, derived)
    half = len(form.paths)
    if collected.form.paths != [f".{field}{path}" for field in MomentsSummary._fields for path in form.paths]:
        return None
    build = form.build if like is None else jax.tree.structure(like).unflatten
    return MomentsSummary(build(collected.leaves[:half]), build(collected.leaves[half:]))


def _with_derived(form: Form, derived: list[str]) -> Form:
    """The form of parameters in a dict together with what is derived from them."""
    if not derived:
        return form
    names = sorted([*(name for name, _ in form.structure["dict"]), *derived])
    return Form({"dict": [[name, "leaf"] for name in names]}, [f"[{name!r}]" for name in names])


def _canonical(leaf: Any) -> np.dtype:
    return jax.dtypes.canonicalize_dtype(leaf.dtype)


def _listed(paths: list[str]) -> str:
    shown = ", ".join(path or "(one array)" for path in paths[:5])
    return f"{shown}, ... ({len(paths)} in all)" if len(paths) > 5 else shown
