"""The kernels of one step, by JAX's profiler: where the time of a task of `speed.py` goes.

    python benchmarks/profile_loop.py C [uniform | ewsg | paired] [steps]

Prints the median time of each kernel times its number a step, the largest first, on one core. Kernels that run once a
step belong to the loop; the profile also sees what comes before it.
"""

import collections
import dataclasses
import gzip
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from tasks import TASKS


def main() -> None:
    """Profiles the steps of a task that has been compiled."""
    name, method, steps = (*sys.argv[1:], *("uniform", "100")[len(sys.argv) - 2 :])
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import jax
    import jax_sides

    count = int(steps)
    run = jax_sides.ours(dataclasses.replace(TASKS[name], method=method))
    run(0, count)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run(1, count)
        file = next(Path(folder).glob("**/*.trace.json.gz"))
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    kernels = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and not event["name"].startswith(("$", "Pjit", "Thunk", "Common")):
            kernels[event["name"]].append(event.get("dur", 0.0))
    rows = [(statistics.median(d) * len(d) / count, len(d) / count, k) for k, d in kernels.items() if len(d) >= count]
    for microseconds, often, kernel in sorted(rows, reverse=True)[:30]:
        print(f"{microseconds:9.1f} µs a step  {often:5.1f} times  {kernel[:80]}")


if __name__ == "__main__":
    main()
