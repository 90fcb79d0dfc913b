"""How a component reads its settings: numbers of NumPy and JAX become Python's own."""

import dataclasses
from typing import Any

import jax
import jax.core
import numpy as np

from ..errors import InputError, shown
from .component import Component


def plain(value: Any) -> Any:
    """Concrete numbers and flags of NumPy or JAX as Python's own; anything else as it is, for the checks to report.

    Static settings must be hashable, and a Python float leaves the precision to the parameters.
    """
    if isinstance(value, jax.core.Tracer) or not isinstance(value, np.generic | np.ndarray | jax.Array):
        return value
    return value.tolist() if value.dtype.kind in "biuf" else value


def check_flags(component: Component) -> None:
    """Raise InputError unless a flag is True or False."""
    for field in dataclasses.fields(component):
        value = getattr(component, field.name)
        if field.type is bool and not isinstance(value, bool):
            raise InputError(f"{type(component).__name__}: {field.name} must be True or False, not {shown(value)}")
