"""What two cores give: chains shared out by `sample(devices=2)` against one core, wall-clock seconds of the loop.

    python benchmarks/cores.py

Two processes take turns: one on one core, one on two with JAX_NUM_CPU_DEVICES=2; the draws must be the same.
"""

import json
import os
import statistics
import subprocess
import sys
import time

from tasks import TASKS

TURNS = 7
NAMES = ("A", "B", "B100")


def work(devices: int) -> None:
    """Runs a task for every line that comes in: seconds of the loop, and the sum of the last positions."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:devices])
    os.environ["JAX_NUM_CPU_DEVICES"] = str(devices)
    import jax_sides

    runs = {name: jax_sides.ours(TASKS[name], devices=devices) for name in NAMES}
    for name in (line.strip() for line in sys.stdin):
        began = time.perf_counter()
        runs[name](0, 1)
        between = time.perf_counter()
        positions = runs[name](0)
        seconds = time.perf_counter() - between - (between - began)
        print(json.dumps({"seconds": seconds, "sum": float(abs(positions).sum())}), flush=True)


def ask(process: subprocess.Popen, name: str) -> dict:
    """One answer of a worker."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    """Prints the ratio for each task."""
    if len(sys.argv) > 1:
        work(int(sys.argv[1]))
        return
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = {count: subprocess.Popen([sys.executable, __file__, str(count)], **pipes) for count in (1, 2)}
    for name in NAMES:
        answers = {count: [] for count in workers}
        for _ in range(TURNS):
            for count, worker in workers.items():
                answers[count].append(ask(worker, name))
        one, two = (statistics.median(answer["seconds"] for answer in answers[count][1:]) for count in (1, 2))
        same = len({answer["sum"] for found in answers.values() for answer in found}) == 1
        print(f"{TASKS[name].name}: one core {one:.3f} s, two {two:.3f} s, {one / two:.2f} times; same draws: {same}")
    for worker in workers.values():
        worker.terminate()


if __name__ == "__main__":
    main()
