"""Passes over the data that `ewsg.find_mode(method="subsamples")` takes, and how far from the mode it ends.

    python benchmarks/mode.py [--seeds 6] [--problems plain-1e4 covertype ...] [--json FILE]

Logistic regressions, prior N(0, 2.5²), from the origin. A pass is n datum gradients, subsamples included. The distance
is √((θ − θ̂)ᵀ H (θ − θ̂) / d), θ̂ by Newton's method in double precision, H the Hessian there: posterior standard
deviations. Seconds are wall-clock: the first seed's, which compiles, and the median of the others.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import ewsg

_PRECISION = 1 / 2.5**2
_CHUNK = 100_000


def simulated(n: int, d: int = 20, positives: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Normal features and an intercept, which gives the share of positives where one is asked for."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(n, d)).astype(np.float32)
    rows[:, 0] = 1
    predictor = rows @ (random.normal(size=d) / np.sqrt(d))
    low, high = (-30.0, 30.0) if positives else (0.0, 0.0)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if np.mean(1 / (1 + np.exp(-predictor - middle))) > positives else (middle, high)
    return rows, random.uniform(size=n) < 1 / (1 + np.exp(-predictor - low))


def published(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A data set with an intercept; the ten real columns of Covertype standardised, class 2 against the rest."""
    table = ewsg.datasets.load(name)
    features, labels = table.features, table.labels == 1
    if name == "covertype":
        features, labels = ewsg.datasets.standardize(features, columns=range(10))[0], table.labels == 2
    return np.concatenate([np.ones((len(features), 1), np.float32), features], 1), labels


PROBLEMS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "plain-1e4": lambda: simulated(10**4),
    "plain-1e5": lambda: simulated(10**5),
    "plain-1e6": lambda: simulated(10**6),
    "rare-1e5": lambda: simulated(10**5, positives=1e-3),
    "rare-1e6": lambda: simulated(10**6, positives=1e-3),
    "a9a": lambda: published("a9a"),
    "covertype": lambda: published("covertype"),
}


def newton(rows: np.ndarray, labels: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mode and the Hessian there, in float64."""
    theta = start.astype(np.float64)
    for _ in range(50):
        gradient, hessian = _PRECISION * theta, _PRECISION * np.eye(theta.size)
        for k in range(0, len(rows), _CHUNK):
            part = rows[k : k + _CHUNK].astype(np.float64)
            p = 1 / (1 + np.exp(-part @ theta))
            gradient = gradient + (p - labels[k : k + _CHUNK]) @ part
            hessian = hessian + (part * (p * (1 - p))[:, None]).T @ part
        step = np.linalg.solve(hessian, gradient)
        theta = theta - step
        if gradient @ step < 1e-10:
            break
    return theta, hessian


def measure(name: str, seeds: int) -> dict:
    """The figures of one problem, a list entry for each seed."""
    rows, labels = PROBLEMS[name]()
    n, d = rows.shape
    target = ewsg.models.logistic(rows, labels, prior_precision=_PRECISION)
    found, seconds = [], []
    for seed in range(seeds):
        began = time.perf_counter()
        found.append(ewsg.find_mode(target, jnp.zeros(d), method="subsamples", seed=seed))
        seconds.append(time.perf_counter() - began)
    exact, hessian = newton(rows, labels, np.asarray(found[0].position))
    errors = [np.asarray(mode.position, np.float64) - exact for mode in found]
    return {
        "problem": name,
        "n": n,
        "d": d,
        "passes": [round(mode.passes, 2) for mode in found],
        "distance": [round(float(np.sqrt(error @ hessian @ error / d)), 3) for error in errors],
        "estimated": [round(float(mode.distance), 3) for mode in found],
        "converged": sum(mode.converged for mode in found),
        "first_seconds": round(seconds[0], 2),
        "seconds": round(statistics.median(seconds[1:] or seconds), 2),
    }


def main() -> None:
    """Print a line per problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--json")
    options = parser.parse_args()
    print(
        f"{'problem':10} {'n':>8} {'d':>4}  passes (min median max)  sd from the mode (max)  converged  seconds (first)"
    )
    results = []
    for name in options.problems:
        row = measure(name, options.seeds)
        results.append(row)
        passes = row["passes"]
        print(
            f"{name:10} {row['n']:8} {row['d']:4}  {min(passes):6} {statistics.median(passes):8.2f} {max(passes):6}"
            f"  {max(row['distance']):20}  {row['converged']:>7}/{options.seeds}"
            f"  {row['seconds']:>7} ({row['first_seconds']})",
            flush=True,
        )
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
