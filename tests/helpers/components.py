"""Examples of every component that the package defines, built from the types of their settings and kept by nobody.

A class enters by existing; so does a new choice of a setting, a new flag, and a new optional setting. What cannot be
built from its types alone fails by name: extend `_example`.
"""

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator
from typing import Any

import ewsg
from ewsg._core.component import registered
from ewsg.errors import InputError, UnknownOption
from ewsg.estimators import AbstractEstimator
from ewsg.integrators import AbstractIntegrator


def estimators(start: Any) -> dict[str, AbstractEstimator]:
    """Every estimator and its variants, by name; what `prepare` fills in is left to it."""
    return {name: part for cls in registered(AbstractEstimator) for name, part in variants(cls, start, ("slope",))}


def integrators() -> dict[str, AbstractIntegrator]:
    """Every integrator and its variants, but for the units and the start, which are not what a kick is about."""
    left_out = ("units", "momentum", "num_data")
    return {name: part for cls in registered(AbstractIntegrator) for name, part in variants(cls, None, left_out)}


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


def _builds(cls: type, settings: dict[str, Any]) -> bool:
    try:
        cls(**settings)
    except InputError:
        return False
    return True


def _alternatives(cls: type, required: dict[str, Any], field: dataclasses.Field, start: Any) -> list[Any]:
    """Other values of a setting than its default: the other names, the other flag, a value in place of None."""
    kinds = typing.get_args(field.type) or (field.type,)
    if str in kinds:
        return [name for name in _choices(cls, required, field.name) if name != field.default]
    if bool in kinds:
        return [not field.default]
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
    if any(inspect.isclass(kind) and issubclass(kind, AbstractEstimator) for kind in kinds):
        return ewsg.Uniform(2)
    if int in kinds:
        return 2
    if float in kinds:
        return 0.05
    if "PyTree" in str(field.type):
        return start
    if missing is AssertionError:
        raise AssertionError(f"tests/helpers/components.py has no example of {cls.__name__}.{field.name}: {field.type}")
    return missing
