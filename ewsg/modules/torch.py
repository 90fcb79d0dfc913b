"""Modules of PyTorch, translated to JAX by torchax; they are called with a batch of one.

Parameters are those that require gradients; frozen ones and buffers stay as they are.
"""

import contextlib
import copy
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._core.optional import require
from .._core.types import Position
from ..errors import InputError
from .refusals import draws_numbers, has_dropout, has_statistics


def owns(module: Any) -> bool:
    """Whether this is a module of PyTorch, which the user has then imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(module, torch.nn.Module)


def named_arrays(module: Any) -> list[tuple[str, Array]]:
    """The parameters of a module, by name; one array of tied weights."""
    return list(_split(module)[0].items())


def restoring(module: Any) -> Callable[[dict[str, Any]], Any]:
    """params -> a copy of the module."""
    torch = sys.modules["torch"]

    def filled(params: dict[str, Any]) -> Any:
        found = copy.deepcopy(module)
        places = dict(found.named_parameters(remove_duplicate=False))
        with torch.no_grad():
            for name, value in params.items():
                places[name].copy_(torch.from_numpy(jax.device_get(value).copy()))
        return found

    return filled


def function(module: Any) -> Callable[[Position, Any], Any]:
    """(params, input) -> output: the batch axis that layers expect is added, and removed again."""
    _, constants, translated = _split(copy.deepcopy(module))
    environment = _torchax().default_env()

    def call(params: Position, x: Any) -> Any:
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], x)
        key = environment.prng_key
        with _permissive(), environment.override_property(prng=key):
            output = translated(constants | params, (batch,))
            if environment.prng_key is not key:
                raise draws_numbers("torch.rand or the like", "remove them")
        return jax.tree.map(lambda leaf: leaf[0], output)

    return call


def check(module: Any) -> None:
    """Raise InputError for batch statistics and dropout."""
    layers = sys.modules["torch"].nn.modules
    for part in module.modules():
        if isinstance(part, layers.batchnorm._BatchNorm) or getattr(part, "track_running_stats", False):
            raise has_statistics(type(part).__name__)
        if isinstance(part, layers.dropout._DropoutNd) and part.p > 0 and part.training:
            raise has_dropout("module.eval()")


def _split(module: Any) -> tuple[dict[str, Array], dict[str, Array], Callable]:
    """Parameters, everything else that the module holds, and the function of both together and of its inputs."""
    states, translated = _torchax().extract_jax(module)
    sampled = {
        name
        for name, value in module.named_parameters(remove_duplicate=False)
        if value.requires_grad and value.is_floating_point()
    }
    params = {name: value for name, value in states.items() if name in sampled}
    return params, {name: value for name, value in states.items() if name not in sampled}, translated


def _torchax() -> Any:
    """The package; InputError if its version does not work with that of PyTorch."""
    try:
        return require("torchax", extra="torch")
    except AttributeError as error:  # 0.0.13 names operators that PyTorch 2.13 does not have
        version = sys.modules["torch"].__version__
        raise InputError(
            f"torchax cannot be imported with PyTorch {version} ({error}): pip install -U 'torchax>=0.0.14.dev0'"
        ) from error


@contextlib.contextmanager
def _permissive():
    """JAX as torchax expects it: types and ranks are promoted, whatever the user has asked for."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
