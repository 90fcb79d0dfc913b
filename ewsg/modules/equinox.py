"""Modules of Equinox: all their floating-point arrays are parameters; they are called with one input."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._core.types import Position
from .refusals import has_dropout, has_statistics


def owns(module: Any) -> bool:
    """Whether this is a module of Equinox."""
    return isinstance(module, eqx.Module)


def named_arrays(module: Any) -> list[tuple[str, Array]]:
    """The parameters of a module, by name."""
    trained, _ = eqx.partition(module, eqx.is_inexact_array)
    leaves = jax.tree_util.tree_leaves_with_path(trained)
    return [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]


def restoring(module: Any) -> Callable[[dict[str, Any]], Any]:
    """params -> module."""
    trained, rest = eqx.partition(module, eqx.is_inexact_array)
    structure = jax.tree.structure(trained)
    order = [name for name, _ in named_arrays(module)]

    def combined(params: dict[str, Any]) -> Any:
        return eqx.combine(structure.unflatten([jnp.asarray(params[name]) for name in order]), rest)

    return combined


def function(module: Any) -> Callable[[Position, Any], Any]:
    """(params, input) -> output."""
    restored = restoring(module)
    return lambda params, x: restored(params)(x)


def check(module: Any) -> None:
    """Raise InputError for batch statistics and dropout."""
    special = (eqx.nn.BatchNorm, eqx.nn.StateIndex, eqx.nn.Dropout)
    for part in jax.tree.leaves(module, is_leaf=lambda node: isinstance(node, special)):
        if isinstance(part, eqx.nn.BatchNorm | eqx.nn.StateIndex):
            raise has_statistics(type(part).__name__)
        if isinstance(part, eqx.nn.Dropout) and part.p > 0 and not part.inference:
            raise has_dropout("eqx.nn.inference_mode(module)")
