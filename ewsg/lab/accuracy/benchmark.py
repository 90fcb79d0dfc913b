"""`ewsg bench accuracy`: problems × methods × step sizes × seeds, at equal datum gradients per step and in total."""

import functools
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from ... import problems
from ..._engine import progress
from ...errors import InputError, unknown
from ...problems import Answer, Problem
from ...sampling import sample
from ..folder import Folder
from .measures import measure
from .methods import EVALUATED_TWICE, METHODS, Builder
from .own import find, source
from .report import draw, table

EXPERIMENT = "bench accuracy"
GRID = (0.5, 1.0, 2.0)
"""Step sizes that every method is given, as multiples of the problem's common one."""
SCALES = {"smoke": (16, 800), "laptop": (128, 4000)}
"""Chains (fewer where there are more than 32 parameters), and steps of a method with `data_per_step` data each."""


def compare(
    out: str | Path = "ewsg-accuracy",
    names: Sequence[str] = (),
    methods: Sequence[str] = (),
    num_seeds: int = 3,
    scale: str = "laptop",
    grid: Sequence[float] = GRID,
) -> dict[str, Any]:
    """Runs the benchmark, or the rest of it; writes a table, a figure and the numbers to `out`.

    Args:
        out: folder for the files.
        names: problems (`ewsg.problems.names()`); all by default.
        methods: names of `METHODS`, or your own as `module:object`; all of `METHODS` by default.
        num_seeds: independent repeats; intervals come from them.
        scale: "smoke" or "laptop".
        grid: multiples of each problem's step size.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    names = list(names) or list(problems.names())
    chosen = {name: find(name) for name in methods or METHODS}
    for name in names:
        if name not in problems.names():
            raise unknown("problem", name, problems.names())
    folder = Folder(out, EXPERIMENT)
    built = {name: problems.load(name) for name in names}
    loaded = {name: (problem, problems.answer(name, problem)) for name, problem in built.items()}
    own = {method: {"source": source(method)} if source(method) else {} for method in chosen}
    began = time.perf_counter()
    rows = []
    with progress.bar(len(names) * len(chosen) * len(grid) * num_seeds, None, "accuracy") as update:
        for name, (problem, answer) in loaded.items():
            dimension = sum(np.size(leaf) for leaf in jax.tree.leaves(answer.start))
            for (method, build), factor, seed in itertools.product(chosen.items(), grid, range(num_seeds)):
                chains, steps = SCALES[scale]
                settings = {
                    "seed": seed,
                    "step_size": factor * problem.step_size,
                    "chains": max(16, min(chains, chains * 32 // dimension)),
                    "budget": steps * problem.data_per_step * (2 if method in EVALUATED_TWICE else 1),
                }
                compute = functools.partial(_run, problem, answer, build, **settings)
                numbers = folder.part(f"{name}/{method}", settings | own[method], compute)
                rows.append({"problem": name, "method": method, "factor": factor, **settings, **numbers})
                update(len(rows), f"{name}: {method}")
    results = {
        "scale": scale,
        "seeds": list(range(num_seeds)),
        "grid": list(grid),
        "problems": {name: _describe(*loaded[name]) for name in names},
        "rows": rows,
        "seconds": time.perf_counter() - began,
        "caption": "Error of one chain's mean and sd, in posterior sd, against the datum gradients it has used; every "
        "method at the step size of the grid that is best for it. Lines: mean over seeds.",
    }
    folder.finish(results)
    console = Console(width=150)
    text = table(results, console)
    (folder.path / "table.md").write_text(text, encoding="utf-8")
    draw(results, folder.path / "figure")
    console.print(f"\nWrote table.md, figure.png, figure.svg and results.json to {folder.path}.")
    return results


def _run(
    problem: Problem, answer: Answer, build: Builder, *, seed: int, step_size: float, chains: int, budget: int
) -> dict[str, Any]:
    """The measures of one run."""
    start = jax.tree.map(jnp.asarray, answer.start)
    method = build(problem, start, step_size)
    try:
        run = sample(
            problem.target,
            method,
            init=start,
            num_chains=chains,
            data_passes=budget / problem.target.num_data,
            discard=0,
            seed=seed,
            progress=False,
        )
    except InputError as error:
        return {"refused": str(error)}
    if run.settings["interrupted"]:
        raise KeyboardInterrupt
    return measure(problem, answer, run)


def _describe(problem: Problem, answer: Answer) -> dict[str, Any]:
    return {
        "title": problem.title,
        "step_size": problem.step_size,
        "friction": problem.friction,
        "data_per_step": problem.data_per_step,
        "num_data": problem.target.num_data,
        "reference": answer.source,
    }
