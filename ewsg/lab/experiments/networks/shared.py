"""Bayesian networks on images of digits, shared by `bnn-mlp`, `bnn-cnn` and `bnn-m`.

All step sizes are in mean units: for ∇V/n at temperature T/n, the same chain as in sum units.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .... import datasets, modules, prediction, recipes
from ...._core.optional import require
from ...._core.types import Position
from ....recipes import Method
from ....result.run import Run
from ....target.target import Target
from ..experiment import Work

CLASSES, CLUSTERS = 10, 10
_DIGITS_TRAIN = 1_500


class Images(NamedTuple):
    """Images of digits with values in [0, 1], of shape (n, side, side), and their classes."""

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def load(name: str) -> Images:
    """MNIST, or the digits of scikit-learn: 1,797 images of 8 × 8 pixels, the last 297 of them for tests."""
    if name == "digits":
        load_digits = require("sklearn.datasets", extra="lab").load_digits
        found: Any = load_digits()
        pixels = (found.images / 16).astype(np.float32)
        labels = found.target.astype(np.int32)
        cut = _DIGITS_TRAIN
        return Images(pixels[:cut], labels[:cut], pixels[cut:], labels[cut:])
    train, test = datasets.load("mnist", "train"), datasets.load("mnist", "test")
    square = (-1, 28, 28)
    return Images(train.features.reshape(square), train.labels, test.features.reshape(square), test.labels)


def mlp(key: jax.Array, side: int, hidden: list[int]) -> eqx.Module:
    """Fully connected layers of ReLU, and the logits."""
    return eqx.nn.Sequential(_connected(key, side**2, hidden))


def cnn(key: jax.Array, side: int, channels: list[int], hidden: list[int]) -> eqx.Module:
    """5 × 5 convolutions of ReLU with 2 × 2 max pooling after each, then fully connected layers, and the logits."""
    key, *keys = jax.random.split(key, len(channels) + 1)
    layers: list[Any] = []
    for key_layer, before, after in zip(keys, [1, *channels], channels, strict=False):
        layers += [eqx.nn.Conv2d(before, after, 5, padding=2, key=key_layer), _relu(), eqx.nn.MaxPool2d(2, 2)]
        side //= 2
    return eqx.nn.Sequential([*layers, eqx.nn.Lambda(jnp.ravel), *_connected(key, channels[-1] * side**2, hidden)])


def _connected(key: jax.Array, inputs: int, hidden: list[int]) -> list[Any]:
    layers: list[Any] = []
    keys = jax.random.split(key, len(hidden) + 1)
    for key_layer, before, after in zip(keys, [inputs, *hidden], [*hidden, CLASSES], strict=True):
        layers += [eqx.nn.Linear(before, after, key=key_layer), _relu()]
    return layers[:-1]


def _relu() -> eqx.Module:
    return eqx.nn.Lambda(jax.nn.relu)


class NetworkProblem(NamedTuple):
    """The posterior of a network, its logits as a function, its random start, and the images it is judged on."""

    target: Target
    logits: Callable[[Position, Any], Any]
    start: Callable[[jax.Array], Position]
    seen: np.ndarray
    seen_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def problem(work: Work) -> NetworkProblem:
    """The network and images of the settings: "channels" makes it a convolutional one."""
    images = load(work["images"])
    side = images.train.shape[1]
    convolves = "channels" in work.settings
    shape = (-1, 1, side, side) if convolves else (-1, side**2)

    def build(key: jax.Array) -> eqx.Module:
        return cnn(key, side, work["channels"], work["hidden"]) if convolves else mlp(key, side, work["hidden"])

    train, test = images.train.reshape(shape), images.test.reshape(shape)
    module = eqx.filter_jit(build)(jax.random.key(0))
    rows = work["curve_rows"]
    return NetworkProblem(
        target=Target.from_module(module, modules.cross_entropy, (train, images.train_labels)),
        logits=modules.function_of(module),
        start=jax.jit(lambda key: modules.parameters(build(key))),
        seen=train[:rows],
        seen_labels=images.train_labels[:rows],
        test=test,
        test_labels=images.test_labels,
    )


def method(name: str, batch: int, h: float, friction: float, temperature: float = 1.0) -> Method:
    """A method by the paper's name, its step size and friction in mean units."""
    build: dict[str, Callable[[], Method]] = {
        "SGLD": lambda: recipes.sgld(batch, h),
        "pSGLD": lambda: recipes.psgld(batch, h),
        "SGHMC": lambda: recipes.sghmc(batch, h, friction),
        "CP-SGHMC": lambda: recipes.cp_sghmc(CLUSTERS, batch // CLUSTERS, h, friction),
        "EWSG": lambda: recipes.ewsg(batch, h, friction),
        "paired (ours)": lambda: recipes.paired(batch, h, friction),
    }
    made = build[name]()
    integrator: Any = made.integrator
    return made._replace(integrator=dataclasses.replace(integrator, units="mean", temperature=temperature))


def repeats(work: Work, here: NetworkProblem, name: str, how: Method) -> dict[str, Any]:
    """`repeats`: the result of each independent one, None if its chains diverged; `together`: of all chains of a run.

    At `paper` scale a repeat is a run of many chains, whose predictions are averaged; with one run it is a chain.
    """
    runs = [_run(work, here, name, how, seed) for seed in range(work["runs"])]
    first = runs[0]
    if len(runs) > 1:
        each = [None if value is None else _together(value) for value in runs]
    else:
        each = [None] * work["chains"] if first is None else first["chains"]
    return {"repeats": each, "together": first and first["together"], "stats": first and first["stats"]}


def _together(value: dict[str, Any]) -> dict[str, Any]:
    """A run of many chains as one repeat: the scores of its average, and the mean over chains of the rest."""
    curves = np.array([chain["curve"] for chain in value["chains"]])
    single = float(np.mean([chain["single_error"] for chain in value["chains"]]))
    passes = value["chains"][0]["passes"]
    return value["together"] | {"single_error": single, "curve": curves.mean(0).tolist(), "passes": passes}


def schedule(work: Work, here: NetworkProblem, how: Method) -> tuple[int, int, list[float]]:
    """The steps that the epochs pay for, `thin=` for the snapshots, and the data passes at each of these."""
    cost = int(how.estimator.cost(here.target.num_data).datum_gradients)
    steps = round(work["epochs"] * here.target.num_data) // cost
    thin = max(1, steps // work["snapshots"])
    return steps, thin, [k * thin * cost / here.target.num_data for k in range(1, steps // thin + 1)]


def _run(work: Work, here: NetworkProblem, name: str, how: Method, seed: int) -> dict[str, Any] | None:
    """All chains of one run: training error of single samples on the way, scores of averages over the last samples."""
    steps, thin, passes = schedule(work, here, how)

    def measure(run: Run) -> dict[str, Any]:
        draws = run.good_draws()
        kept = jax.tree.map(lambda leaf: leaf[:, -work["averaged"] :], draws)
        found = prediction.predict(here.logits, kept, here.test, "classes")
        last = prediction.predict(here.logits, jax.tree.map(lambda leaf: leaf[:, -1:], draws), here.test, "classes")
        chains = [
            prediction.score(found.chain(k), here.test_labels)._asdict()
            | {
                "single_error": prediction.score(last.chain(k), here.test_labels).error,
                "curve": curve,
                "passes": passes,
            }
            for k, curve in enumerate(curves(here, draws))
        ]
        stats = {key: float(np.nanmean(values[run.ok, -work["averaged"] :])) for key, values in run.stats.items()}
        return {"chains": chains, "together": prediction.score(found, here.test_labels)._asdict(), "stats": stats}

    part = work.sample(
        name,
        here.target,
        how,
        measure,
        init=here.start,
        seed=seed,
        num_chains=work["chains"],
        num_steps=steps,
        discard=0,
        thin=thin,
    )
    return part["value"]


def curves(here: NetworkProblem, draws: Position) -> list[list[float]]:
    """The share of wrong predictions of every single sample on training rows, chain by chain."""

    def error(chain: int, k: int) -> float:
        params = jax.tree.map(lambda leaf: leaf[chain, k], draws)
        found = prediction.probabilities(here.logits, params, here.seen)
        return float(np.mean(found.argmax(1) != here.seen_labels))

    num_chains, num_draws = jax.tree.leaves(draws)[0].shape[:2]
    return [[error(chain, k) for k in range(num_draws)] for chain in range(num_chains)]
