"""Examples of every component that the package defines, built from the types of their settings and kept by nobody.

A class enters by existing; so does a new choice of a setting, a new flag, and a new optional setting. What cannot be
built from its types alone fails by name: extend `_example`.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping

import ewsg
from ewsg._core.component import registered
from ewsg.errors import InputError, UnknownOption
from ewsg.estimators import AbstractEstimator
from ewsg.integrators import AbstractIntegrator
from ewsg.kernels import AbstractBound, GaussianTaylorBound
from ewsg.sampler import AbstractKernel

for _room in (ewsg.estimators, ewsg.integrators, ewsg.kernels):  # also what no `__init__` imports yet
    for _module in pkgutil.walk_packages(_room.__path__, f"{_room.__name__}."):
        importlib.import_module(_module.name)


def estimators(start: Any) -> dict[str, AbstractEstimator]:
    """Every estimator and its variants, by name; what `prepare` fills in is left to it."""
    filled = ("slope", "table", "curvature")
    return {name: part for cls in registered(AbstractEstimator) for name, part in variants(cls, start, filled)}


def wrapped(start: Any) -> dict[str, AbstractEstimator]:
    """Every estimator that takes another, around the plainest example of every class that it does not refuse."""
    found, plain = {}, {name: part for name, part in estimators(start).items() if "(" not in name}
    for name, part in plain.items():
        for setting in inner_settings(part):
            for inner, other in plain.items():
                settings = {field.name: getattr(part, field.name) for field in dataclasses.fields(part)}
                settings[setting] = other
                if type(other) is not type(getattr(part, setting)) and _builds(type(part), settings):
                    found[f"{name}({inner})"] = type(part)(**settings)
    return found


def inner_settings(part: AbstractEstimator) -> list[str]:
    """The settings of an estimator that are estimators."""
    return [field.name for field in dataclasses.fields(part) if _takes(field, AbstractEstimator)]


def integrators() -> dict[str, AbstractIntegrator]:
    """Every integrator and its variants, but for the units and the start, which are not what a kick is about."""
    left_out = ("units", "momentum", "num_data")
    return {name: part for cls in registered(AbstractIntegrator) for name, part in variants(cls, None, left_out)}


def kernels(start: Any) -> dict[str, AbstractKernel]:
    """Every whole method and its variants, by name."""
    left_out = ("warmup_gradients",)
    return {name: part for cls in registered(AbstractKernel) for name, part in variants(cls, start, left_out)}


def variants(cls: type, start: Any, left_out: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The plainest example of a class, under its name, and those with one setting changed, or two if it takes two."""
    required, optional = {}, []
    for field in dataclasses.fields(cls):
        if field.default is dataclasses.MISSING:
            required[field.name] = _example(cls, field, start)
        elif field.name not in left_out:
            optional.append(field)
    changes = [{field.name: value} for field in optional for value in _alternatives(cls, required, field, start)]
    base = next((change for change in ({}, *changes) if _builds(cls, required | change)), None)
    assert base is not None, f"tests/helpers/components.py cannot build {cls.__name__} from the types of its settings"
    yield cls.__name__, cls(**required, **base)
    for change in changes:
        for more in ({}, *changes):
            settings = more | base | change
            if settings != base and _builds(cls, required | settings):
                named = ", ".join(f"{name}={settings[name]!r}" for name in sorted(settings.keys() - base.keys()))
                yield f"{cls.__name__}({named})", cls(**required, **settings)
                break


def _takes(field: dataclasses.Field, role: type) -> bool:
    """Whether a setting is a component of this role."""
    kinds = typing.get_args(field.type) or (field.type,)
    return any(inspect.isclass(kind) and issubclass(kind, role) for kind in kinds)


def _builds(cls: type, settings: dict[str, Any]) -> bool:
    try:
        cls(**settings)
    except (InputError, jaxtyping.TypeCheckError):  # the second where annotations are checked
        return False
    return True


def _alternatives(cls: type, required: dict[str, Any], field: dataclasses.Field, start: Any) -> list[Any]:
    """Other values of a setting than its default: the other names, the other flag, a value in place of None."""
    kinds = typing.get_args(field.type) or (field.type,)
    if str in kinds:
        return [name for name in _choices(cls, required, field.name) if name != field.default]
    if bool in kinds:
        return [not field.default]
    if field.name == "order":  # of a control variate
        return [2]
    if field.default is None and (value := _example(cls, field, start, missing=None)) is not None:
        return [value]
    return []


def _choices(cls: type, required: dict[str, Any], name: str) -> list[str]:
    """The names that a setting knows, from the error for one that it does not."""
    try:
        cls(**required, **{name: "?"})
    except UnknownOption as error:
        return re.findall(r"\w+", str(error).split("known:")[1])
    raise AssertionError(f"{cls.__name__}({name}='?') was not refused")


def _example(cls: type, field: dataclasses.Field, start: Any, missing: Any = AssertionError) -> Any:
    kinds = typing.get_args(field.type) or (field.type,)
    if _takes(field, AbstractEstimator):
        return ewsg.Uniform(2)
    if _takes(field, AbstractBound):
        return GaussianTaylorBound()
    if int in kinds:
        return 2
    if float in kinds:
        return 0.05
    if "PyTree" in str(field.type):
        return start if field.name != "points" else jax.tree.map(lambda leaf: jnp.stack([leaf, leaf + 0.5]), start)
    if missing is AssertionError:
        raise AssertionError(f"tests/helpers/components.py has no example of {cls.__name__}.{field.name}: {field.type}")
    return missing
