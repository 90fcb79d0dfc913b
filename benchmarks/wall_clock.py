"""Seconds to 5 % accuracy on one core: a planned run, and exact samplers that are granted their tuning.

    python benchmarks/wall_clock.py [--out FOLDER] [--problems a9a covertype simulated] [--sides ...] [--growth]

Every side runs in a process of its own on one core; seconds are CPU seconds, so that others on the machine count less.

- ewsg: `ewsg.sample(target, accuracy=0.05)`, search, plan and compilation included ("cold"); again with another seed in
  the same process ("warm").
- laplace: the mode and the curvature there, the floor: no sampler is needed where its error is small enough.
- BlackJAX and NumPyro, NUTS: a lower bound. They are given the mode to start from and the metric (the Laplace
  approximation's variances, or all of its covariance: "dense") and a step size for nothing; each draw counts as
  independent. 1,600 draws leave an error of 0.025 in a mean. The time of a draw is that of a few, after compilation.

--growth: datum gradients per effective draw of a planned run, logistic regression with 20 parameters, as n grows.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import machine
import numpy as np

HERE = Path(__file__).parent
PROBLEMS = ("a9a", "covertype", "simulated")
SIDES = ("ewsg", "laplace", "blackjax", "blackjax dense", "numpyro", "numpyro dense")
SIZES = (10**4, 10**5, 10**6, 10**7)
_NEEDED = 1600
"""Independent draws for a standard error of 0.025 in a mean."""
_MOST_SECONDS = 60


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
    return {"rms_error": float(np.sqrt(np.mean(both**2))), "largest_error": float(both.max())}


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
            "verdict": run.verdict.word,
            **errors(known, flat.mean(0), np.cov(flat.T)),
        }
    return found["cold"] | {"warm": found["warm"]}


def laplace(target) -> tuple[np.ndarray, np.ndarray, dict]:
    """Mean and covariance at the mode, and what they cost."""
    from ewsg.target.mode import curvature, find_mode

    cpu = time.process_time()
    mode = find_mode(target, target.init, method="subsamples", seed=0)
    covariance = np.linalg.inv(np.asarray(curvature(target, mode.position), np.float64))
    return np.asarray(mode.position, np.float64), covariance, {"seconds": time.process_time() - cpu}


def centred_density(x: np.ndarray, labels: np.ndarray, scale: float, mode: np.ndarray):
    """log p(θ) − log p(mode), summed datum by datum: float32 is enough for any n."""
    import jax
    import jax.numpy as jnp

    signed = jnp.asarray(x * np.where(labels, 1, -1)[:, None].astype(np.float32))
    there = jnp.asarray(mode, jnp.float32)
    usual = jax.nn.softplus(-signed @ there)

    def density(theta):
        prior = jnp.sum(jnp.square(theta) - jnp.square(there)) / (2 * scale**2)
        return jnp.sum(usual - jax.nn.softplus(-signed @ theta)) - prior

    return density


def nuts(library: str, density, mode: np.ndarray, covariance: np.ndarray, dense: bool, seed: int) -> dict:
    """Seconds of `_NEEDED` draws of NUTS, from those of a few."""
    import jax
    import jax.numpy as jnp

    metric = covariance if dense else np.diag(covariance)
    root = np.linalg.cholesky(covariance) if dense else np.diag(np.sqrt(np.diag(covariance)))
    stiffest = np.linalg.eigvalsh(root.T @ np.linalg.inv(covariance) @ root)[-1]
    step = float(stiffest**-0.5)
    start = jnp.asarray(mode + np.linalg.cholesky(covariance) @ np.random.default_rng(seed).normal(size=len(mode)))
    start = start.astype(jnp.float32)
    if library == "blackjax":
        import blackjax

        kernel = blackjax.nuts(density, step, jnp.asarray(metric, jnp.float32))
        state, move = kernel.init(start), jax.jit(kernel.step)

        def advance(key, state):
            state, info = move(key, state)
            return state, int(info.num_integration_steps), float(info.acceptance_rate)
    else:
        from numpyro.infer import NUTS

        kernel = NUTS(
            potential_fn=lambda theta: -density(theta),
            step_size=step,
            inverse_mass_matrix=jnp.asarray(metric, jnp.float32),
            dense_mass=dense,
            adapt_step_size=False,
            adapt_mass_matrix=False,
        )
        state = kernel.init(jax.random.key(seed), 0, start, (), {})
        move = jax.jit(lambda state: kernel.sample(state, (), {}))

        def advance(key, state):
            state = move(state)
            return state, int(state.num_steps), float(state.accept_prob)

    key, began = jax.random.key(seed), time.process_time()
    state, *_ = advance(jax.random.fold_in(key, 0), state)
    compiling = time.process_time() - began
    began, steps, accepted, draws = time.process_time(), 0, 0.0, 0
    while draws < 5 or (time.process_time() - began < _MOST_SECONDS and draws < 200):
        draws += 1
        state, more, rate = advance(jax.random.fold_in(key, draws), state)
        steps, accepted = steps + more, accepted + rate
    each = (time.process_time() - began) / draws
    return {
        "seconds": compiling + _NEEDED * each,
        "seconds_per_draw": each,
        "leapfrogs_per_draw": steps / draws,
        "acceptance": accepted / draws,
        "draws_timed": draws,
        "step_size": step,
    }


def work(settings: dict) -> dict:
    """One side on one problem; in a process of its own."""
    machine.stay_on(machine.cores()[-1:])
    import ewsg

    if "growth" in settings:
        return growth(settings["growth"], settings["seed"])
    x, labels, scale = problem(settings["problem"])
    target = ewsg.models.logistic(x, labels, prior_scale=scale)
    known = reference(settings["problem"], Path(settings["out"]))
    if settings["side"] == "ewsg":
        return planned(target, known, settings["seed"])
    mean, covariance, cost = laplace(target)
    if settings["side"] == "laplace":
        return cost | errors(known, mean, covariance)
    library, *dense = settings["side"].split()
    return nuts(library, centred_density(x, labels, scale, mean), mean, covariance, bool(dense), settings["seed"])


def growth(n: int, seed: int) -> dict:
    """Datum gradients per effective draw, after the plan."""
    import ewsg
    from ewsg._core import ess

    target = ewsg.models.logistic(*simulated(n))
    began = time.process_time()
    run = ewsg.sample(target, accuracy=0.05, seed=seed, progress=False)
    effective = ess.ess(ewsg.diagnostics.flatten(run.good_draws()))
    sampling = run.cost.datum_gradients - run.cost.planning_gradients
    return {
        "per_effective_draw": sampling / float(np.median(effective)),
        "effective": float(np.median(effective)),
        "passes": run.cost.datum_gradients / n,
        "plan_passes": run.cost.planning_gradients / n,
        "mode": run.settings["plan"]["mode"][1],
        "verdict": run.verdict.word,
        "seconds": time.process_time() - began,
    }


def apart(settings: dict) -> dict:
    """`work` in a process of its own; what it says last if it fails."""
    command = [sys.executable, __file__, "--worker", json.dumps(settings)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return {"failed": answer.stderr.strip().splitlines()[-1]}
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
    for name in options.problems:
        for side in options.sides:
            settings = {"problem": name, "side": side, "seed": options.seed, "out": str(options.out)}
            row = folder.part(f"{name} {side}", settings, lambda settings=settings: apart(settings))
            found[f"{name}, {side}"] = row
            print(f"{name:10} {side:15} {json.dumps(row)}", flush=True)
    for n in options.sizes if options.growth else []:
        settings = {"growth": n, "seed": options.seed}
        row = folder.part(f"growth {n}", settings, lambda settings=settings: apart(settings))
        found[f"growth, {n}"] = row
        print(f"n = {n:>11,}  {json.dumps(row)}", flush=True)
    folder.finish({"rows": found, "time": time.strftime("%Y-%m-%d")})


if __name__ == "__main__":
    main()
