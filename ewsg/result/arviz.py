"""Export to ArviZ, old (0.x) and new (1.x)."""

import dataclasses
import functools
import importlib.metadata
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core import pytree
from .._core.optional import require
from ..errors import InputError, unknown
from ..prediction.likelihoods import checked_rows, log_likelihood as _log_likelihood
from ..target.fingerprint import check_same_target
from ..target.target import Target
from .file.header import as_json

if TYPE_CHECKING:
    from .run import Run

DATUM = "datum"
"""The dimension of the data."""


@functools.cache
def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require("arviz", extra="arviz")


def _is_old() -> bool:
    return int(_arviz().__version__.split(".")[0]) < 1


def to_arviz(
    run: "Run",
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    target: Target | None = None,
    log_likelihood: bool = False,
    rows: Any = None,
) -> Any:
    """The groups `posterior` and `sample_stats`; with a target its data too, and on request their log-likelihoods."""
    posterior = named("theta", run.good_draws())
    _check_dims(posterior, dims or {}, coords or {})
    coords, axes = dict(coords or {}), {name: list(names) for name, names in (dims or {}).items()}
    groups = {"posterior": posterior, "sample_stats": {name: values[run.ok] for name, values in run.stats.items()}}
    if target is None and (log_likelihood or rows is not None):
        raise InputError("to_arviz: the log-likelihoods and rows are those of a target: give target=")
    if target is not None:
        _check_target(run, target)
        numbers = np.arange(target.num_data, dtype=np.int32) if rows is None else checked_rows(target, rows)
        constant, observed = _data(target, None if rows is None else numbers)
        data = constant | observed
        _check_names(posterior, data, coords, axes)
        groups |= {"observed_data": observed} | ({"constant_data": constant} if constant else {})
        if log_likelihood:
            _check_temperature(run)
            name = next(iter(observed)) if len(observed) == 1 else "data"
            groups["log_likelihood"] = {name: _log_likelihood(target, run, numbers)}
        coords[DATUM] = numbers
        axes |= {"data": [DATUM]} | {name: _dims(name, array) for name, array in data.items()}
    return _assembled(groups, coords, axes, attributes(run))


def _assembled(groups: dict[str, Any], coords: dict[str, Any], dims: dict[str, Any], attrs: dict[str, Any]) -> Any:
    """ArviZ's object; the log-likelihood of a datum has no axes but that of the data."""
    if _is_old():
        likelihood = groups.pop("log_likelihood", None)
        data = _arviz().from_dict(**groups, coords=coords, dims=dims, attrs=attrs, posterior_attrs=attrs)
        if likelihood is not None:
            only = {name: [DATUM] for name in likelihood}
            data.extend(_arviz().from_dict(log_likelihood=likelihood, coords=coords, dims=only))
        return data
    for name in (name for group in groups.values() for name in group if "/" in name):
        raise InputError(f"to_arviz: ArviZ {_arviz().__version__} takes no names with a slash: rename {name!r}")
    return _arviz().from_dict(groups, coords=coords, dims=dims, attrs={"/": attrs, "posterior": attrs})


def attributes(run: "Run") -> dict[str, Any]:
    """What a file of ArviZ can hold about a run: its settings, cost and verdict as JSON."""
    verdict = run.settings.get("verdict")
    return {
        "inference_library": "ewsg",
        "inference_library_version": importlib.metadata.version("ewsg"),
        "sampling_time": float(run.cost.seconds),
        "temperature": float(run.temperature),
        "settings": json.dumps(as_json(run.settings)),
        "cost": json.dumps(dataclasses.asdict(run.cost)),
    } | ({} if verdict is None else {"verdict": json.dumps(as_json(verdict))})


def named(alone: str, tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a pytree by name: their keys joined by dots, or `alone` if the tree is one array."""
    found = jax.tree_util.tree_leaves_with_path(tree)
    return {pytree.leaf_name(path, alone): np.asarray(leaf) for path, leaf in found}


def _data(target: Target, rows: np.ndarray | None) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The data at these rows (None: all), without a copy if possible: inputs, and outcomes.

    Of a pair, the first part is the inputs ("x") and the second the outcomes ("y"); in a dict, the inputs are
    "features"; any other data are outcomes, one array alone being called "data".
    """
    arrays = target.data.arrays
    if rows is not None:
        arrays = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], arrays)
    if isinstance(arrays, tuple | list) and len(arrays) == 2 and all(map(jax.tree.leaves, arrays)):
        return named("x", arrays[0]), named("y", arrays[1])
    found = named("data", arrays)
    if len(found) == 1:
        return {}, {"data": next(iter(found.values()))}
    return {name: found.pop(name) for name in ("features",) if name in found}, found


def _dims(name: str, array: np.ndarray) -> list[str]:
    return [DATUM, *(f"{name}_dim_{axis}" for axis in range(array.ndim - 1))]


def _check_dims(posterior: dict[str, np.ndarray], dims: Mapping[str, Sequence[str]], coords: Mapping[str, Any]) -> None:
    """Raise InputError unless `dims` names the axes of parameters, and `coords` has as many entries as the axes.

    ArviZ itself ignores a name that is not a parameter.
    """
    for name, axes in dims.items():
        if name not in posterior:
            raise unknown("parameter in dims", name, posterior)
        shape = posterior[name].shape[2:]
        if isinstance(axes, str) or len(axes) != len(shape):
            raise InputError(f"dims of {name} must be a list of {len(shape)} names, one per axis of shape {shape}")
        for axis, size in zip(axes, shape, strict=True):
            if axis in coords and len(coords[axis]) != size:
                raise InputError(f"coords of {axis} has {len(coords[axis])} entries, and {name} has {size} along it")
    for axis in coords.keys() - {axis for axes in dims.values() for axis in axes}:
        raise InputError(f"coords has {axis!r}, which is not an axis of any parameter: name it in dims")


def _check_target(run: "Run", target: Target) -> None:
    try:
        check_same_target(run.fingerprint, target)
    except (InputError, KeyError) as error:
        raise InputError(
            "to_arviz: the run was not drawn from this target, whose data or densities are different: give the one "
            "that was sampled (held-out data: run.log_likelihood)"
        ) from error


def _check_names(
    posterior: dict[str, np.ndarray], data: dict[str, np.ndarray], coords: dict[str, Any], dims: dict[str, Any]
) -> None:
    """Raise InputError if parameters and data share a name, or their axes do: ArviZ has one list of names for all."""
    if both := posterior.keys() & data.keys():
        raise InputError(f"to_arviz: {both.pop()!r} is the name of a parameter and of data: rename one")
    if DATUM in coords or any(DATUM in axes for axes in dims.values()):
        raise InputError(f"to_arviz: {DATUM!r} is the dimension of the data: call yours something else")


def _check_temperature(run: "Run") -> None:
    """Raise InputError for a tempered posterior: leave-one-out weights 1/p(y_i | θ) are wrong for it."""
    if run.temperature != 1:
        raise InputError(
            f"to_arviz: ArviZ would use log-likelihoods as if the temperature were 1, and it is {run.temperature:g}: "
            "take them from run.log_likelihood(target)"
        )
