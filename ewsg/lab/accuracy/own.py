"""Your own method in `ewsg bench accuracy`: `--method module:object`."""

import dataclasses
import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import InputError, first_line, unknown
from ...estimators import AbstractEstimator
from ...integrators import AbstractIntegrator
from ...problems import Problem
from ...recipes import Method
from ...sampler import AbstractKernel
from .methods import METHODS, PLAN, Builder

_FORMS = (
    "an (estimator, integrator) pair, a kernel, a recipe of batch_size, step_size and friction, "
    "or a function of (problem, start, step_size) that returns one of these"
)


def find(name: str) -> Builder:
    """The builder of a method: by its name in `METHODS`, or your own as `module:object`.

    The module is looked for in the current folder too. A pair keeps its batch size and friction, but its step size is
    the benchmark's, as for every other method; a recipe is given the data per step and the friction of each problem;
    a kernel is taken as it is.
    """
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise unknown("method", name, [*METHODS, PLAN, "or your own as module:object"])
    found = _load(name)
    if not callable(found) or isinstance(found, AbstractKernel):
        fixed = _as_method(name, found)
        return lambda problem, start, h: _with_step(fixed, h)
    return _builder(name, found)


def source(name: str) -> str:
    """A hash of the file of the user's own method, which identifies its results; empty for the others."""
    if name in METHODS or name == PLAN:
        return ""
    file = getattr(sys.modules[name.split(":")[0]], "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16] if file else ""


def _load(name: str) -> Any:
    module, _, path = name.partition(":")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        found = importlib.import_module(module)
    except Exception as error:  # the module is the user's, and can fail in any way
        message = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"--method {name}: the module {module!r} cannot be imported ({message})") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise unknown(f"object of {module}", part, [other for other in dir(found) if other[0] != "_"])
        found = getattr(found, part)
    return found


def _builder(name: str, function: Callable[..., Any]) -> Builder:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise _wrong(name, function) from None
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in (2, 4)]
    known = {"batch_size", "step_size", "friction"}
    if needed and known.issuperset(needed):

        def recipe(problem: Problem, start: Any, h: float) -> Any:
            given = {"batch_size": problem.data_per_step, "step_size": h, "friction": problem.friction}
            return _as_method(name, function(**{key: given[key] for key in needed}))

        return recipe
    if len(needed) != 3:
        raise _wrong(name, function)
    return lambda problem, start, h: _as_method(name, function(problem, start, h))


def _as_method(name: str, found: Any) -> Any:
    match found:
        case AbstractKernel() | Method():
            return found
        case (AbstractEstimator() as estimator, AbstractIntegrator() as integrator):
            return Method(estimator, integrator)
    raise _wrong(name, found)


def _with_step(method: Any, h: float) -> Any:
    """The same pair with the benchmark's step size; a kernel stays as it is."""
    if isinstance(method, AbstractKernel):
        return method
    return method._replace(integrator=dataclasses.replace(method.integrator, step_size=h))


def _wrong(name: str, found: Any) -> InputError:
    kind = "a function of other arguments" if inspect.isroutine(found) else f"a {type(found).__name__}"
    return InputError(f"--method {name}: give {_FORMS}, not {kind}")
