"""The kernels of one step, by JAX's profiler: where the time of a task of `speed.py` goes.

    python benchmarks/profile_loop.py C [uniform | ewsg | paired] [steps]

Prints the median time of each kernel times its number per step, the largest first, on one core. Kernels that run once
per step belong to the loop; the profile also has the work before it.
"""

import collections
import dataclasses
import gzip
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import machine
from tasks import TASKS


def kernels(run: Callable[[], object], count: int) -> list[tuple[float, float, str]]:
    """(microseconds per step, times per step, name) of the kernels of a run of `count` steps that has been compiled."""
    import jax

    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        file = next(Path(folder).glob("**/*.trace.json.gz"))
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    found = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and not event["name"].startswith(("$", "Pjit", "Thunk", "Common")):
            found[event["name"]].append(event.get("dur", 0.0))
    rows = [(statistics.median(d) * len(d) / count, len(d) / count, k) for k, d in found.items() if len(d) >= count]
    return sorted(rows, reverse=True)


def show(rows: list[tuple[float, float, str]]) -> None:
    """The largest kernels, a line each."""
    for microseconds, often, kernel in rows[:30]:
        print(f"{microseconds:9.1f} µs per step  {often:5.1f} times  {kernel[:80]}")


def main() -> None:
    """Profiles the steps of a task that has been compiled."""
    name, method, steps = (*sys.argv[1:], *("uniform", "100")[len(sys.argv) - 2 :])
    machine.stay_on(machine.cores()[:1])
    import jax_sides

    count = int(steps)
    run = jax_sides.ours(dataclasses.replace(TASKS[name], method=method))
    run(0, count)
    show(kernels(lambda: run(1, count), count))


if __name__ == "__main__":
    main()
