"""The base of every estimator, integrator and schedule: a frozen pytree whose settings are checked and recorded.

Continuous settings are leaves, so that a sweep is a `vmap` and never a recompilation; counts and names are static.
"""

import base64
import dataclasses
import importlib
import inspect
import json
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax.core
import jax.numpy
import numpy as np

from ..errors import InputError, shown, unknown

_LISTED_ENTRIES = 1_000
_DESCRIBED_ENTRIES = 2**18  # a matrix of 512 × 512: coordinates of a plan
_DESCRIBED_DEPTH = 50
_DESCRIBED_BITS = 1_024
_PACKAGE = __name__.partition(".")[0]
_ROOMS = ("collect", "coordinates", "estimators", "integrators", "kernels", "prediction", "schedules")
_REGISTRY: dict[str, type["Component"]] = {}

Role = TypeVar("Role", bound="Component")


class Component(eqx.Module):
    """A named part of a sampler, built from keyword settings."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _REGISTRY[class_key(cls)] = cls

    def __new__(cls, *args, **kwargs):
        known = list(inspect.signature(cls.__init__).parameters)[1:]
        for name in kwargs:
            if name not in known:
                raise unknown(f"setting of {cls.__name__}", name, known)
        return super().__new__(cls)


class Function(eqx.Module):
    """A plain Python function as a pytree without leaves; it is compared by identity."""

    function: Callable = eqx.field(static=True)

    def __call__(self, *args):
        return self.function(*args)


def as_module(function: Callable) -> Callable:
    """`function` itself when it is a pytree already (its arrays are then traced), else wrapped."""
    return function if isinstance(function, eqx.Module) else Function(function)  # pyright: ignore[reportReturnType]


def class_key(cls: type) -> str:
    """The name of a component's class in a saved run: `module:qualname`, or `ewsg:qualname` for one of this package.

    Classes of this package may move from one module to another; no class of another package has the same key.
    """
    package = cls.__module__.partition(".")[0]
    return f"{_PACKAGE if package == _PACKAGE else cls.__module__}:{cls.__qualname__}"


def registered(role: type[Role]) -> list[type[Role]]:
    """All concrete components of this package that are a `role`, e.g. `AbstractEstimator`, sorted by name."""
    _import_rooms()
    own = (cls for key, cls in _REGISTRY.items() if key.startswith(f"{_PACKAGE}:") and issubclass(cls, role))
    return sorted((cls for cls in own if not inspect.isabstract(cls)), key=lambda cls: cls.__name__)


def describe(value: Any) -> Any:
    """A component, or one of its settings, as plain JSON; Python objects and large arrays by name only.

    Fields with the metadata "prepared" are described as None: whoever rebuilds the component prepares it again.
    """
    return _describe(value, _DESCRIBED_DEPTH)


def _describe(value: Any, depth: int) -> Any:
    if depth == 0:
        return {"$opaque": f"{type(value).__name__} nested more than {_DESCRIBED_DEPTH} deep"}
    if isinstance(value, Component):
        stored = {
            field.name: None if field.metadata.get("prepared") else getattr(value, field.name)
            for field in dataclasses.fields(value)
        }
        fields = {name: _describe(setting, depth - 1) for name, setting in stored.items()}
        return {"component": type(value).__name__, "$class": class_key(type(value)), **fields}
    if value is None or type(value) in (bool, float):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if type(value) is int and value.bit_length() <= _DESCRIBED_BITS:
        return value
    if type(value) is dict and all(type(key) in (bool, str, float, int) for key in value):
        return {"$dict": [[key, _describe(entry, depth - 1)] for key, entry in value.items()]}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        entries = [_describe(entry, depth - 1) for entry in value]
        return {"$list": entries} if type(value) is list else entries
    return _describe_array(value)


def _describe_array(value: Any) -> Any:
    """Numbers and arrays of up to 2¹⁸ numbers by value (base64 beyond 1,000), anything else by its name."""
    name = getattr(getattr(value, "function", value), "__qualname__", type(value).__name__)
    if callable(value) or isinstance(value, dict | list | tuple):
        return {"$opaque": str(name)}
    try:
        array = np.asarray(value)
        numeric = np.issubdtype(array.dtype, np.bool_) or array.dtype.kind in "iuf" or isinstance(array.item(0), float)
    except Exception:  # an object of any class may fail here in its own way
        return {"$opaque": str(name)}
    if not numeric or array.size > _DESCRIBED_ENTRIES:
        return {"$opaque": f"{name} of {array.size:,} entries" if array.ndim else str(name)}
    if array.ndim == 0:
        return array.item()
    if array.size <= _LISTED_ENTRIES:
        return {"$array": array.tolist(), "dtype": str(array.dtype)}
    packed = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"$packed": packed, "dtype": str(array.dtype), "shape": list(array.shape)}


def rebuild(config: Any, role: str) -> Any:
    """The component that `describe` recorded; `role` (estimator, integrator, collect) names it in errors."""
    _import_rooms()
    try:
        return _rebuild(config, role)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the saved {role} cannot be rebuilt from the file: pass {role}= again") from error


def _rebuild(config: Any, role: str) -> Any:
    if isinstance(config, list):
        return tuple(_rebuild(entry, role) for entry in config)
    if not isinstance(config, dict):
        return config
    if "$array" in config:
        return np.asarray(config["$array"], jax.numpy.dtype(config["dtype"]))
    if "$packed" in config:
        flat = np.frombuffer(base64.b64decode(config["$packed"]), jax.numpy.dtype(config["dtype"]))
        return flat.reshape(config["shape"]).copy()
    if "$dict" in config:
        return {name: _rebuild(value, role) for name, value in config["$dict"]}
    if "$list" in config:
        return [_rebuild(value, role) for value in config["$list"]]
    if "$opaque" in config:
        raise InputError(
            f"the saved {role} has a setting ({config['$opaque']}) that cannot be restored from the file (Python "
            f"objects and large arrays are not saved): pass {role}= again"
        )
    if config["$class"] not in _REGISTRY:
        raise InputError(f"the saved {role} {config['component']} is not defined here: pass {role}= again")
    settings = {name: _rebuild(value, role) for name, value in config.items() if name not in ("component", "$class")}
    return _REGISTRY[config["$class"]](**settings)


def check_same(saved: Any, given: Component | None, role: str) -> None:
    """Raise InputError for a component whose settings differ from the saved ones, as far as a file can hold them."""
    if given is not None:
        _check_same(saved, json.loads(json.dumps(describe(given))), role, role)


def _check_same(saved: Any, given: Any, role: str, name: str) -> None:
    if isinstance(saved, dict) and isinstance(given, dict) and ("$opaque" in saved or "$opaque" in given):
        return
    if isinstance(saved, dict) and "component" in saved and isinstance(given, dict):
        if saved["component"] == given.get("component") and saved.keys() == given.keys():
            for field in saved.keys() - {"component", "$class"}:
                _check_same(saved[field], given[field], role, field)
            return
        saved, given = saved["component"], given.get("component")
    if saved != given and not (saved != saved and given != given):
        given, saved = (shown(value.get("$opaque") if isinstance(value, dict) else value) for value in (given, saved))
        raise InputError(
            f"{role}= has {name} {given} and the saved run has {saved}, so it was made with another {role}: pass the "
            "same one, or start a new run from the last draws"
        )


def _import_rooms() -> None:
    """Imports every module of this package that defines components, which the package itself imports lazily."""
    for room in _ROOMS:
        importlib.import_module(f".{room}", _PACKAGE)


def check_positive(owner: str, name: str, value: Any, *, zero: bool = False, array: bool = False) -> None:
    """Raise InputError unless a real setting is finite and positive (or zero, where allowed), and one number.

    Of traced values only the shape is checked.
    """
    numbers = as_real(value)
    if numbers is None:
        raise InputError(f"{owner}: {name} must be a number, not {shown(value)}")
    if numbers.ndim and not array:
        raise InputError(
            f"{owner}: {name} must be one number, not an array of shape {numbers.shape}: for several values run one "
            "chain each, or jax.vmap over them"
        )
    if isinstance(numbers, jax.core.Tracer):
        return
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or (not zero and np.any(numbers == 0)):
        raise InputError(f"{owner}: {name} must be {'zero or ' if zero else ''}positive and finite, not {shown(value)}")


def as_real(value: Any) -> Any:
    """A traced value as it is, any other real numbers as an array, and None for anything else."""
    if isinstance(value, jax.core.Tracer):
        return value
    try:
        array = np.asarray(value)
    except Exception:  # objects of any class may fail here in their own way, as ragged lists do
        return None
    is_real = jax.numpy.issubdtype(array.dtype, np.integer) or jax.numpy.issubdtype(array.dtype, np.floating)
    return array if is_real else None


def check_count(owner: str, name: str, value: Any, minimum: int) -> None:
    """Raise InputError unless a count is an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InputError(f"{owner}: {name} must be a whole number of at least {minimum}, not {shown(value)}")


def check_choice(owner: str, name: str, value: Any, known: tuple[str, ...]) -> None:
    """Raise UnknownOption, with the nearest name as a suggestion, unless a name is known."""
    if not isinstance(value, str) or value not in known:
        raise unknown(f"{name} of {owner}", value, known)
