"""`predict`: averages over kept draws, one draw and one block of rows at a time."""

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, overload

import jax
import numpy as np
from jaxtyping import Array, Float

from .._core.component import check_count
from .._core.types import Batch, Position
from ..errors import InputError
from .classes import Prediction
from .draws import Drawn, checked, first
from .inputs import owned
from .kinds import Kind, Noise, Reading, reading
from .regression import Regression, check_counts, check_noise
from .source import Source

ROWS_PER_BLOCK = 1_000

Function: TypeAlias = Callable[[Position, Any], Any] | Any
"""(params, input) -> output for one input, or a module."""


@overload
def predict(
    function: Function,
    draws: Position | Drawn,
    inputs: Batch,
    kind: Literal["binary", "classes"],
    *,
    noise: Noise = ...,
    block: int = ...,
    seed: int = ...,
) -> Prediction: ...


@overload
def predict(
    function: Function,
    draws: Position | Drawn,
    inputs: Batch,
    kind: Literal["regression", "counts"],
    *,
    noise: Noise = ...,
    block: int = ...,
    seed: int = ...,
) -> Regression: ...


@overload
def predict(
    function: Function,
    draws: Position | Drawn,
    inputs: Batch,
    kind: None = None,
    *,
    noise: Noise = ...,
    block: int = ...,
    seed: int = ...,
) -> Prediction | Regression: ...


def predict(
    function: Function,
    draws: Position | Drawn,
    inputs: Batch,
    kind: Kind | None = None,
    *,
    noise: Noise = None,
    block: int = ROWS_PER_BLOCK,
    seed: int = 0,
) -> Prediction | Regression:
    """Averages the predictions of `function` over draws; the result does not depend on `block`.

    The output of `function` for one input decides what it can mean:

    | output | `kind` | prediction |
    |---|---|---|
    | vector of k ≥ 2 logits | "classes" (default if k > 2) | softmax: a `Prediction` of k classes |
    | one number | "binary" | sigmoid of the logit of class 1: a `Prediction` of 2 classes |
    | one number | "regression" | the mean of y, with `noise` as its sd: a `Regression` |
    | pair (mean, log sd), or {"mean": ..., "log_sd": ...} | "regression" (default) | likewise, with its own sd |
    | vector of 2 | "regression" | (mean, log sd), likewise |
    | one number | "counts" | the log of the mean of y, which is Poisson: a `Regression` |

    Args:
        function: (params, input) -> output for ONE input; or the module that was sampled.
        draws: pytree like the parameters with leading axes (chain, draw); or a run, whose good chains are used.
        inputs: pytree of arrays (or DataFrames), one row per input.
        kind: see above; required if the output is one number, which may be a logit, a mean or a log mean, or two, which
            may be two logits or a mean and a log sd.
        noise: of a regression whose function returns the mean alone: the sd of y, or a function of the parameters that
            returns it. Without it the prediction is of the mean, not of y.
        block: rows at a time.
        seed: of the draws of y that `Regression.interval` uses.

    Example:
        >>> import numpy as np
        >>> from ewsg.prediction import predict
        >>> draws = np.random.default_rng(0).normal(size=(2, 500, 3)).astype(np.float32)
        >>> inputs = np.eye(3, dtype=np.float32)
        >>> found = predict(lambda theta, x: x @ theta, draws, inputs, kind="regression", noise=2.0)
        >>> np.abs(found.sd - np.sqrt(1 + 2**2)).max() < 0.05  # of y: posterior sd and noise
        np.True_
    """
    check_count("predict", "block", block, 1)
    check_count("predict", "seed", seed, 0)
    draws, num_chains, num_draws = checked(draws)
    inputs = owned(inputs)
    read = reading(function, kind, noise, draws).of(*(first(tree, axes) for tree, axes in ((draws, 2), (inputs, 1))))
    means, variances, counts = [], [], read.kind == "counts"
    for chain in range(num_chains):
        mean, square = np.zeros(()), np.zeros(())
        for k in range(num_draws):
            found = outputs(read, jax.tree.map(lambda leaf, at=(chain, k): leaf[at], draws), inputs, block)
            if counts:
                check_counts(found)
            change = found - mean
            mean = mean + change / (k + 1)
            square = square + change * (found - mean)
        means.append(mean)
        variances.append(square / (num_draws - 1) if num_draws > 1 else np.full_like(square, np.nan))
    by_chain, variance = np.stack(means), np.stack(variances)
    if not read.is_numeric:
        return Prediction.of_chains(by_chain, variance, num_draws)
    check_noise(by_chain[..., 1])
    source = Source(functools.partial(outputs, read), draws, inputs, block, seed, counts)
    return Regression.of_chains(by_chain, variance, num_draws, source)


def probabilities(
    function: Callable, params: Position, inputs: Batch, block: int = ROWS_PER_BLOCK, kind: Kind | None = None
) -> np.ndarray:
    """The quantity that `predict` averages, for one draw: class probabilities of shape (n, classes)."""
    inputs = owned(inputs)
    read = reading(function, kind, None, params).of(params, first(inputs, 1))
    if read.is_numeric:
        raise InputError("a regression has no class probabilities: use predict")
    return outputs(read, params, inputs, block)


def outputs(read: Reading, params: Position, inputs: Batch, block: int = ROWS_PER_BLOCK) -> np.ndarray:
    """The output for every row, of shape (n, k), in float64 on the host."""
    rows = jax.tree.leaves(inputs)[0].shape[0]
    cuts = [slice(start, start + block) for start in range(0, rows, block)]
    parts = [_outputs(read, params, jax.tree.map(lambda leaf, cut=cut: leaf[cut], inputs)) for cut in cuts]
    return np.concatenate([np.asarray(part, np.float64) for part in parts])


@functools.partial(jax.jit, static_argnums=0)
def _outputs(read: Reading, params: Position, inputs: Batch) -> Float[Array, "b k"]:
    return jax.vmap(read, in_axes=(None, 0))(params, inputs)
