"""Seconds to 5 % accuracy on one core: a planned run, and exact samplers that are granted their tuning.

    python benchmarks/wall_clock.py [--out FOLDER] [--problems a9a covertype simulated] [--sides ...] [--growth]

Every side runs in a process of its own on one core; seconds are CPU seconds, so that others on the machine count less.

- ewsg: `ewsg.sample(target, accuracy=0.05)`, search, plan and compilation included ("cold"); again with another seed in
  the same process ("warm").
- laplace: the mode and the curvature there, the floor: no sampler is needed where its error is small enough.
- the exact samplers of exact_sides.py, with which Monte-Carlo errors are the same, 0.025: NUTS of BlackJAX, NumPyro and
  nutpie, and NumPyro's HMCECS. Their warm-up is granted. NumPyro and nutpie have to be installed beside this project; a
  side that is missing is left out.

--growth: datum gradients per effective draw of a planned run, logistic regression with 20 parameters, as n grows.
wall_clock_figure.py writes the table and the figure.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import exact_sides
import machine
import numpy as np
from exact_sides import Laplace

HERE = Path(__file__).parent
PROBLEMS = ("a9a", "covertype", "simulated")
NUTS = ("blackjax", "blackjax dense", "numpyro", "numpyro dense")
SIDES = ("laplace", "ewsg", *NUTS, "nutpie", "hmcecs")
SIZES = (10**4, 10**5, 10**6, 10**7)


def simulated(n: int, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Rows N(0, I) with an intercept; labels from the model itself."""
    random = np.random.default_rng(0)
    x = random.standard_normal((n, d), np.float32)
    x[:, 0] = 1
    theta = random.normal(size=d).astype(np.float32) / 2
    return x, random.random(n, np.float32) < 1 / (1 + np.exp(-x @ theta))


def problem(name: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows, labels and the prior's scale of a logistic regression."""
    if name == "a9a":
        from ewsg import datasets, models

        table = datasets.load("a9a")
        return models.with_intercept(table.features.astype(np.float32)), np.asarray(table.labels), 1.0
    if name == "covertype":
        import promise

        return *promise.covertype_data(), 2.5
    return *simulated(10**6), 2.5


def reference(name: str, out: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """What is seen of the parameters (a matrix), and its means and sds; None if there is no reference."""
    from ewsg import problems

    if name == "a9a":
        answer = problems.answer("a9a")
        return np.asarray(problem("a9a")[0][::1600][:20], np.float64), answer.mean, answer.sd
    path = out.parent / "covertype-reference.npz"
    if name == "covertype" and path.exists():
        found = np.load(path)
        return np.eye(len(found["mean"])), found["mean"], found["sd"]
    return None


def errors(known, mean: np.ndarray, cov: np.ndarray) -> dict:
    """How far a mean and a covariance are from the reference, in its sd."""
    if known is None:
        return {}
    shown, true_mean, true_sd = known
    off = (shown @ mean - true_mean) / true_sd
    sd = np.sqrt(np.einsum("ij,jk,ik->i", shown, cov, shown)) / true_sd - 1
    both = np.abs(np.concatenate([off, sd]))
    return {
        "rms_error": float(np.sqrt(np.mean(both**2))),
        "largest_error": float(both.max()),
        "numbers": len(both),
        "within": int((both <= 0.05).sum()),
    }


def planned(target, known, seed: int) -> dict:
    """A planned run, cold and warm."""
    import ewsg

    found = {}
    for name, own in (("cold", seed), ("warm", seed + 1)):
        began, cpu = time.perf_counter(), time.process_time()
        run = ewsg.sample(target, accuracy=0.05, seed=own, progress=False)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - began
        flat = ewsg.diagnostics.flatten(run.good_draws()).reshape(-1, len(target.init)).astype(np.float64)
        found[name] = {
            "seconds": cpu,
            "wall_seconds": wall,
            "compile_seconds": run.cost.compile_seconds,
            "passes": run.cost.datum_gradients / target.num_data,
            "plan_passes": run.cost.planning_gradients / target.num_data,
            "verdict": run.verdict.word,
            "notes": {key: note[0] for key, note in run.settings["plan"].items()},
            **errors(known, flat.mean(0), np.cov(flat.T)),
        }
    return found["cold"] | {"warm": found["warm"]}


def laplace(target, path: Path) -> tuple[Laplace, dict]:
    """Mean and covariance at the mode, and what they cost; kept for the sides that are granted them."""
    from ewsg.target.mode import curvature, find_mode

    if path.exists():
        kept = np.load(path)
        return Laplace(kept["mean"], kept["covariance"]), {}
    cpu = time.process_time()
    mode = find_mode(target, target.init, method="subsamples", seed=0)
    covariance = np.linalg.inv(np.asarray(curvature(target, mode.position), np.float64))
    cost = {"seconds": time.process_time() - cpu}
    np.savez(path, mean=np.asarray(mode.position, np.float64), covariance=covariance)
    return Laplace(np.asarray(mode.position, np.float64), covariance), cost


def work(settings: dict) -> dict:
    """One side on one problem; in a process of its own."""
    machine.stay_on(machine.cores()[-1:])
    import ewsg

    if "growth" in settings:
        return growth(settings["growth"], settings["seed"])
    side, out = settings["side"], Path(settings["out"])
    x, labels, scale = problem(settings["problem"])
    target = ewsg.models.logistic(x, labels, prior_scale=scale)
    known = reference(settings["problem"], out)
    if side == "ewsg":
        return planned(target, known, settings["seed"])
    path = out.parent / f"laplace-{settings['problem']}.npz"
    if side == "laplace":
        path.unlink(missing_ok=True)
    found, cost = laplace(target, path)
    if side == "laplace":
        return cost | errors(known, *found)
    if side == "hmcecs":
        row = exact_sides.hmcecs(x, labels, scale, found, settings["seed"])
        return row | errors(known, np.array(row.pop("mean")), np.array(row.pop("covariance")))
    density = exact_sides.centred_density(x, labels, scale, found.mean)
    if side == "nutpie":
        return exact_sides.nutpie(density, found, settings["seed"])
    library, *dense = side.split()
    return exact_sides.nuts(library, density, found, bool(dense), settings["seed"])


def growth(n: int, seed: int) -> dict:
    """Datum gradients per effective draw, after the plan."""
    import ewsg
    from ewsg._core import ess

    target = ewsg.models.logistic(*simulated(n))
    began = time.process_time()
    run = ewsg.sample(target, accuracy=0.05, seed=seed, progress=False)
    seconds = time.process_time() - began
    effective = float(np.median(ess.ess(ewsg.diagnostics.flatten(run.good_draws()))))
    sampling = run.cost.datum_gradients - run.cost.planning_gradients
    return {
        "per_effective_draw": sampling / effective,
        "effective": effective,
        "passes": run.cost.datum_gradients / n,
        "plan_passes": run.cost.planning_gradients / n,
        "mode": run.settings["plan"]["mode"][1],
        "notes": {key: note[0] for key, note in run.settings["plan"].items()},
        "verdict": run.verdict.word,
        "seconds": seconds,
        "compile_seconds": run.cost.compile_seconds,
    }


def apart(settings: dict) -> dict:
    """`work` in a process of its own; RuntimeError with what it says last if it fails."""
    command = [sys.executable, __file__, "--worker", json.dumps(settings)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(answer.stderr.strip().splitlines()[-1])
    return json.loads(answer.stdout.splitlines()[-1])


def main() -> None:
    """Runs what is missing; writes results.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "build" / "wall-clock")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(json.loads(options.worker))))
        return
    from ewsg.lab.folder import Folder

    options.out.parent.mkdir(parents=True, exist_ok=True)
    folder = Folder(options.out, "benchmark wall clock")
    found: dict[str, dict] = {}
    parts = [
        (f"{name}, {side}", {"problem": name, "side": side, "seed": options.seed, "out": str(options.out)})
        for name in options.problems
        for side in options.sides
    ]
    if options.growth:
        parts += [(f"growth, {n}", {"growth": n, "seed": options.seed}) for n in options.sizes]
    for name, settings in parts:
        try:
            found[name] = folder.part(name, settings, lambda settings=settings: apart(settings))
            print(f"{name:25} {json.dumps(found[name])}", flush=True)
        except RuntimeError as error:
            print(f"{name:25} failed: {error}", flush=True)
    folder.finish({"rows": found, "time": time.strftime("%Y-%m-%d")})


if __name__ == "__main__":
    main()
