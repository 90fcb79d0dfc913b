"""The one door for modules of every library: their parameters, their function, and what is refused."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.types import Position
from ..errors import InputError, first_line
from . import equinox, flax, torch
from .losses import cross_entropy

_LIBRARIES = (flax, torch, equinox)
"""Each has `owns`, `named_arrays`, `restoring`, `function` and `check`."""


def _library(module: Any) -> Any:
    """The library of a module; InputError if it belongs to none."""
    for library in _LIBRARIES:
        if library.owns(module):
            return library
    raise InputError(
        f"from_module takes a module of Equinox, Flax NNX or PyTorch, not {type(module).__name__}: give a function "
        "of (params, datum) to ewsg.Target instead"
    )


def is_module(value: Any) -> bool:
    """Whether this is a module of Equinox, Flax NNX or PyTorch."""
    return any(library.owns(value) for library in _LIBRARIES)


def is_module_with_variables(value: Any) -> bool:
    """Whether this is a module of Flax NNX or PyTorch, which is not a pytree of arrays."""
    return is_module(value) and not equinox.owns(value)


def parameters(module: Any) -> dict[str, Array]:
    """The floating-point arrays of a module by name: the sampled parameters, and a possible starting point of a chain.

    Args:
        module: an Equinox module (all its floating-point arrays), a Flax NNX module (its `nnx.Param`s), or a PyTorch
            module (its parameters that require gradients).
    """
    named = _library(module).named_arrays(module)
    names = [name for name, _ in named]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"two parameters of the module have the name {twice.pop()!r}: rename one")
    return dict(named)


def restore(module: Any, params: Position) -> Any:
    """The module with these parameters: a position, or one draw of a run, put back for prediction.

    Args:
        module: the one that `Target.from_module` was given; it is not changed.
        params: a dict like `parameters(module)`.
    """
    return _library(module).restoring(module)(_checked(parameters(module), params))


def function_of(module: Any) -> Callable[[Position, Any], Any]:
    """(params, input) -> output for one input, without a batch axis, whichever library the module comes from.

    A module of Flax NNX or PyTorch is called with a batch of one, which its layers expect; the batch axis is removed
    again.
    """
    names, call = parameters(module).keys(), _library(module).function(module)
    return lambda params, x: call(_checked(names, params), x)


def _checked(names: Any, params: Any) -> dict[str, Any]:
    """The parameters; InputError unless they have exactly these names."""
    if not isinstance(params, dict) or params.keys() != set(names):
        raise InputError(
            f"the parameters do not belong to this module: give a dict with the names {', '.join(sorted(names))}"
        )
    return params


def log_likelihood_of(module: Any, loss: Callable) -> Callable[[Position, Any], Float[Array, ""]]:
    """ℓ(params, (input, target)) = −loss(module(input), target)."""
    check_module(module)
    if not callable(loss):
        raise InputError(f"loss must be a function of (output, target), not {type(loss).__name__}")
    call = function_of(module)

    def log_likelihood(params: Position, datum: Any) -> Float[Array, ""]:
        x, target = datum
        return -loss(call(params, x), target)

    return log_likelihood


def prediction_of(module: Any, loss: Callable) -> Callable[[Position, Any], Any]:
    """(params, (input, target)) -> what is predicted: class probabilities under `cross_entropy`, else the output."""
    call = function_of(module)

    def predict(params: Position, datum: Any) -> Any:
        output = call(params, datum[0])
        return jax.nn.softmax(output) if loss is cross_entropy else output

    return predict


def check_module(module: Any) -> None:
    """Raise InputError unless this is a module with a posterior: no batch statistics, no dropout, parameters."""
    library = _library(module)
    if not callable(module):
        raise InputError(f"{type(module).__name__} cannot be called: give it a __call__ of one input")
    library.check(module)
    if not parameters(module):
        raise InputError(f"{type(module).__name__} has no parameters: there is nothing to sample")


def check_data(module: Any, loss: Callable, data: Any) -> None:
    """Raise InputError unless the module takes a row of the data, the loss is a real scalar and labels are classes."""
    x, target = jax.tree.map(lambda leaf: leaf[0], data)
    try:
        output = jax.eval_shape(function_of(module), parameters(module), x)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"module(input) of one datum failed: {first_line(error)}") from error
    try:
        value = jax.eval_shape(loss, output, target)
    except Exception as error:
        raise InputError(f"loss(output, target) of one datum failed: {first_line(error)}") from error
    if not hasattr(value, "shape") or value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
        shape = getattr(value, "shape", type(value).__name__)
        raise InputError(
            f"loss(output, target) of one datum must return one real scalar, not {shape}: it is minus the "
            "log-likelihood, summed over the entries of the target"
        )
    if loss is cross_entropy:
        _check_labels(data[1], output.shape[-1])


def _check_labels(labels: Any, classes: int) -> None:
    if jnp.ndim(labels) != 1 or not jnp.issubdtype(jnp.asarray(labels).dtype, jnp.integer):
        raise InputError("the targets of cross_entropy must be whole numbers, one for each input")
    least, most = int(jnp.min(labels)), int(jnp.max(labels))
    if least < 0 or most >= classes:
        raise InputError(
            f"labels run from {least} to {most}, but the module has {classes} outputs: classes are 0 to {classes - 1}"
        )
