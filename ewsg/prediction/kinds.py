"""The meaning of a function's output for one input: logits, a mean, a mean and a log sd, or the log of a mean count."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import modules
from .._core.component import check_positive
from .._core.types import Position
from ..errors import InputError, first_line, unknown

Kind = Literal["binary", "classes", "regression", "counts"]
Noise = float | Callable[[Position], Any] | None

_NEEDS = {
    "binary": "one number, the logit of class 1",
    "classes": "a vector of logits, one per class, of at least two classes",
    "regression": "one number, the mean, or a pair (mean, log sd)",
    "counts": "one number, the log of the mean count",
}
_CHOICES = (
    'one number (kind="binary", kind="regression" or kind="counts"), a vector of logits (kind="classes") or a pair '
    '(mean, log sd) (kind="regression")'
)


@dataclasses.dataclass(frozen=True)
class Reading:
    """A function of (params, input) whose output is a vector of known meaning.

    Classes: the probability of each. Regression: the mean of y, and the variance of its noise (0 without a noise scale,
    NaN where the given sd is negative). Counts: the mean of y twice, as it is the variance of a Poisson variable too.

    Attributes:
        function: of (params, input).
        kind: what its output means; None until `of` has decided by the output's shape.
        noise: the sd of y around its mean, or a function of the parameters that returns it.
    """

    function: Callable[[Position, Any], Any]
    kind: str | None = None
    noise: Noise = None

    @property
    def is_numeric(self) -> bool:
        """Whether y is a number, not a class."""
        return self.kind in ("regression", "counts")

    def __call__(self, params: Position, x: Any) -> Float[Array, " k"]:
        output = self.function(params, x)
        if self.kind == "counts":
            rate = jnp.exp(output.reshape(()))
            return jnp.stack([rate, rate])
        if self.kind == "regression":
            return self._mean_and_variance(params, output)
        if self.kind == "binary":
            logit = output.reshape(())
            output = jnp.stack([jnp.zeros_like(logit), logit])
        return jax.nn.softmax(output)

    def of(self, params: Position, x: Any) -> "Reading":
        """The same with its kind decided from parameters and one input like these; InputError if none fits."""
        try:
            output = jax.eval_shape(self.function, params, x)
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                "function(params, input) failed for one draw, without the axes (chain, draw), and one input, a row of "
                f"`inputs`: {first_line(error)}"
            ) from error
        kind = _kind(output, self.kind)
        self._check_noise(params, output, kind)
        return dataclasses.replace(self, kind=kind)

    def _mean_and_variance(self, params: Position, output: Any) -> Float[Array, " 2"]:
        parts = _parts(output)
        mean = parts[0].reshape(())
        if len(parts) == 2:
            variance = jnp.exp(2 * parts[1].reshape(()))
        elif self.noise is None:
            variance = jnp.zeros_like(mean)
        else:
            sd = self.noise(params) if callable(self.noise) else self.noise
            sd = jnp.asarray(sd, mean.dtype).reshape(())
            variance = jnp.where(sd < 0, jnp.nan, jnp.square(sd))
        return jnp.stack([mean, variance.astype(mean.dtype)])

    def _check_noise(self, params: Position, output: Any, kind: str) -> None:
        if self.noise is None:
            return
        if kind != "regression":
            raise InputError(f'noise is the sd of y in a regression, not of kind="{kind}": leave it out')
        if len(_parts(output)) == 2:
            raise InputError("function returns (mean, log sd), so noise would be a second sd: leave it out")
        if callable(self.noise):
            try:
                shape = jnp.shape(jax.eval_shape(self.noise, params))
            except Exception as error:
                raise InputError(f"noise(params) failed: {first_line(error)}") from error
            if shape not in ((), (1,)):
                raise InputError(f"noise(params) must return one number, the sd of y, not shape {shape}")


def reading(function: Any, kind: Kind | None, noise: Noise, draws: Position | None = None) -> Reading:
    """The reading of `function`, or of a module in its place, before its output is known."""
    if kind is not None and kind not in _NEEDS:
        raise unknown("kind of prediction", kind, _NEEDS)
    if noise is not None and not callable(noise):
        noise = _one_number(noise)
    return Reading(_function(function, draws), kind, noise)


def _one_number(noise: Any) -> float:
    """The sd of y, given as a number."""
    if isinstance(noise, list | tuple) or np.ndim(noise):
        raise InputError(
            "noise must be one number, the sd of y, or a function of the parameters that returns it, not an array: "
            "where the sd depends on the input, let function return (mean, log sd)"
        )
    check_positive("predict", "noise", noise)
    return float(noise)


def _function(given: Any, draws: Position | None) -> Callable[[Position, Any], Any]:
    """A function of (params, input): the given one, or that of a module whose parameters were sampled."""
    if modules.is_module(given):
        names = modules.parameters(given)
        if names and (draws is None or (isinstance(draws, dict) and draws.keys() == names.keys())):
            return modules.function_of(given)
        if names:
            raise InputError(
                f"the draws do not belong to this {type(given).__name__}: predict with the module that "
                "Target.from_module was given, or with a function of (params, input)"
            )
        return lambda params, x: given(params, x)
    if not callable(given):
        raise InputError(f"function must be a function of (params, input) or a module, not {type(given).__name__}")
    return given


def _kind(output: Any, kind: str | None) -> str:
    """The kind, if the output for one input allows it."""
    shape = _shape(output)
    possible = _possible(output)
    if kind in possible:
        return str(kind)
    if kind is not None:
        raise InputError(f'function returns {shape} for one input, but kind="{kind}" needs {_NEEDS[kind]}')
    if not possible:
        raise InputError(f"function returns {shape} for one input: it must return {_CHOICES}")
    if possible == ("classes", "regression"):
        raise InputError(
            f"function returns two numbers ({shape}) for one input, which may be the logits of two classes or a mean "
            'and a log sd: give kind="classes" or kind="regression"'
        )
    if "binary" in possible:
        raise InputError(
            f"function returns one number ({shape}) for one input, which may be a logit or a mean: give "
            'kind="binary" or kind="regression", or kind="counts" if it is the log of a mean count'
        )
    return possible[0]


def _possible(output: Any) -> tuple[str, ...]:
    """The kinds that an output allows, the default first."""
    leaves = jax.tree.leaves(output)
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
        return ()
    if isinstance(output, jax.ShapeDtypeStruct):
        if output.shape in ((), (1,)):
            return ("binary", "regression", "counts")
        if len(output.shape) != 1 or output.shape[0] < 2:
            return ()
        return ("classes", "regression") if output.shape == (2,) else ("classes",)
    return ("regression",) if len(_parts(output)) == 2 and all(leaf.shape in ((), (1,)) for leaf in leaves) else ()


def _parts(output: Any) -> tuple[Any, ...]:
    """(mean,) or (mean, log sd) of a regression's output; () if it is neither."""
    if isinstance(output, dict):
        return (output["mean"], output["log_sd"]) if output.keys() == {"mean", "log_sd"} else ()
    if isinstance(output, tuple | list):
        return tuple(output) if len(output) == 2 else ()
    if output.shape != (2,):
        return (output,)
    return (output, output) if isinstance(output, jax.ShapeDtypeStruct) else (output[0], output[1])


def _shape(output: Any) -> str:
    if isinstance(output, jax.ShapeDtypeStruct):
        real = jnp.issubdtype(output.dtype, jnp.floating)
        return f"shape {output.shape}" + ("" if real else f" of {output.dtype}")
    if isinstance(output, dict):
        return f"a dict with the names {', '.join(map(str, output)) or 'none'}"
    return f"a {type(output).__name__} of shapes {', '.join(str(leaf.shape) for leaf in jax.tree.leaves(output))}"
