"""Fully connected networks: a classifier and a regressor."""

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit, softmax

from .._core.types import Batch, Position
from ..errors import unknown
from ..models.priors import GaussianPrior
from ..modules import cross_entropy
from ..target.likelihood import OfModule
from ..target.target import Target
from ._base import AbstractBayesianClassifier, AbstractPlanned, Keep
from ._coefficients import thinned
from ._noise import NoisePrior
from ._normal import AbstractNormalRegressor
from ._rows import Padded, Rows, Units, padded, units_of

_MOST_DRAWS = 1_000
_ACTIVATIONS: dict[str, tuple[Callable, Callable]] = {
    "tanh": (jnp.tanh, np.tanh),
    "relu": (jax.nn.relu, lambda x: np.maximum(x, 0)),
    "silu": (jax.nn.silu, lambda x: x * expit(x)),
}
"""In JAX, and in NumPy."""


def forward(params: Any, x: Any, activation: Callable) -> Any:
    """Outputs of one input, or of a batch: h ← activation(h W/√(inputs of the layer) + b), the last layer without it.

    The first layer's inputs are divided already: padded inputs, which are 0, do not count.
    """
    for k, (weight, bias) in enumerate(zip(params["weights"], params["biases"], strict=True)):
        x = (activation(x) / weight.shape[0] ** 0.5 if k else x) @ weight + bias
    return x


class LogLikelihood(eqx.Module):
    """w log p(y | x, θ) of one datum: a class, or a response with normal noise."""

    activation: str = eqx.field(static=True)
    is_classifier: bool = eqx.field(static=True)

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        output = forward(params, datum["features"], _ACTIVATIONS[self.activation][0])
        if self.is_classifier:
            return -datum["weight"] * cross_entropy(output, datum["label"])
        log_scale = params["log_scale"]
        residual = (datum["response"] - output[0]) * jnp.exp(-log_scale)
        return -datum["weight"] * (0.5 * residual**2 + log_scale)


class Prediction(eqx.Module):
    """What the verdict is on: class probabilities, or the mean response."""

    activation: str = eqx.field(static=True)
    is_classifier: bool = eqx.field(static=True)

    def __call__(self, params: Position, datum: Batch) -> Float[Array, " k"]:
        output = forward(params, datum["features"], _ACTIVATIONS[self.activation][0])
        return jax.nn.softmax(output) if self.is_classifier else output


class AbstractNetwork(AbstractPlanned):
    """A fully connected network."""

    weight_draws_: list[Float[np.ndarray, "s i o"]]
    bias_draws_: list[Float[np.ndarray, "s o"]]

    def __init__(
        self,
        *,
        hidden_layer_sizes: Any = (32,),
        activation: str = "tanh",
        prior_scale: float = 1.0,
        accuracy: float | None = 0.2,
        num_chains: int = 8,
        data_passes: float | None = None,
        seconds: float | None = None,
        random_state: Any = None,
        progress: bool | None = False,
    ):
        super().__init__(
            prior_scale=prior_scale,
            accuracy=accuracy,
            num_chains=num_chains,
            data_passes=data_passes,
            seconds=seconds,
            random_state=random_state,
            progress=progress,
        )
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation

    @property
    def _numbers_per_row(self) -> int:
        return 2 * self.bias_draws_[-1].size + max(weights.shape[2] for weights in self.weight_draws_)

    def _network(self, data: Padded, seed: int, num_outputs: int, **own: np.ndarray) -> Target:
        """The posterior of a network.

        Args:
            data: padded rows.
            seed: of the first weights.
            num_outputs: of the last layer.
            **own: the rest of a datum, one number per place.
        """
        if self.activation not in _ACTIVATIONS:
            raise unknown("activation", self.activation, _ACTIVATIONS)
        sizes = [int(size) for size in np.atleast_1d(np.asarray(self.hidden_layer_sizes, int))]
        if any(size < 1 for size in sizes):
            raise ValueError(f"hidden_layer_sizes must be whole numbers of at least 1, not {self.hidden_layer_sizes!r}")
        is_classifier = isinstance(self, AbstractBayesianClassifier)
        dtype, rng = data.matrix.dtype, np.random.default_rng(seed)
        widths = [data.matrix.shape[1], *sizes, num_outputs]
        shapes = list(itertools.pairwise(widths))
        init: dict[str, Any] = {
            "weights": [rng.normal(size=shape).astype(dtype) for shape in shapes],
            "biases": [np.zeros(shape[1], dtype) for shape in shapes],
        }
        prior: Any = GaussianPrior(1 / float(self.prior_scale) ** 2)
        if not is_classifier:
            init["log_scale"], prior = np.zeros((), dtype), NoisePrior(prior)
        function, predict = (kind(self.activation, is_classifier) for kind in (LogLikelihood, Prediction))
        arrays = {"features": data.matrix, "weight": data.weights, **own}
        return Target(OfModule(function, predict), prior, arrays, init=init)

    def _keep_layers(self, draws: Any, units: Units) -> None:
        """Draws of weights and biases, for features in the units of the data."""
        first = draws["weights"][0][:, : len(units.mean)] / (units.scale * _divisor(units))[:, None]
        bias = draws["biases"][0] - np.einsum("j,sjh->sh", units.mean, first)
        self.weight_draws_ = [first, *draws["weights"][1:]]
        self.bias_draws_ = [bias, *draws["biases"][1:]]

    def _outputs(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "s b k"]:
        """Outputs of every draw that was kept."""
        activation = _ACTIVATIONS[self.activation][1]
        draws = zip(zip(*self.weight_draws_, strict=True), zip(*self.bias_draws_, strict=True), strict=True)
        return np.stack([forward({"weights": w, "biases": b}, features, activation) for w, b in draws])


class BayesianMLPClassifier(AbstractBayesianClassifier, AbstractNetwork):
    r"""P(class | x) = softmax(network(x)), averaged over the posterior of weights and biases.

    Prior: N(0, prior_scale²/inputs of the layer) for weights, N(0, prior_scale²) for biases; columns of X are
    standardised. The plan is that of networks: predictions are judged, not weights (docs/networks.md).

    Args:
        hidden_layer_sizes: units of each hidden layer; () is none.
        activation: "tanh", "relu" or "silu".
        prior_scale: see above.
        accuracy: of predicted probabilities, in posterior sd, root mean square over rows.
        num_chains: chains of the run, 8 to 256.
        data_passes: a budget: passes over the data per chain; None, with `seconds` None, is 500.
        seconds: a budget of time; None is no limit.
        random_state: a seed, or a NumPy RandomState; equal seeds give equal results.
        progress: True for a progress bar; None for one on a terminal.

    Attributes:
        classes_: the classes, sorted.
        weight_draws_: for each layer, draws that predictions use, (draws, inputs, outputs); `bias_draws_` likewise.
        run_: the `ewsg.Run`, for features in standard units divided by √features.
        verdict_: whether the accuracy was reached.
        n_features_in_: the number of features; `feature_names_in_`, their names, if X had any.
    """

    def _posterior(self, rows: Rows, seed: int) -> tuple[Target, Keep]:
        units = units_of(rows)
        data = padded(rows, units, ones=False, divisor=_divisor(units))
        labels = rows.responses[data.places].astype(np.int32)

        def keep(draws: Any) -> None:
            self._keep_layers(_fewer(draws), units)

        return self._network(data, seed, len(self.classes_), label=labels), keep

    def predict_proba(self, X: Any) -> Float[np.ndarray, "m K"]:
        return self._in_blocks(X, lambda rows: softmax(self._outputs(rows), axis=2).mean(0))


class BayesianMLPRegressor(AbstractNormalRegressor, AbstractNetwork):
    r"""y ~ N(network(x), σ²), with the posterior of weights, biases and σ.

    Prior: N(0, prior_scale²/inputs of the layer) for weights, N(0, prior_scale²) for biases, in units of the standard
    deviations of the columns of X and of y; σ ~ Exponential(1). The plan is that of networks: predictions are judged,
    not weights (docs/networks.md).

    Args:
        hidden_layer_sizes: units of each hidden layer; () is none.
        activation: "tanh", "relu" or "silu".
        prior_scale: see above.
        accuracy: of predicted means, in posterior sd, root mean square over rows.
        num_chains: chains of the run, 8 to 256.
        data_passes: a budget: passes over the data per chain; None, with `seconds` None, is 500.
        seconds: a budget of time; None is no limit.
        random_state: a seed, or a NumPy RandomState; equal seeds give equal results.
        progress: True for a progress bar; None for one on a terminal.

    Attributes:
        noise_scale_: posterior mean of σ; `noise_scale_draws_`, draws that predictions use.
        weight_draws_: for each layer, draws that predictions use, (draws, inputs, outputs); `bias_draws_` likewise.
        run_: the `ewsg.Run`, for features in standard units divided by √features, and responses in standard units.
        verdict_: whether the accuracy was reached.
        n_features_in_: the number of features; `feature_names_in_`, their names, if X had any.
    """

    def _posterior(self, rows: Rows, seed: int) -> tuple[Target, Keep]:
        units, center, unit = units_of(rows), rows.mean_response, rows.response_scale
        data = padded(rows, units, ones=False, divisor=_divisor(units))

        def keep(draws: Any) -> None:
            draws = _fewer(draws)
            self._keep_layers(draws, units)
            self.weight_draws_[-1] = unit * self.weight_draws_[-1]
            self.bias_draws_[-1] = center + unit * self.bias_draws_[-1]
            self.noise_scale_draws_ = unit * np.exp(draws["log_scale"])
            self.noise_scale_ = float(self.noise_scale_draws_.mean())

        return self._network(data, seed, 1, response=data.column((rows.responses - center) / unit)), keep

    def _means(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b s"]:
        return self._outputs(features)[:, :, 0].T


def _divisor(units: Units) -> float:
    """Of the inputs of the first layer, whose weights would otherwise have a prior that depends on their number."""
    return len(units.mean) ** 0.5


def _fewer(draws: Any) -> Any:
    """Up to 1,000 draws."""
    return jax.tree.map(lambda leaf: thinned(leaf, _MOST_DRAWS), draws)
