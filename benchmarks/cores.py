"""The speed-up by two cores: chains shared out by `sample(devices=2)`, against one core, in wall-clock seconds.

    python benchmarks/cores.py [--tasks A B B100]

Workers take turns: one on one core, one on two with JAX_NUM_CPU_DEVICES=2; the draws must be the same. The limit of the
machine is measured too: two processes that share nothing, each on a core of its own and with half of the chains,
against one with all of them, for ours and for C. Needs an idle machine.
"""

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time

import machine
from tasks import TASKS, Task

TURNS = 7


def work(side: str, name: str, cores: str, chains: int) -> None:
    """Runs the task for every line that comes in: seconds of the loop, and the sum of the last positions."""
    places = [int(core) for core in cores.split(",")]
    machine.stay_on(places)
    os.environ["JAX_NUM_CPU_DEVICES"] = str(len(places))
    task = dataclasses.replace(TASKS[name], chains=chains)
    run = _timed(side, task, len(places))
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)


def _timed(side: str, task: Task, devices: int):
    if side == "c":
        import sides

        program = sides.c(task)

        def run_c() -> dict:
            began = time.perf_counter()
            program(0)
            return {"seconds": time.perf_counter() - began}

        return run_c
    import jax_sides

    ours = jax_sides.ours(task, devices=devices)

    def run() -> dict:
        began = time.perf_counter()
        ours(0, 1)
        between = time.perf_counter()
        positions = ours(0)
        seconds = time.perf_counter() - between - (between - began)
        return {"seconds": seconds, "sum": float(abs(positions).sum())}

    return run


class Worker:
    """A process that runs a task on request."""

    def __init__(self, *what: str):
        command = [sys.executable, __file__, "--work", *what]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self) -> None:
        """Starts a run."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        """Returns its result."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


def measure(name: str) -> None:
    """Prints the ratios of one task."""
    task, (one, two) = TASKS[name], machine.cores()[:2]
    whole, half = str(task.chains), str(task.chains // 2)
    groups = {
        "one core": [Worker("ours", name, str(one), whole)],
        "devices=2": [Worker("ours", name, f"{one},{two}", whole)],
        "two processes": [Worker("ours", name, str(core), half) for core in (one, two)],
    }
    if task.problem in ("gaussian", "logistic"):
        groups["C, one core"] = [Worker("c", name, str(one), whole)]
        groups["C, two processes"] = [Worker("c", name, str(core), half) for core in (one, two)]
    seconds, sums = {group: [] for group in groups}, set()
    for turn in range(TURNS + 1):
        for group, workers in groups.items():
            for worker in workers:
                worker.ask()
            answers = [worker.answer() for worker in workers]
            if turn:
                seconds[group].append(max(answer["seconds"] for answer in answers))
            if group in ("one core", "devices=2"):
                sums.add(answers[0]["sum"])
    for worker in (worker for workers in groups.values() for worker in workers):
        worker.process.terminate()
    median = {group: statistics.median(values) for group, values in seconds.items()}
    print(f"{task.name}: one core {median['one core']:.3f} s; same draws on two: {len(sums) == 1}")
    for group, base in (("devices=2", "one core"), ("two processes", "one core"), ("C, two processes", "C, one core")):
        if group in median:
            print(f"  {group}: {median[base] / median[group]:.2f} times as fast as {base}")


def main() -> None:
    """Prints the ratios of every task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=["A", "B", "B100"], choices=sorted(TASKS))
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        side, name, cores, chains = args.work
        work(side, name, cores, int(chains))
        return
    for name in args.tasks:
        measure(name)


if __name__ == "__main__":
    main()
