"""How a component reads its settings: one number each, as Python's own, whoever made it (NumPy, JAX)."""

import dataclasses
import typing
from typing import Any

import jax
import jax.core
import numpy as np

from ._component import Component
from .errors import InputError


def plain(value: Any) -> Any:
    """Concrete numbers and flags of NumPy or JAX as Python's own; anything else as it is, for the checks to name.

    Static settings must be hashable, and a continuous one of Python's leaves the precision to the parameters.
    """
    if isinstance(value, jax.core.Tracer) or not isinstance(value, np.generic | np.ndarray | jax.Array):
        return value
    return value.tolist() if value.dtype.kind in "biuf" else value


def check_settings(component: Component) -> None:
    """Refuse an array where a component takes one number, and anything but True or False where it takes a flag."""
    owner = type(component).__name__
    for field in dataclasses.fields(component):
        value, kinds = getattr(component, field.name), typing.get_args(field.type) or (field.type,)
        if float in kinds and np.ndim(value):
            alternative = "" if len(kinds) == 1 or type(None) in kinds else " or a function of the step counter"
            raise InputError(
                f"{owner}: {field.name} must be one number{alternative}, not an array of shape {np.shape(value)}: "
                "for several values run one chain each, or jax.vmap over them"
            )
        if kinds == (bool,) and not isinstance(value, bool):
            raise InputError(f"{owner}: {field.name} must be True or False, not {value!r}")
