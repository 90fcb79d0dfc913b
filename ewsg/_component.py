"""The base of every estimator, integrator and schedule: a frozen pytree whose settings are checked and recorded.

Continuous settings are leaves, so that a sweep is a `vmap` and never a recompilation; counts and names are static.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.core
import numpy as np

from .errors import InputError, unknown

_DESCRIBED_ENTRIES = 10_000
_REGISTRY: dict[str, type["Component"]] = {}


class Component(eqx.Module):
    """A named part of a sampler, built from keyword settings."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _REGISTRY[cls.__name__] = cls

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


def describe(value: Any) -> Any:
    """A component, or one of its settings, as plain JSON."""
    if isinstance(value, Component):
        settings = {field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"component": type(value).__name__, **settings}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if callable(value):
        return {"$opaque": getattr(value, "__qualname__", type(value).__name__)}
    if isinstance(value, dict):
        return {"$dict": {name: describe(entry) for name, entry in value.items()}}
    if isinstance(value, list):
        return {"$list": [describe(entry) for entry in value]}
    if isinstance(value, tuple):
        return [describe(entry) for entry in value]
    array = np.asarray(value)
    if array.dtype == object or array.size > _DESCRIBED_ENTRIES:
        return {"$opaque": f"{type(value).__name__} of {array.size:,} entries" if array.ndim else type(value).__name__}
    return array.item() if array.ndim == 0 else {"$array": array.tolist(), "dtype": str(array.dtype)}


def rebuild(config: Any, role: str) -> Any:
    """The component that `describe` wrote down; `role` (estimator, integrator) names it in errors."""
    if isinstance(config, list):
        return tuple(rebuild(entry, role) for entry in config)
    if not isinstance(config, dict):
        return config
    if "$array" in config:
        return np.asarray(config["$array"], config["dtype"])
    if "$dict" in config:
        return {name: rebuild(value, role) for name, value in config["$dict"].items()}
    if "$list" in config:
        return [rebuild(value, role) for value in config["$list"]]
    if "$opaque" in config:
        raise InputError(
            f"the saved {role} has a setting ({config['$opaque']}) that the file does not hold, a Python object or a "
            f"large array: pass {role}= again"
        )
    if config["component"] not in _REGISTRY:
        raise InputError(f"the saved {role} {config['component']!r} is not defined here: pass {role}= again")
    settings = {name: rebuild(value, role) for name, value in config.items() if name != "component"}
    return _REGISTRY[config["component"]](**settings)


def check_positive(owner: str, name: str, value: Any, *, zero: bool = False) -> None:
    """Refuse a real setting that is not finite and positive (or zero, where allowed); traced values pass."""
    if isinstance(value, jax.core.Tracer):
        return
    if isinstance(value, bool | str) or not np.issubdtype(np.asarray(value).dtype, np.number):
        raise InputError(f"{owner}: {name} must be a number, not {value!r}")
    array = np.asarray(value)
    if not np.all(np.isfinite(array)) or np.any(array < 0) or (not zero and np.any(array == 0)):
        raise InputError(f"{owner}: {name} must be {'zero or ' if zero else ''}positive and finite, not {value!r}")


def check_count(owner: str, name: str, value: Any, minimum: int) -> None:
    """Refuse a count that is not an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise InputError(f"{owner}: {name} must be a whole number of at least {minimum}, not {value!r}")


def check_choice(owner: str, name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse a name that is not among the known ones, and suggest the nearest."""
    if value not in known:
        raise unknown(f"{name} of {owner}", value, known)
