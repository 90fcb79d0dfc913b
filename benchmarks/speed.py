"""Speed on one core: ours, BlackJAX, an expert's plain `lax.scan`, NumPy, posteriors on torch, and C.

    python benchmarks/speed.py [--tasks A B ...] [--repeats 5] [--core 0] [--json FILE]
    python benchmarks/speed.py --before COMMIT     our sides at that commit, beside ours now

Every side is a process of its own, pinned to the same core before JAX is imported; the sides take turns, and each turn
is one whole run after an untimed one that compiles. Times are CPU seconds, which a busy machine disturbs less. Ours is
the whole of `ewsg.sample` minus a run of one step: checks, fingerprint and compilation are not part of the loop.
"""

import argparse
import dataclasses
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import machine
from tasks import TASKS, TOLERANCE, Task, origin

HERE = Path(__file__).parent
TORCH = HERE / ".venv-torch" / "bin" / "python"
OURS = ("ours", "closed form", "EWSG", "paired")
ON_TORCH = ("posteriors", "torch")
FLOOR = "matrix products"
BEFORE = ", before"
SIDES = ("c", FLOOR, *OURS, "plain scan", "plain steps", "blackjax", "numpy", *ON_TORCH)


def sides_of(task: Task) -> tuple[str, ...]:
    """The sides of this task; where a step takes 2 or 100 data, also EWSG and paired selection with 2 x 1 or 2 x 50."""
    chosen = ("EWSG", "paired") if task.friction and task.batch in (2, 100) else ()
    if task.problem == "gaussian" and task.batch > 1:
        return ("ours", *chosen)
    if task.problem in ("mlp", "cnn"):
        steps = ("plain steps",) if task.problem == "cnn" else ()
        torch = ON_TORCH if task.friction else ()
        return (FLOOR, "ours", *chosen, "plain scan", *steps, "blackjax", *torch)
    torch = ("posteriors",) if task.problem == "logistic" and task.chains <= 10 and task.friction else ()
    closed = ("closed form",) if task.problem == "logistic" else ()
    return ("c", "ours", *closed, *chosen, "plain scan", "blackjax", "numpy", *torch)


def work(side: str, name: str) -> None:
    """The other end of `Worker`: one run for every line that comes in."""
    task = TASKS[name]
    run = _runner(side, task)
    run(0)
    setup = min(_seconds(lambda: run(0, 1))[1] for _ in range(3)) if side in OURS else 0.0
    print(json.dumps({"ready": True, "setup": setup}), flush=True)
    from tasks import verdict

    for line in sys.stdin:
        positions, seconds = _seconds(lambda seed=int(line): run(seed))
        judged = 0.0 if side == FLOOR else verdict(task, positions)
        print(json.dumps({"seconds": seconds - setup, "verdict": judged}), flush=True)


def _runner(side: str, task: Task):
    if side in ("c", "numpy"):
        import sides

        return getattr(sides, side)(task)
    if side == FLOOR:
        import sides

        return sides.products(task)
    if side in ON_TORCH:
        import torch_sides

        return (torch_sides.posteriors if side == "posteriors" else torch_sides.by_hand)(task)
    import jax_sides

    if side == "closed form":
        return jax_sides.ours(task, closed_form=True)
    if side in ("EWSG", "paired"):
        return jax_sides.ours(dataclasses.replace(task, method=side.lower()))
    named = {"plain scan": jax_sides.plain, "plain steps": jax_sides.stepwise, "blackjax": jax_sides.blackjax}
    return named.get(side, jax_sides.ours)(task)


def _seconds(run):
    began = time.process_time()
    result = run()
    return result, time.process_time() - began


class Worker:
    """A side in a process of its own."""

    def __init__(self, side: str, name: str, core: int, checkout: Path):
        python = str(TORCH) if side in ON_TORCH else sys.executable
        settings = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        settings |= {"PYTHONPATH": str(checkout), "EWSG_BENCH_CACHE": str(HERE / "build")}
        program = checkout / "benchmarks" / "speed.py"
        self.process = subprocess.Popen(
            [python, str(program), "--worker", side.removesuffix(BEFORE), "--tasks", name, "--core", str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | settings,
        )
        self.setup = self._answer()["setup"]

    def run(self, seed: int) -> dict:
        """One timed run."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a side stopped: its message is above")
        return json.loads(line)

    def stop(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(name: str, repeats: int, core: int, only: list[str] | None = None, before: Path | None = None) -> dict:
    """All sides of one task, taking turns."""
    task = TASKS[name]
    chosen = [side for side in sides_of(task) if not only or side in only]
    if before is not None:
        ours = [side for side in chosen if side in OURS]
        chosen = [label for side in ours for label in (side, side + BEFORE)]
    if not TORCH.exists() and set(ON_TORCH) & set(chosen):
        print(f"{name}: the sides on torch are skipped, no environment at {TORCH.parent.parent} (see torch_sides.py)")
        chosen = [side for side in chosen if side not in ON_TORCH]
    workers = {
        side: Worker(side, name, core, before if before and side.endswith(BEFORE) else HERE.parent) for side in chosen
    }
    results = {side: [] for side in chosen}
    for repeat in range(repeats):
        for side, worker in workers.items():
            results[side].append(worker.run(repeat + 1))
    for worker in workers.values():
        worker.stop()
    return {"task": task.name, "chain_steps": task.chain_steps, "sides": _judged(task, results)}


def _judged(task: Task, results: dict[str, list[dict]]) -> dict:
    """Seconds and ratios of each side, and whether its result agrees with ours."""
    begin = origin(task)
    verdicts = {side: statistics.mean(r["verdict"] for r in rows) - begin for side, rows in results.items()}
    best = {side: min(r["seconds"] for r in rows) for side, rows in results.items()}
    middle = {side: statistics.median(r["seconds"] for r in rows) for side, rows in results.items()}
    return {
        side: {
            "over_ours": middle[side] / middle["ours"],
            "over_ours_min": best[side] / best["ours"],
            "median_seconds": middle[side],
            "min_seconds": best[side],
            "nanoseconds_per_chain_step": 1e9 * middle[side] / task.chain_steps,
            "verdict": verdicts[side],
            "agrees": None
            if _other(task, side)
            else abs(verdicts[side] / verdicts["ours"] - 1) < TOLERANCE[task.problem],
        }
        for side in results
    }


def _other(task: Task, side: str) -> bool:
    """Whether a side's result is meant to differ: bare products have none, chosen minibatches heat a Gaussian less."""
    return side == FLOOR or (task.problem == "gaussian" and side.removesuffix(BEFORE) in ("EWSG", "paired"))


def show(results: list[dict]) -> None:
    """The table: how many times ours each side takes, then seconds."""
    from rich.console import Console
    from rich.table import Table

    table = Table("task", "side", "time / ours", "(minima)", "median s", "min s", "ns per chain step", "same result")
    for result in results:
        for side, row in result["sides"].items():
            table.add_row(
                result["task"],
                side,
                f"{row['over_ours']:.2f}",
                f"{row['over_ours_min']:.2f}",
                f"{row['median_seconds']:.3f}",
                f"{row['min_seconds']:.3f}",
                f"{row['nanoseconds_per_chain_step']:,.1f}",
                {True: "yes", None: "another chain"}.get(row["agrees"], f"NO: {row['verdict']:.4g}"),
            )
        table.add_section()
    Console(width=130).print(table)


def main() -> None:
    """Runs the tasks and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sides", nargs="+", choices=SIDES)
    parser.add_argument("--before", metavar="COMMIT", help="compare our sides with those of another commit")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        machine.stay_on([options.core])
        work(options.worker, options.tasks[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        run(options, checked_out(options.before, Path(folder)) if options.before else None)


def checked_out(commit: str, folder: Path) -> Path:
    """The files of a commit in a folder of their own."""
    archive = subprocess.run(["git", "-C", str(HERE.parent), "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder


def run(options: argparse.Namespace, before: Path | None) -> None:
    """Measures the tasks one after the other, and shows each as it is done."""
    results = []
    for name in options.tasks:
        results.append(measure(name, options.repeats, options.core, options.sides, before))
        show(results[-1:])
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    if len(results) > 1:
        show(results)


if __name__ == "__main__":
    main()
