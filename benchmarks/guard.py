"""Fails when the library's loop is no longer twice as fast as an expert's plain `lax.scan`.

    python benchmarks/guard.py

Both run in one process on one core, in turns, on shorter versions of tasks A and B (B on made-up rows, so that no data
set is needed); the ratio of the median CPU seconds decides. Takes less than a minute.
"""

import dataclasses
import statistics
import sys
import time

import machine
import numpy as np
import tasks

LIMIT = 2.0
REPEATS = 7


def seconds(run, *arguments) -> float:
    """CPU seconds of one run."""
    began = time.process_time()
    run(*arguments)
    return time.process_time() - began


def ratio(task: tasks.Task) -> float:
    """The time of the plain loop over ours."""
    import jax_sides

    ours, plain = jax_sides.ours(task), jax_sides.plain(task)
    ours(0)
    plain(0)
    turns = [(seconds(ours, turn) - seconds(ours, turn, 1), seconds(plain, turn)) for turn in range(1, REPEATS + 1)]
    mine, theirs = (statistics.median(side) for side in zip(*turns, strict=True))
    print(f"{task.name}: ours {mine:.3f} s, plain lax.scan {theirs:.3f} s, ratio {theirs / mine:.2f}")
    return theirs / mine


def made_up_rows() -> np.ndarray:
    """Rows of unit length, as many and as wide as Covertype's."""
    rows = np.random.default_rng(0).normal(size=(581_012, 54)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main() -> None:
    """Prints both ratios; exits with 1 if one is under the limit."""
    machine.stay_on(machine.cores()[:1])
    import jax_sides

    rows = made_up_rows()
    jax_sides.data = lambda problem: rows if problem == "logistic" else tasks.data(problem)
    small = (
        dataclasses.replace(tasks.TASKS["A"], steps=300),
        dataclasses.replace(tasks.TASKS["B"], steps=1_500),
    )
    if min([ratio(task) for task in small]) < LIMIT:
        sys.exit(f"the loop has become slow: a ratio is under {LIMIT}")


if __name__ == "__main__":
    main()
