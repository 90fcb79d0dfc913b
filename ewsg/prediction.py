"""Prediction by posterior averaging, p(y | x) = mean over draws of p(y | x, θ), and how good it is.

Averages are running ones: the probabilities of one draw for one block of rows are in memory at a time, never those of
all draws. `predict` goes over kept draws; `Predictive` averages while sampling, for networks too large to keep draws.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ._component import check_count
from ._convolution import fast_here
from ._types import Batch, Position
from .collect import AbstractCollector
from .errors import InputError
from .result import Run

_BLOCK = 1_000
_BINS = 15
_TINY = float(np.finfo(np.float32).tiny)


class Prediction(NamedTuple):
    """Class probabilities of n rows, averaged over draws.

    Attributes:
        probabilities: of shape (n, classes), the mean over all draws of all chains.
        by_chain: of shape (chains, n, classes), the mean over the draws of each chain.
        variance: of shape (chains, n, classes), the variance over the draws of each chain; NaN for a single draw.
        num_draws: of each chain.
    """

    probabilities: np.ndarray
    by_chain: np.ndarray
    variance: np.ndarray
    num_draws: int

    def chain(self, number: int) -> "Prediction":
        """What one chain alone predicts."""
        return _averaged(self.by_chain[number][None], self.variance[number][None], self.num_draws)


class Score(NamedTuple):
    """How good a prediction is.

    Attributes:
        error: the share of rows whose most probable class is wrong.
        log_likelihood: the mean over rows of log p(label), p being the average.
        calibration_error: expected calibration error, Σ_B (|B|/n) |accuracy(B) − confidence(B)| over 15 bins of equal
            width of the largest probability.
        brier: the mean over rows of Σ_k (p_k − [k = label])².
        rhat: agreement of the chains, see `rhat`; NaN for one chain or one draw.
    """

    error: float
    log_likelihood: float
    calibration_error: float
    brier: float
    rhat: float


def predict(
    function: Callable[[Position, Any], Float[Array, " k"]],
    draws: Position | Run,
    inputs: Batch,
    block: int = _BLOCK,
) -> Prediction:
    """Averages softmax(function(θ, x)) over draws, one draw and one block of rows at a time.

    Args:
        function: (params, input) -> logits of one input: `ewsg.modules.function_of(module)`.
        draws: pytree like the parameters with leading axes (chain, draw); or a run, whose good chains are used.
        inputs: pytree of arrays, one row an input.
        block: rows at a time; the result does not depend on it.
    """
    check_count("predict", "block", block, 1)
    draws = draws.good_draws() if isinstance(draws, Run) else draws
    leaves = jax.tree.leaves(draws)
    if not leaves or 0 in leaves[0].shape[:2]:
        raise InputError("there are no draws to predict from: keep some (collect=None), of chains that are in order")
    num_chains, num_draws = leaves[0].shape[:2]
    means, squares = [], []
    for chain in range(num_chains):
        mean, square = np.zeros(()), np.zeros(())
        for k in range(num_draws):
            found = probabilities(function, jax.tree.map(lambda leaf, at=(chain, k): leaf[at], draws), inputs, block)
            change = found - mean
            mean = mean + change / (k + 1)
            square = square + change * (found - mean)
        means.append(mean)
        squares.append(square)
    with np.errstate(invalid="ignore"):
        return _averaged(np.stack(means), np.stack(squares) / (num_draws - 1 or np.nan), num_draws)


def probabilities(function: Callable, params: Position, inputs: Batch, block: int = _BLOCK) -> np.ndarray:
    """softmax(function(params, x)) for every row x, of shape (n, classes)."""
    rows = jax.tree.leaves(inputs)[0].shape[0]
    cuts = [slice(start, start + block) for start in range(0, rows, block)]
    parts = [_probabilities(function, params, jax.tree.map(lambda leaf, cut=cut: leaf[cut], inputs)) for cut in cuts]
    return np.concatenate([np.asarray(part, np.float64) for part in parts])


@functools.partial(jax.jit, static_argnums=0)
def _probabilities(function: Callable, params: Position, inputs: Batch) -> Float[Array, "b k"]:
    return jax.nn.softmax(jax.vmap(function, in_axes=(None, 0))(params, inputs))


def _averaged(by_chain: np.ndarray, variance: np.ndarray, num_draws: int) -> Prediction:
    return Prediction(by_chain.mean(0), by_chain, variance, num_draws)


class Predictive(AbstractCollector):
    """Averages predictions while sampling and keeps no draws: `ewsg.sample(..., collect=Predictive(...))`.

    Every kept draw costs one forward pass over the inputs: choose `thin=` accordingly. `collected(run)` is the result.

    Args:
        function: (params, input) -> logits of one input: `ewsg.modules.function_of(module)`.
        inputs: pytree of arrays, one row an input.
        block: rows at a time.
    """

    function: Callable = eqx.field(static=True)
    inputs: Batch
    block: int = eqx.field(static=True, default=_BLOCK)

    def __check_init__(self):
        check_count("Predictive", "block", self.block, 1)

    def init(self, position: Position) -> tuple[Array, Array]:
        shape = jax.eval_shape(self._probabilities, position)
        return jnp.zeros(shape.shape, shape.dtype), jnp.zeros(shape.shape, shape.dtype)

    def update(self, summary: tuple[Array, Array], position: Position, count: Int[Array, ""]) -> tuple[Array, Array]:
        mean, square = summary
        found = self._probabilities(position)
        change = found - mean
        mean = mean + change / count.astype(found.dtype)
        return mean, square + change * (found - mean)

    def result(self, summary: tuple[Array, Array], count: Int[Array, ""]) -> dict[str, Array]:
        mean, square = summary
        return {"mean": mean, "variance": square / (count - 1).astype(square.dtype), "draws": count}

    def _probabilities(self, position: Position) -> Float[Array, "n k"]:
        logits = jax.lax.map(functools.partial(fast_here(self.function), position), self.inputs, batch_size=self.block)
        return jax.nn.softmax(logits)


def collected(run: Run) -> Prediction:
    """The prediction of a run that was sampled with `collect=Predictive(...)`, over its good chains."""
    kept = run.collected
    if not isinstance(kept, dict) or kept.keys() != {"mean", "variance", "draws"} or not run.ok.any():
        raise InputError("this run has collected no prediction: sample with collect=ewsg.prediction.Predictive(...)")
    mean, variance = (np.asarray(kept[name], np.float64)[run.ok] for name in ("mean", "variance"))
    return _averaged(mean, variance, int(kept["draws"][0]))


def score(prediction: Prediction, labels: np.ndarray) -> Score:
    """Error, log likelihood, calibration, Brier score and agreement of chains, against the true classes.

    Args:
        prediction: of n rows.
        labels: n whole numbers, the class of each row.
    """
    found, labels = prediction.probabilities, np.asarray(labels)
    if labels.shape != found.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"labels must be {found.shape[0]} whole numbers, one for each row, not shape {labels.shape}")
    if labels.min() < 0 or labels.max() >= found.shape[1]:
        raise InputError(f"labels run from {labels.min()} to {labels.max()}: classes are 0 to {found.shape[1] - 1}")
    rows = np.arange(len(labels))
    right = found.argmax(1) == labels
    truth = np.zeros_like(found)
    truth[rows, labels] = 1
    return Score(
        error=float(1 - right.mean()),
        log_likelihood=float(np.log(np.maximum(found[rows, labels], _TINY)).mean()),
        calibration_error=_calibration_error(found.max(1), right),
        brier=float(np.square(found - truth).sum(1).mean()),
        rhat=rhat(prediction, labels),
    )


def _calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Bins are open below and closed above: (0, 1/15], (1/15, 2/15], ..."""
    place = np.clip(np.ceil(confidence * _BINS).astype(int) - 1, 0, _BINS - 1)
    gap = np.bincount(place, right - confidence, _BINS)
    return float(np.abs(gap).sum() / len(confidence))


def rhat(prediction: Prediction, labels: np.ndarray) -> float:
    """Predictive R-hat: √((1 − 1/D) + B/W), for the probability of the true class.

    B is the variance between the means of the chains, W the mean variance within a chain of D draws, both averaged
    over rows; with one row this is ArviZ's `rhat(method="identity")`. Near 1 the chains agree in what they predict,
    whatever their weights do.
    """
    if len(prediction.by_chain) < 2 or prediction.num_draws < 2:
        return float("nan")
    rows = np.arange(len(labels))
    between = prediction.by_chain[:, rows, labels].var(0, ddof=1).mean()
    within = prediction.variance[:, rows, labels].mean()
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt(1 - 1 / prediction.num_draws + between / within))
