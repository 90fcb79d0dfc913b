"""Networks as targets: Equinox and Flax NNX modules, their parameters as a flat dict, and their losses.

A position is {"layers.0.weight": array, ...}: names that summaries show and files keep. Flax is not imported here: a
Flax module can only exist once the user has imported Flax.
"""

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._core.types import Position
from .errors import InputError, first_line

_WHY = "the log posterior is a sum over data in which each datum has a term of its own"


def cross_entropy(logits: Float[Array, " k"], label: Int[Array, ""]) -> Float[Array, ""]:
    """−log softmax(logits)[label]: minus the log-likelihood of one datum; NaN if the label is not a class."""
    chosen = jnp.arange(logits.shape[-1]) == label
    value = jax.nn.logsumexp(logits) - jnp.sum(jnp.where(chosen, logits, 0))
    return jnp.where(jnp.any(chosen), value, jnp.nan)


def standard_normal(params: Position) -> Float[Array, ""]:
    """log N(θ; 0, I), up to a constant: the prior of a network unless another is given."""
    squares = [jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(params)]
    return -0.5 * functools.reduce(operator.add, squares)


def parameters(module: Any) -> dict[str, Array]:
    """The floating-point arrays of a module by name: the sampled parameters, and a possible starting point of a chain.

    Args:
        module: an Equinox module (all its floating-point arrays), or a Flax NNX module (its `nnx.Param`s).
    """
    nnx = _nnx(module)
    if nnx is not None:
        named = [(_name(path), variable[...]) for path, variable in _nnx_parts(nnx, module)[1].items()]
    else:
        trained, _ = eqx.partition(module, eqx.is_inexact_array)
        leaves = jax.tree_util.tree_leaves_with_path(trained)
        named = [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]
    names = [name for name, _ in named]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"two parameters of the module have the name {twice.pop()!r}: rename one")
    return dict(named)


def restore(module: Any, params: Position) -> Any:
    """The module with these parameters: a position, or one draw of a run, put back for prediction.

    Args:
        module: the one that `Target.from_module` was given.
        params: a dict like `parameters(module)`.
    """
    return _restoring(module)(params)


def function_of(module: Any) -> Callable[[Position, Any], Any]:
    """(params, input) -> output for one input, without a batch axis, whichever library the module comes from.

    An NNX module is called with a batch of one, which its layers expect, and the batch axis is removed again.
    """
    restored = _restoring(module)
    if _nnx(module) is None:
        return lambda params, x: restored(params)(x)

    def call(params: Position, x: Any) -> Any:
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], x)
        return jax.tree.map(lambda leaf: leaf[0], restored(params)(batch))

    return call


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


def is_module(value: Any) -> bool:
    """Whether this is an Equinox or a Flax NNX module."""
    return isinstance(value, eqx.Module) or _nnx(value) is not None


def check_module(module: Any) -> None:
    """Raise InputError unless this is a module with a posterior: no batch statistics, no dropout, parameters."""
    nnx = _nnx(module)
    if not is_module(module):
        raise InputError(
            f"from_module takes an Equinox or a Flax NNX module, not {type(module).__name__}: give a function of "
            "(params, datum) to ewsg.Target instead"
        )
    if not callable(module):
        raise InputError(f"{type(module).__name__} cannot be called: give it a __call__ of one input")
    check = _check_equinox if nnx is None else _check_nnx
    check(module)
    if not parameters(module):
        raise InputError(f"{type(module).__name__} has no parameters: there is nothing to sample")


def is_nnx(value: Any) -> bool:
    """Whether the value is a module of Flax NNX."""
    return _nnx(value) is not None


def _nnx(module: Any) -> Any:
    """flax.nnx if the module is one of its modules, else None."""
    nnx = sys.modules.get("flax.nnx")
    return nnx if nnx is not None and isinstance(module, nnx.Module) else None


def _name(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _nnx_parts(nnx: Any, module: Any) -> tuple[Any, dict[tuple, Any], Any]:
    """The graph, the parameters by path, and all other variables."""
    graph, trained, rest = nnx.split(module, nnx.Param, ...)
    return graph, dict(nnx.to_flat_state(trained)), rest


def _restoring(module: Any) -> Callable[[Position], Any]:
    """params -> module: the given module with its parameters replaced."""
    names = parameters(module).keys()

    def checked(params: Any) -> dict[str, Any]:
        if not isinstance(params, dict) or params.keys() != names:
            raise InputError(
                f"the parameters do not belong to this module: give a dict with the names {', '.join(sorted(names))}"
            )
        return params

    nnx = _nnx(module)
    if nnx is not None:
        graph, variables, rest = _nnx_parts(nnx, module)
        kinds = {path: variable.replace(None) for path, variable in variables.items()}

        def merged(params: Position) -> Any:
            flat = checked(params)
            filled = [(path, kind.replace(jnp.asarray(flat[_name(path)]))) for path, kind in kinds.items()]
            return nnx.merge(graph, nnx.from_flat_state(filled), rest)

        return merged
    trained, rest = eqx.partition(module, eqx.is_inexact_array)
    structure = jax.tree.structure(trained)
    order = list(parameters(module))

    def combined(params: Position) -> Any:
        flat = checked(params)
        return eqx.combine(structure.unflatten([jnp.asarray(flat[name]) for name in order]), rest)

    return combined


def _check_equinox(module: Any) -> None:
    special = (eqx.nn.BatchNorm, eqx.nn.StateIndex, eqx.nn.Dropout)
    for part in jax.tree.leaves(module, is_leaf=lambda node: isinstance(node, special)):
        if isinstance(part, eqx.nn.BatchNorm | eqx.nn.StateIndex):
            raise _has_statistics(type(part).__name__)
        if isinstance(part, eqx.nn.Dropout) and part.p > 0 and not part.inference:
            raise _has_dropout("eqx.nn.inference_mode(module)")


def _check_nnx(module: Any) -> None:
    from flax import nnx

    silent = []
    for path, part in nnx.iter_graph(module):
        if isinstance(part, nnx.Dropout):
            if part.rate > 0 and not part.deterministic:
                raise _has_dropout("module.eval()")
            silent.append(path)
    for path, variable in nnx.to_flat_state(nnx.state(module)):
        if isinstance(variable, nnx.BatchStat):
            raise _has_statistics("BatchStat")
        if isinstance(variable, nnx.RngState) and not any(path[: len(start)] == start for start in silent):
            raise InputError(
                f"the module draws random numbers ({_name(path)}), so its output is not a deterministic function of "
                f"the parameters, but {_WHY}: remove the stream"
            )


def _has_statistics(name: str) -> InputError:
    return InputError(
        f"the module has batch statistics ({name}), which make the output for one datum depend on the others, but "
        f"{_WHY}: use LayerNorm or GroupNorm instead"
    )


def _has_dropout(remedy: str) -> InputError:
    return InputError(
        "the module has dropout, which makes the likelihood of a datum a random number, but "
        f"{_WHY}: remove it, or switch it off with {remedy}"
    )


def check_data(module: Any, loss: Callable, data: Any) -> None:
    """Raise InputError unless the module takes a row of the data, the loss is a real scalar and labels are classes."""
    x, target = jax.tree.map(lambda leaf: leaf[0], data)
    try:
        output = jax.eval_shape(function_of(module), parameters(module), x)
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
