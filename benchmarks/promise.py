"""Is the promise kept? `ewsg.sample(target, accuracy=0.05)` against reference posteriors, over many seeds.

    python benchmarks/promise.py [--out FOLDER] [--problems pima ...] [--seeds 30 31 ...] [--covertype]

Of every run: the verdict, the share of all means and sds within the accuracy of the reference, the largest errors, and
what it cost. An interrupted benchmark goes on where it stopped. References are those of `ewsg.problems`; of Covertype
(logistic regression, n = 581,012, d = 55), importance sampling from a Gaussian with the moments of a longer run.
"""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import ewsg
from ewsg import problems
from ewsg.errors import InputError
from ewsg.lab.folder import Folder

HERE = Path(__file__).parent
SMALL = [name for name in problems.names() if name != "network"]
COVERTYPE = "covertype"
_ACCURACY = 0.05
_BLOCK = 8192


class Case(NamedTuple):
    """A posterior, where the search starts, and the reference's means and sds."""

    target: ewsg.Target
    init: object
    seen: object
    mean: np.ndarray
    sd: np.ndarray


def small(name: str) -> Case:
    """A problem of the library."""
    problem = problems.load(name)
    answer = problems.answer(name, problem)
    return Case(problem.target, problem.init, problem.seen, answer.mean, answer.sd)


def covertype_data() -> tuple[np.ndarray, np.ndarray]:
    """The ten measured columns standardised, the 44 indicators as they are, an intercept; class 2 against the rest."""
    table = ewsg.datasets.load("covertype")
    columns = ewsg.datasets.standardize(table.features, columns=range(10))[0]
    return np.column_stack([np.ones(len(columns)), columns]).astype(np.float32), table.labels == 2


def covertype(path: Path, draws: int = 20_000) -> Case:
    """Covertype, with its reference, which is made once and kept in `path`."""
    x, positive = covertype_data()
    target = ewsg.models.logistic(x, positive)
    if not path.exists():
        began = time.perf_counter()
        run = ewsg.sample(target, accuracy=0.03, seed=1000, progress=False)
        flat = ewsg.diagnostics.flatten(run.draws).reshape(-1, x.shape[1]).astype(np.float64)
        center, root = flat.mean(0), np.linalg.cholesky(np.cov(flat.T))
        z = np.random.default_rng(0).normal(size=(draws, len(center)))
        theta = center + z @ root.T
        log_weight = _log_likelihood(x, positive, theta) - 0.5 * (theta**2).sum(1) / 2.5**2 + 0.5 * (z**2).sum(1)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        mean = weight @ theta
        sd = np.sqrt(weight @ (theta - mean) ** 2)
        ess = 1 / (weight**2).sum()
        np.savez(path, mean=mean, sd=sd, ess=ess)
        print(f"covertype: reference of {ess:,.0f} effective draws, {time.perf_counter() - began:.0f} s", flush=True)
    found = np.load(path)
    return Case(target, target.init, lambda draws: draws, found["mean"], found["sd"])


def _log_likelihood(x: np.ndarray, positive: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Up to a constant: each datum's value at the mean draw is taken off, so that float32 is enough."""
    signed = x * np.where(positive, 1, -1)[:, None].astype(np.float32)
    signed = np.concatenate([signed, np.zeros((-len(signed) % _BLOCK, x.shape[1]), np.float32)])
    blocks = jnp.asarray(signed.reshape(-1, _BLOCK, x.shape[1]))
    center = jnp.asarray(theta.mean(0), jnp.float32)

    @jax.jit
    def total(some: jax.Array) -> jax.Array:
        def add(sums: jax.Array, block: jax.Array) -> tuple[jax.Array, None]:
            usual = jax.nn.softplus(-block @ center)
            return sums + jnp.sum(usual[:, None] - jax.nn.softplus(-block @ some.T), 0), None

        return jax.lax.scan(add, jnp.zeros(len(some)), blocks)[0]

    parts = [total(jnp.asarray(theta[i : i + 250], jnp.float32)) for i in range(0, len(theta), 250)]
    return np.concatenate([np.asarray(part, np.float64) for part in parts])


def measure(case: Case, seed: int) -> dict:
    """One run, and how far it is from the reference."""
    began = time.perf_counter()
    try:
        run = ewsg.sample(case.target, accuracy=_ACCURACY, init=case.init, seed=seed, progress=False)
    except InputError as error:
        return {"verdict": "refused", "why": str(error)}
    seconds = time.perf_counter() - began
    draws = ewsg.diagnostics.flatten(case.seen(run.good_draws()))
    means = np.abs(draws.mean((0, 1)) - case.mean) / case.sd
    sds = np.abs(draws.std((0, 1)) / case.sd - 1)
    everything = np.concatenate([means, sds])
    verdict, n = run.verdict, case.target.num_data
    return {
        "verdict": verdict.word,
        "objections": list(verdict.objections),
        "numbers": len(everything),
        "within": int((everything <= _ACCURACY).sum()),
        "largest_mean_error": float(means.max()),
        "largest_sd_error": float(sds.max()),
        "rms_error": float(np.sqrt(np.mean(everything**2))),
        "mcse": verdict.mcse,
        "plan_passes": run.cost.planning_gradients / n,
        "passes": run.cost.datum_gradients / n,
        "seconds": seconds,
        "compile_seconds": run.cost.compile_seconds,
        "plan": {name: note[0] for name, note in run.settings["plan"].items()},
    }


def line(name: str, seed: int | str, row: dict) -> str:
    """A run in one line."""
    if "within" not in row:
        return f"{name:13} {seed:>4}  {row['verdict']}: {row['why']}"
    share = 100 * row["within"] / row["numbers"]
    return (
        f"{name:13} {seed:>4}  {row['verdict']:9} {share:5.1f} % within {_ACCURACY:g}  largest error of a mean "
        f"{row['largest_mean_error']:.3f}, of an sd {row['largest_sd_error']:.3f}  passes {row['passes']:8.1f}, plan "
        f"{row['plan_passes']:7.1f}  {row['seconds']:5.0f} s  {'+'.join(row['objections'])}"
    )


def total(rows: list[dict]) -> dict:
    """All seeds of one problem together."""
    reached = [row for row in rows if row["verdict"] == "reached"]
    ran = [row for row in rows if "within" in row]
    return {
        "runs": len(rows),
        "reached": len(reached),
        "within": sum(row["within"] for row in reached),
        "numbers": sum(row["numbers"] for row in reached),
        "largest_mean_error": max((row["largest_mean_error"] for row in reached), default=0.0),
        "largest_sd_error": max((row["largest_sd_error"] for row in reached), default=0.0),
        "passes": float(np.median([row["passes"] for row in ran])) if ran else 0.0,
        "plan_passes": float(np.median([row["plan_passes"] for row in ran])) if ran else 0.0,
        "seconds": float(np.median([row["seconds"] for row in ran])) if ran else 0.0,
    }


def table(totals: dict[str, dict]) -> str:
    """One row per problem, in Markdown."""
    lines = [
        f"| problem | reached | means and sds within {_ACCURACY:g} | largest error of a mean | of an sd | passes "
        "| of these, plan | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, row in totals.items():
        share = 100 * row["within"] / max(row["numbers"], 1)
        lines.append(
            f"| {name} | {row['reached']} of {row['runs']} | {row['within']:,} of {row['numbers']:,} ({share:.1f} %) "
            f"| {row['largest_mean_error']:.3f} | {row['largest_sd_error']:.3f} | {row['passes']:,.0f} "
            f"| {row['plan_passes']:,.0f} | {row['seconds']:.0f} |"
        )
    return "\n".join([*lines, ""])


def main() -> None:
    """Runs what is missing; writes results.json and table.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "build" / "promise")
    parser.add_argument("--problems", nargs="*", default=SMALL, choices=SMALL)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(30, 40)))
    parser.add_argument("--covertype", action="store_true", help="Covertype too, with the first three of the seeds")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    folder = Folder(options.out, "benchmark promise")
    found: dict[str, list[dict]] = {}
    for name in [*options.problems, *([COVERTYPE] if options.covertype else [])]:
        path = options.out.parent / "covertype-reference.npz"
        case = covertype(path) if name == COVERTYPE else small(name)
        for seed in options.seeds[:3] if name == COVERTYPE else options.seeds:
            row = folder.part(name, {"seed": seed}, lambda case=case, seed=seed: measure(case, seed))
            print(line(name, seed, row), flush=True)
            found.setdefault(name, []).append({"seed": seed, **row})
    totals = {name: total(rows) for name, rows in found.items()}
    folder.finish({"accuracy": _ACCURACY, "rows": found, "totals": totals, "time": time.strftime("%Y-%m-%d")})
    text = table(totals)
    (folder.path / "table.md").write_text(text, encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
