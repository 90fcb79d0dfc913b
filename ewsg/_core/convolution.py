r"""Convolutions and max pooling of a user's likelihood, as matrix products and maxima, for the CPU.

Inside a loop the gradient of `lax.conv` takes a slow path in the CPU compiler (jax issue 12868); under `vmap` over
chains the kernels become grouped convolutions, slower still. A convolution is a product with the patches of its input,

    y[n, p, o] = Σ_{k,c} x[n, s·p + k, c] w[k, c, o],

and a maximum over windows that do not overlap is one over an axis of a reshaped array. `rewritten` follows a function's
jaxpr and substitutes these for the two primitives; everything else stays as it is. The values are the
same up to rounding. The maximum and the sum over patches have derivatives of their own that follow the memory layout.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, jaxpr_as_fun
from jaxtyping import Array

from .compiler import platform, stored

_CALLS = ("jit", "pjit", "closed_call")
_CHECKPOINTS = ("checkpoint", "remat2", "remat")


def fast_here(function: Callable) -> Callable:
    """The same function in the form that the platform runs fast."""
    return rewritten(function) if platform() == "cpu" else function


def rewritten(function: Callable) -> Callable:
    """The same function of arrays, without convolutions; the function itself if it has none."""

    def call(*args: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        if not _concerned(closed.jaxpr):
            return function(*args)
        outputs = _evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shape), outputs)

    return call


def _concerned(jaxpr: Jaxpr) -> bool:
    """Whether there is anything to rewrite, at any depth that `_evaluate` reaches."""
    return any(_rule(eqn) is not None or _concerned_call(eqn) for eqn in jaxpr.eqns)


def _concerned_call(eqn: JaxprEqn) -> bool:
    inner = _body(eqn)
    return inner is not None and _concerned(inner.jaxpr)


def _body(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The jaxpr of a call; None if it has derivatives of its own (`custom_jvp`, `custom_vjp`), which must stay."""
    if eqn.primitive.name not in (*_CALLS, *_CHECKPOINTS):
        return None
    inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
    return ClosedJaxpr(inner, ()) if isinstance(inner, Jaxpr) else inner


def _evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """The outputs of a jaxpr, with the rules below."""
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
    for eqn in jaxpr.eqns:
        inputs = [_value(values, atom) for atom in eqn.invars]
        rule, inner = _rule(eqn), _body(eqn)
        if rule is not None:
            outputs = [rule(*inputs, **eqn.params)]
        elif inner is not None and _concerned(inner.jaxpr):
            outputs = _called(eqn, inner)(*inputs)
        else:
            outputs = _alone(eqn, jaxpr)(*(values[var] for var in _variables(eqn.invars)))
        values.update(zip(eqn.outvars, outputs, strict=True))
    return [_value(values, atom) for atom in jaxpr.outvars]


def _called(eqn: JaxprEqn, inner: ClosedJaxpr) -> Callable:
    """The called function, rewritten; a checkpoint remains a checkpoint."""

    def call(*args: Any) -> list[Any]:
        return _evaluate(inner.jaxpr, inner.consts, args)

    if eqn.primitive.name in _CHECKPOINTS:
        return jax.checkpoint(call, prevent_cse=eqn.params["prevent_cse"], policy=eqn.params["policy"])
    return call


def _alone(eqn: JaxprEqn, jaxpr: Jaxpr) -> Callable:
    """One equation as a function of its variables: how a primitive is bound differs between versions of JAX."""
    origin = jaxpr.debug_info._replace(arg_names=None, result_paths=None)
    inputs, outputs = _variables(eqn.invars), list(eqn.outvars)
    return jaxpr_as_fun(ClosedJaxpr(Jaxpr((), inputs, outputs, [eqn], eqn.effects, origin), ()))


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(atom for atom in atoms if not isinstance(atom, Literal)))


def _value(values: dict[Any, Any], atom: Any) -> Any:
    return atom.val if isinstance(atom, Literal) else values[atom]


def _rule(eqn: JaxprEqn) -> Callable | None:
    """The function that replaces an equation; None if it stays."""
    params = eqn.params
    if eqn.primitive.name == "conv_general_dilated":
        plain = params["feature_group_count"] == params["batch_group_count"] == 1 and _ones(params["lhs_dilation"])
        real = jnp.issubdtype(cast(Any, eqn.outvars[0].aval).dtype, jnp.floating)
        return _convolved if plain and real else None
    if eqn.primitive.name == "reduce_window_max":
        apart = tuple(params["window_dimensions"]) == tuple(params["window_strides"])
        plain = _ones(params["base_dilation"]) and _ones(params["window_dilation"])
        padded = any(side for pair in params["padding"] for side in pair)
        return _pooled if apart and plain and not padded else None
    return None


def _ones(numbers: Sequence[int]) -> bool:
    return all(number == 1 for number in numbers)


def _convolved(
    x: Array,
    w: Array,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: Any,
    **_: Any,
) -> Array:
    """A convolution as one product with the patches of its input, gathered axis by axis: k + k slices, not k · k."""
    spec = dimension_numbers
    x = jnp.transpose(x, (spec.lhs_spec[0], *spec.lhs_spec[2:], spec.lhs_spec[1]))
    w = jnp.transpose(w, (*spec.rhs_spec[2:], spec.rhs_spec[1], spec.rhs_spec[0]))
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), ((0, 0, 0), *((low, high, 0) for low, high in padding), (0, 0, 0)))
    kernel = w.shape[:-2]
    patches = x
    for axis in reversed(range(1, len(kernel) + 1)):
        k, stride, dilation = kernel[axis - 1], window_strides[axis - 1], rhs_dilation[axis - 1]
        last = x.shape[axis] - (k - 1) * dilation
        shifted = [jax.lax.slice_in_dim(patches, j * dilation, j * dilation + last, stride, axis) for j in range(k)]
        patches = jnp.concatenate(shifted, -1)
    rows = w.reshape(math.prod(kernel) * w.shape[-2], w.shape[-1])
    y = jnp.matmul(patches, rows, precision=precision, preferred_element_type=preferred_element_type)
    order = (spec.out_spec[0], *spec.out_spec[2:], spec.out_spec[1])
    return jnp.transpose(_stored_derivative(y), tuple(order.index(axis) for axis in range(len(order))))


@jax.custom_jvp
def _stored_derivative(y: Array) -> Array:
    """y; its cotangent is stored in this layout before it is transposed for the product with the patches."""
    return y


@_stored_derivative.defjvp
def _stored_derivative_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return primals[0], stored(tangents[0])


def _pooled(x: Array, *, window_dimensions: Sequence[int], **_: Any) -> Array:
    """The maximum over adjacent windows; incomplete windows are dropped, as by the primitive.

    Axes that are not pooled (channels) go last, as in `_convolved`, so that all kernels read contiguous memory.
    """
    order = sorted(range(x.ndim), key=lambda axis: window_dimensions[axis] == 1)
    x, window = jnp.transpose(x, order), [window_dimensions[axis] for axis in order]
    counts = [length // size for length, size in zip(x.shape, window, strict=True)]
    x = jax.lax.slice(x, [0] * x.ndim, [c * s for c, s in zip(counts, window, strict=True)])
    split = [length for pair in zip(counts, window, strict=True) for length in pair]
    return jnp.transpose(_window_maxima(x.reshape(split)), [order.index(axis) for axis in range(x.ndim)])


@jax.custom_jvp
def _window_maxima(x: Array) -> Array:
    """The maximum over every second axis; its derivative belongs to the first entry that attains it."""
    return jnp.max(x, axis=tuple(range(1, x.ndim, 2)))


@_window_maxima.defjvp
def _window_maxima_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    maximum = _window_maxima(x)
    axes = tuple(range(1, x.ndim, 2))
    window = [x.shape[axis] for axis in axes]
    places = jnp.expand_dims(jnp.arange(math.prod(window), dtype=jnp.int32).reshape(window), range(0, x.ndim, 2))
    attained = x >= jnp.expand_dims(maximum, axes)
    first = jnp.min(jnp.where(attained, places, math.prod(window)), axis=axes)
    chosen = places == jnp.expand_dims(stored(first), axes)
    return maximum, stored(jnp.sum(jnp.where(chosen, tangent, 0), axis=axes))
