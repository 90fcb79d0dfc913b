"""Averages while sampling, for networks too large to keep draws."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._core import pytree
from .._core.component import check_count
from .._core.convolution import fast_here
from .._core.settings import plain
from .._core.types import Batch, Position
from ..collect import AbstractCollector
from ..errors import InputError
from .averages import ROWS_PER_BLOCK
from .classes import Prediction
from .draws import Drawn
from .inputs import on_device, owned
from .kinds import Kind, Noise, Reading, reading
from .regression import Regression, check_noise

_CLASS_NAMES = {"mean", "variance", "draws"}
_NUMBER_NAMES = _CLASS_NAMES | {"noise_variance"}


class Predictive(AbstractCollector):
    """Averages predictions while sampling and keeps no draws: `ewsg.sample(..., collect=Predictive(...))`.

    Every kept draw costs one forward pass over the inputs: choose `thin=` accordingly. `collected(run)` is the result;
    that of a regression has mean and sd, but no intervals, which need draws.

    Args:
        function: (params, input) -> output for one input; or the module that is sampled.
        inputs: pytree of arrays (or DataFrames), one row per input; NumPy arrays are copied.
        block: rows at a time.
        kind: "classes", "binary", "regression" or "counts", as in `predict`.
        noise: of a regression, as in `predict`.
    """

    function: Any = eqx.field(static=True)
    inputs: Batch
    block: int = eqx.field(static=True, default=ROWS_PER_BLOCK)
    kind: Kind | None = eqx.field(static=True, default=None)
    noise: Noise = eqx.field(static=True, default=None)

    def __init__(
        self,
        function: Any,
        inputs: Batch,
        block: int = ROWS_PER_BLOCK,
        kind: Kind | None = None,
        noise: Noise = None,
    ):
        block = plain(block)
        check_count("Predictive", "block", block, 1)
        read = reading(function, kind, noise)
        self.function, self.block, self.kind, self.noise = read.function, block, kind, read.noise
        self.inputs = on_device(owned(inputs))

    def init(self, position: Position) -> "_Summary":
        read = self._read(position)
        shape = jax.eval_shape(functools.partial(self._outputs, read), position)
        kind = _Numbers if read.is_numeric else _Classes
        return kind(jnp.zeros(shape.shape, shape.dtype), jnp.zeros(shape.shape, shape.dtype))

    def update(self, summary: "_Summary", position: Position, count: Int[Array, ""]) -> "_Summary":
        found = self._outputs(self._read(position), position)
        change = found - summary.mean
        mean = summary.mean + change / count.astype(found.dtype)
        return summary._replace(mean=mean, square=summary.square + change * (found - mean))

    def result(self, summary: "_Summary", count: Int[Array, ""]) -> dict[str, Array]:
        mean = jnp.where(count > 0, summary.mean, jnp.nan)
        variance = jnp.where(count > 1, summary.square / jnp.maximum(count - 1, 1).astype(mean.dtype), jnp.nan)
        if isinstance(summary, _Classes):
            return {"mean": mean, "variance": variance, "draws": count}
        return {"mean": mean[:, 0], "noise_variance": mean[:, 1], "variance": variance[:, 0], "draws": count}

    def _read(self, position: Position) -> Reading:
        first = jax.tree.map(lambda leaf: leaf[0], self.inputs)
        return reading(self.function, self.kind, self.noise).of(position, first)

    def _outputs(self, read: Reading, position: Position) -> Float[Array, "n k"]:
        """The outputs for all inputs, in at least float32, which averages over many draws need."""
        one = functools.partial(fast_here(read), position)
        return pytree.widened(jax.lax.map(one, self.inputs, batch_size=self.block))


class _Classes(NamedTuple):
    """Running mean and sum of squared deviations of the probability of each class."""

    mean: Array
    square: Array


class _Numbers(NamedTuple):
    """The same for the mean of y and for the variance of its noise."""

    mean: Array
    square: Array


_Summary = _Classes | _Numbers


def collected(run: Drawn) -> Prediction | Regression:
    """The prediction of a run that was sampled with `collect=Predictive(...)`, over its good chains."""
    kept = run.collected
    names = kept.keys() if isinstance(kept, dict) else set()
    if names not in (_CLASS_NAMES, _NUMBER_NAMES) or not run.ok.any():
        raise InputError("this run has collected no prediction: sample with collect=ewsg.prediction.Predictive(...)")
    number = int(kept["draws"][0])
    if number == 0:
        raise InputError("this run has kept no draw to predict from: run longer, or lower thin= or discard=")
    mean, variance = (np.asarray(kept[name], np.float64)[run.ok] for name in ("mean", "variance"))
    if names == _CLASS_NAMES:
        return Prediction.of_chains(mean, variance, number)
    noise = np.asarray(kept["noise_variance"], np.float64)[run.ok]
    check_noise(noise)
    both = np.stack([mean, noise], axis=-1), np.stack([variance, np.zeros_like(variance)], axis=-1)
    return Regression.of_chains(*both, number)
