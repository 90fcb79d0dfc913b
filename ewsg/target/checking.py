"""Checks of what users give: starting points and densities, with one sentence per mistake."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import modules
from .._core import pytree
from .._core.types import Position
from ..errors import InputError, first_line

_LISTED_LEAVES = 3


def check_start(init: Any) -> None:
    """Raise InputError for an init that is neither parameters nor a function, before it is mapped or called."""
    if modules.is_module_with_variables(init):
        raise InputError(
            f"init is a module ({type(init).__name__}): start from its parameters, ewsg.modules.parameters(module)"
        )
    pytree.named_leaves("init", init)


def check_parameters(position: Position) -> None:
    """Raise InputError unless the position is a non-empty pytree of finite floating-point arrays."""
    check_start(position)
    named = pytree.named_leaves("init", position)
    if not named:
        raise InputError("init has no parameters: give a pytree of floating-point arrays")
    for name, leaf in named.items():
        if callable(leaf):
            raise InputError(
                f"{name} is a function: give arrays only; those of a module are ewsg.modules.parameters(module) or "
                "eqx.filter(module, eqx.is_inexact_array)"
            )
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.floating):
            kind = getattr(leaf, "dtype", type(leaf).__name__)
            raise InputError(f"{name} has dtype {kind}: parameters must be floating-point (write 0.0, not 0)")
        if leaf.size == 0:
            raise InputError(f"{name} has no entries: give every parameter at least one")
        if not np.all(np.isfinite(np.asarray(leaf))):
            raise InputError(f"{name} has NaN or infinite entries: start every parameter at a finite value")


def _shapes(error: Exception, position: Position) -> str:
    """A note with the shapes of the parameters, in case they have an axis of chains or a wrong structure."""
    if isinstance(error, jax.errors.JAXTypeError):  # the function cannot be traced, whatever the shapes
        return ""
    named = pytree.named_leaves("params", position)
    listed = ", ".join(f"{name} {leaf.shape}" for name, leaf in list(named.items())[:_LISTED_LEAVES])
    more = ", ..." if len(named) > _LISTED_LEAVES else ""
    return f" (shapes at the start: {listed}{more}; a start has no axis of chains)"


def check_scalar(name: str, signature: str, summed: str, function: Callable, *args) -> None:
    """Raise InputError unless a function of these arguments returns one real scalar."""
    try:
        shape = jax.eval_shape(function, *args)
    except Exception as error:
        raise InputError(f"{name}{signature} failed: {first_line(error)}{_shapes(error, args[0])}") from error
    leaves = jax.tree.leaves(shape)
    if len(leaves) != 1 or not hasattr(leaves[0], "shape"):
        raise InputError(f"{name}{signature} must return one real scalar, not {shape}")
    if leaves[0].shape != ():
        raise InputError(
            f"{name}{signature} must return one real scalar, not shape {leaves[0].shape}: sum over the entries of "
            f"{summed}, or, if init has an axis of chains, give one start (init=lambda key: ... makes one per chain)"
        )
    if not jnp.issubdtype(leaves[0].dtype, jnp.floating):
        raise InputError(f"{name}{signature} must return one real scalar, not {leaves[0].dtype}: make it a float")
