"""Modules of Flax NNX: their `nnx.Param`s are parameters; they are called with a batch of one."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._core.types import Position
from .refusals import draws_numbers, has_dropout, has_statistics


def owns(module: Any) -> bool:
    """Whether this is a module of Flax NNX, which the user has then imported."""
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(module, nnx.Module)


def named_arrays(module: Any) -> list[tuple[str, Array]]:
    """The parameters of a module, by name."""
    return [(_name(path), variable[...]) for path, variable in _parts(module)[1].items()]


def restoring(module: Any) -> Callable[[dict[str, Any]], Any]:
    """params -> module."""
    from flax import nnx

    graph, variables, rest = _parts(module)
    kinds = {path: variable.replace(None) for path, variable in variables.items()}

    def merged(params: dict[str, Any]) -> Any:
        filled = [(path, kind.replace(jnp.asarray(params[_name(path)]))) for path, kind in kinds.items()]
        return nnx.merge(graph, nnx.from_flat_state(filled), rest)

    return merged


def function(module: Any) -> Callable[[Position, Any], Any]:
    """(params, input) -> output: the batch axis that layers expect is added, and removed again."""
    restored = restoring(module)

    def call(params: Position, x: Any) -> Any:
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], x)
        return jax.tree.map(lambda leaf: leaf[0], restored(params)(batch))

    return call


def check(module: Any) -> None:
    """Raise InputError for batch statistics, dropout and other random numbers."""
    from flax import nnx

    silent = []
    for path, part in nnx.iter_graph(module):
        if isinstance(part, nnx.Dropout):
            if part.rate > 0 and not part.deterministic:
                raise has_dropout("module.eval()")
            silent.append(path)
    for path, variable in nnx.to_flat_state(nnx.state(module)):
        if isinstance(variable, nnx.BatchStat):
            raise has_statistics("BatchStat")
        if isinstance(variable, nnx.RngState) and not any(path[: len(start)] == start for start in silent):
            raise draws_numbers(_name(path), "remove the stream")


def _name(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _parts(module: Any) -> tuple[Any, dict[tuple, Any], Any]:
    """The graph, the parameters by path, and all other variables."""
    from flax import nnx

    graph, trained, rest = nnx.split(module, nnx.Param, ...)
    return graph, dict(nnx.to_flat_state(trained)), rest
