"""The timed tasks: the posterior, settings and length of each, and the check of its result."""

import dataclasses
import math
import os
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True)
class Task:
    """One row of the table.

    Attributes:
        name: a letter and a description.
        problem: "gaussian", "logistic", "mlp" or "cnn".
        chains: chains run together.
        steps: steps of one timed run.
        batch: data per step.
        step_size: h in sum units.
        friction: γ; None is overdamped (SGLD).
        method: "uniform", "ewsg" (two minibatches of half the size) or "paired".
    """

    name: str
    problem: str
    chains: int
    steps: int
    batch: int
    step_size: float
    friction: float | None
    method: str = "uniform"

    @property
    def chain_steps(self) -> int:
        """Steps of all chains together."""
        return self.chains * self.steps


_A = Task("A gaussian, SGHMC", "gaussian", 10_000, 1_500, 1, 1e-2, 10.0)
_B = Task("B covertype x10, SGHMC", "logistic", 10, 11_620, 50, 1e-3, 100.0)
_B100 = dataclasses.replace(_B, name="B covertype x100, SGHMC", chains=100, steps=1_200)
_WIDE = dataclasses.replace(_B, name="B covertype x10, SGHMC b = 100", batch=100, steps=4_000)
_C = Task("C mnist mlp, SGHMC", "mlp", 1, 600, 100, 8e-5, 24.0)
_D = Task("D mnist cnn, SGHMC", "cnn", 1, 20, 100, 3e-4, 24.0)

TASKS = {
    "A": _A,
    "A-wide": dataclasses.replace(_A, name="A gaussian, SGHMC b = 2", batch=2),
    "A-sgld": dataclasses.replace(_A, name="A gaussian, SGLD", step_size=2e-3, friction=None),
    "B": _B,
    "B100": _B100,
    "B-sgld": dataclasses.replace(_B, name="B covertype x10, SGLD", step_size=2e-5, friction=None, steps=4_000),
    "B-wide": _WIDE,
    "C": _C,
    "C-sgld": dataclasses.replace(_C, name="C mnist mlp, SGLD", step_size=1e-8, friction=None),
    "D": _D,
    "D-sgld": dataclasses.replace(_D, name="D mnist cnn, SGLD", step_size=3e-7, friction=None),
}
"""By their names for `speed.py --tasks`."""

PRECISION = {"gaussian": 0.0, "logistic": 10.0, "mlp": 10.0, "cnn": 10.0}
"""The precision of the Gaussian prior."""


def data(problem: str) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Centres, rows z = (2y − 1) x of unit length, or images and labels; kept as .npy after the first time."""
    if problem == "gaussian":
        return np.random.default_rng(42).normal(size=(50, 2)).astype(np.float32)
    cache = Path(os.environ.get("EWSG_BENCH_CACHE", Path(__file__).parent / "build"))
    cache.mkdir(parents=True, exist_ok=True)
    if problem == "logistic":
        path = cache / "covertype.npy"
        if not path.exists():
            np.save(path, _covertype())
        return np.load(path)
    paths = cache / "mnist_images.npy", cache / "mnist_labels.npy"
    if not paths[1].exists():
        import ewsg

        table = ewsg.datasets.load("mnist")
        np.save(paths[0], table.features)
        np.save(paths[1], table.labels)
    images = np.load(paths[0])
    return images.reshape(-1, 1, 28, 28) if problem == "cnn" else images, np.load(paths[1])


def shapes(problem: str) -> dict[str, tuple[int, ...]]:
    """The parameters of a network: the paper's perceptron 784–100–10, and its two convolutions with three layers."""
    if problem == "mlp":
        return {"w1": (784, 100), "b1": (100,), "w2": (100, 10), "b2": (10,)}
    return {
        "k1": (32, 1, 5, 5),
        "k2": (64, 32, 5, 5),
        "w1": (1024, 200),
        "b1": (200,),
        "w2": (200, 200),
        "b2": (200,),
        "w3": (200, 10),
        "b3": (10,),
    }


def weights(problem: str) -> dict[str, np.ndarray]:
    """Where a network starts: the same for all sides."""
    random = np.random.default_rng(7)
    scales = {name: 0.0 if len(shape) == 1 else 0.05 for name, shape in shapes(problem).items()}
    return {
        name: (scales[name] * random.standard_normal(shape)).astype(np.float32)
        for name, shape in shapes(problem).items()
    }


def _covertype() -> np.ndarray:
    import ewsg

    table = ewsg.datasets.load("covertype")
    features, _, _ = ewsg.datasets.standardize(table.features, columns=range(10))
    features = features / np.linalg.norm(features, axis=1, keepdims=True)
    return np.ascontiguousarray((2 * (table.labels == 2) - 1)[:, None] * features, np.float32)


def verdict(task: Task, positions: np.ndarray) -> float:
    """One number on which all sides must agree: how wide, or how good, the last positions are."""
    if task.problem == "gaussian":
        return float(positions.var(axis=0).mean() * 50)
    if task.problem == "logistic":
        rows = data("logistic")[::97]
        return float(-np.logaddexp(0, -(rows @ positions.T)).mean())
    images, labels = (array[:500] for array in data(task.problem))
    return float(np.mean([_log_likelihood(task.problem, row, images, labels) for row in positions]))


def origin(task: Task) -> float:
    """The verdict on a network's start, from which changes are measured; 0 for other problems."""
    if task.problem not in ("mlp", "cnn"):
        return 0.0
    start = weights(task.problem)
    return verdict(task, np.concatenate([start[name].ravel() for name in sorted(start)])[None])


def _log_likelihood(problem: str, row: np.ndarray, images: np.ndarray, labels: np.ndarray) -> float:
    """The log likelihood of a network whose parameters, in the order of their names, are the entries of `row`."""
    sizes = {name: math.prod(shape) for name, shape in sorted(shapes(problem).items())}
    parts = np.split(row, np.cumsum(list(sizes.values()))[:-1])
    theta = {name: part.reshape(shapes(problem)[name]) for name, part in zip(sizes, parts, strict=True)}
    hidden = images
    for name in ("k1", "k2") if problem == "cnn" else ():
        windows = np.lib.stride_tricks.sliding_window_view(hidden, (5, 5), (2, 3))
        maps = np.maximum(np.einsum("nchwij,ocij->nohw", windows, theta[name], optimize=True), 0)
        n, c, h, w = maps.shape
        hidden = maps.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))
    hidden = hidden.reshape(len(images), -1)
    layers = ("1", "2", "3") if problem == "cnn" else ("1", "2")
    for number in layers:
        hidden = hidden @ theta["w" + number] + theta["b" + number]
        hidden = hidden if number == layers[-1] else np.maximum(hidden, 0)
    return float(np.mean(hidden[np.arange(len(labels)), labels] - np.logaddexp.reduce(hidden, 1)))


TOLERANCE = {"gaussian": 0.06, "logistic": 0.01, "mlp": 0.15, "cnn": 0.15}
"""The relative difference between two sides' verdicts, less the origin, that chance explains."""
