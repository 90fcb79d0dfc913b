"""The header of a saved run: made from a run, and checked field by field before anything in it is trusted."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from ..._core.component import describe
from ..._engine import state
from ...errors import FileFormatError
from ..cost import RunCost
from ..paired import are_whole
from ..predictive import verdict_of
from .archive import DTYPES, check_promises, promise
from .trees import Form, StoredTree, count_leaves

FORMAT = "ewsg-run"
VERSION = 2
TREES = ("draws", "stats", "collected", "position", "checkpoint")
"""The pytrees of a file, in the order of their arrays; the last two may be missing."""

_OPTIONAL_TREES = ("position", "checkpoint")
_MOST_LEVELS = 60
_ADDED_COSTS = {"planning_gradients", "planning_seconds"}
"""Fields that files of version 0.1.0 do not have."""
_COUNTS = {"num_chains": 1, "num_steps": 0, "planned_steps": 0, "discard": 0, "thin": 1, "num_data": 1, "dimension": 0}
_VECTORS = ("virial", "virial_slope")
"""Stats with one number per parameter."""
_RESUMED = ("num_chains", "num_steps", "discard", "thin", "rng")
_TOGETHER = {
    "kinetic_temperature": ("noise_ratio",),
    "configurational_temperature": ("noise_ratio",),
}


def make(
    settings: dict[str, Any],
    cost: RunCost,
    status: list[str],
    fingerprint: dict[str, Any],
    trees: dict[str, StoredTree | None],
) -> dict[str, Any]:
    """The header of a run, given its trees, taken apart."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "settings": as_json(settings),
        "cost": as_json(dataclasses.asdict(cost)),
        "status": status,
        "fingerprint": as_json(fingerprint),
        "trees": {name: None if tree is None else tree.form._asdict() for name, tree in trees.items()},
        "arrays": [promise(leaf) for tree in trees.values() if tree is not None for leaf in tree.leaves],
    }


def as_json(value: Any, depth: int = _MOST_LEVELS) -> Any:
    """Settings as JSON; values that JSON cannot represent are described in words."""
    if isinstance(value, dict) and depth:
        return {str(key): as_json(entry, depth - 1) for key, entry in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [as_json(entry, depth - 1) for entry in value]
    return describe(value)


def check(header: Any, path: Any) -> None:
    """Raise FileFormatError for a file of another version, ValueError or another exception for a damaged header."""
    if header["format"] != FORMAT or type(header["version"]) is not int or not 0 < header["version"] < 1000:
        raise ValueError("not a run")
    if header["version"] > VERSION:
        raise FileFormatError(
            f"{path} was written by a newer ewsg (format {header['version']}): update ewsg to read it"
        )
    if header["version"] < VERSION:
        raise FileFormatError(
            f"{path} was written by a development version of ewsg (format {header['version']}), whose files are no "
            "longer read: sample again"
        )
    check_fields(header)


def check_fields(header: dict[str, Any]) -> None:
    """Raise ValueError, or another exception, unless everything that a run needs is there and fits together."""
    check_promises(header["arrays"])
    num_chains = _check_status(header["status"])
    _check_settings(header["settings"])
    _check_cost(header["cost"])
    _check_fingerprint(header["fingerprint"])
    _check_trees(header["trees"], header["arrays"], num_chains)


def can_go_on(header: dict[str, Any]) -> bool:
    """Whether the file holds everything that `resume` needs."""
    settings, trees = header["settings"], header["trees"]
    return (
        all(name in settings for name in _RESUMED)
        and all(trees[name] is not None for name in _OPTIONAL_TREES)
        and {"num_data", "data", "values"} <= set(header["fingerprint"])
        and settings["num_chains"] == len(header["status"])
    )


def split(trees: dict[str, Any], arrays: Sequence[Any]) -> dict[str, Any]:
    """A `StoredTree` (or None) for each tree of a checked header; the arrays of the trees follow one another."""
    stored, first = {}, 0
    for name in TREES:
        if trees[name] is None:
            stored[name] = None
            continue
        form = Form(**trees[name])
        stored[name] = StoredTree(form, list(arrays[first : first + len(form.paths)]))
        first += len(form.paths)
    return stored


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"its {what} is not valid")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 2**63 and math.isfinite(value)


def _check_status(status: Any) -> int:
    known = state.Status.__members__
    _require(isinstance(status, list) and len(status) > 0 and all(name in known for name in status), "status")
    return len(status)


def _check_settings(settings: Any) -> None:
    _require(isinstance(settings, dict), "settings")
    for role in ("estimator", "integrator", "collect", "coordinates"):
        part = settings.get(role) if role == "coordinates" else settings[role]
        absent = role in ("integrator", "coordinates") and part is None
        _require(absent or (isinstance(part, dict) and isinstance(part["component"], str)), role)
    _require(_is_number(settings["temperature"]) and settings["temperature"] > 0, "temperature")
    for name, least in _COUNTS.items():
        value = settings.get(name, least)
        _require(type(value) is int and least <= value < 2**63, name)
    _require(type(settings.get("interrupted", False)) is bool, "interruption")
    _require(not settings.get("interrupted") or "num_steps" in settings, "number of steps")
    if settings.get("verdict") is not None:
        verdict_of(settings["verdict"])
    _check_support(settings.get("support"))
    for name in ("likely_cause", "rng"):
        _require(isinstance(settings.get(name, ""), str), name)


def _check_support(support: Any) -> None:
    """Names of what is constrained, with words, and of what is derived; None without constraints."""
    if support is None:
        return
    _require(isinstance(support, dict) and set(support) == {"constrained", "derived"}, "support")
    _require(isinstance(support["constrained"], dict) and isinstance(support["derived"], list), "support")
    words = [*support["constrained"].values(), *support["derived"]]
    _require(all(isinstance(word, str) for word in words), "support")


def _check_cost(cost: Any) -> None:
    fields = {field.name: field.type for field in dataclasses.fields(RunCost)}
    _require(isinstance(cost, dict) and set(fields) - _ADDED_COSTS <= set(cost) <= set(fields), "cost")
    for name, kind in ((name, kind) for name, kind in fields.items() if name in cost):
        _require(_is_number(cost[name]) and cost[name] >= 0, name)
        _require(kind is not int or type(cost[name]) is int, name)


def _check_fingerprint(fingerprint: Any) -> None:
    _require(isinstance(fingerprint, dict), "fingerprint")
    _require(type(fingerprint.get("num_data", 1)) is int, "fingerprint")
    _require(isinstance(fingerprint.get("data", ""), str), "fingerprint")
    values = fingerprint.get("values", [])
    _require(isinstance(values, list) and all(type(value) is float for value in values), "fingerprint")


def _check_trees(trees: Any, arrays: list[dict[str, Any]], num_chains: int) -> None:
    _require(isinstance(trees, dict) and set(trees) == set(TREES), "trees")
    for name, form in trees.items():
        if form is None:
            _require(name in _OPTIONAL_TREES, name)
            continue
        _require(set(form) == {"structure", "paths"} and isinstance(form["paths"], list), name)
        _require(all(isinstance(path, str) for path in form["paths"]), name)
        _require(count_leaves(form["structure"]) == len(form["paths"]), name)
    _require(sum(len(form["paths"]) for form in trees.values() if form is not None) == len(arrays), "arrays")
    promises = {name: tree.leaves for name, tree in split(trees, arrays).items() if tree is not None}
    for name in ("draws", "stats"):
        axes = {tuple(entry["shape"][:2]) for entry in promises[name]}
        _require(len(axes) <= 1 and all(len(pair) == 2 and pair[0] == num_chains for pair in axes), name)
    _require(all(entry["shape"][:1] == [num_chains] for entry in promises["collected"]), "collected results")
    _check_stats(trees["stats"]["structure"], promises["stats"])


def _check_stats(structure: Any, promises: list[dict[str, Any]]) -> None:
    (kind,) = structure
    names = [name for name, _ in structure["dict"]]
    _require(kind == "dict" and all(isinstance(name, str) for name in names), "stats")
    _require(all(child == "leaf" for _, child in structure["dict"]), "stats")
    for name, entry in zip(names, promises, strict=True):
        _require(len(entry["shape"]) == (3 if name in _VECTORS else 2), name)
    _require(all(DTYPES[entry["dtype"]].kind not in "c" for entry in promises), "stats")
    _require(are_whole(names), "stats")
    for name in names:
        _require(all(other in names for other in _TOGETHER.get(name, ())), "stats")
