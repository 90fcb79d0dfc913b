"""`ewsg bench accuracy`: problems × methods × step sizes × seeds, at equal datum gradients per step and in total."""

import functools
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console

from ... import problems
from ..._core import pytree
from ..._engine import progress
from ..._engine.plan import count_steps
from ...errors import InputError, unknown
from ...planning.goal import Goal
from ...planning.sampling import sample_planned
from ...problems import Answer, Problem
from ...result.run import Run
from ...sampler import AbstractKernel, compose
from ...sampling import sample
from ..folder import Folder
from .measures import measure
from .methods import EVALUATED_TWICE, METHODS, PLAN, Builder
from .own import find, source
from .report import draw, table

EXPERIMENT = "bench accuracy"
GRID = (0.5, 1.0, 2.0)
"""Step sizes that every method is given, as multiples of the problem's common one."""
SCALES = {"smoke": (16, 800), "laptop": (128, 4000)}
"""Chains (fewer where there are more than 32 parameters), and steps of a method with `data_per_step` data each."""

_DRAWS = 4000
"""Kept of every chain, so that thinning adds nothing to an error: √(1.5/2000) = 0.03 if they were independent."""


def compare(
    out: str | Path = "ewsg-accuracy",
    names: Sequence[str] = (),
    methods: Sequence[str] = (),
    num_seeds: int = 3,
    scale: str = "laptop",
    grid: Sequence[float] = GRID,
    first_seed: int = 0,
) -> dict[str, Any]:
    """Runs the benchmark, or the rest of it; writes a table, a figure and the numbers to `out`.

    Args:
        out: folder for the files.
        names: problems (`ewsg.problems.names()`); all by default.
        methods: names of `METHODS`, "plan", or your own as `module:object`; "plan" and all of `METHODS` by default.
        num_seeds: independent repeats; intervals come from them.
        scale: "smoke" or "laptop".
        grid: multiples of each problem's step size; "plan" is given none.
        first_seed: the others follow.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    names = list(names) or list(problems.names())
    chosen = {name: None if name == PLAN else find(name) for name in methods or (*METHODS, PLAN)}
    for name in names:
        if name not in problems.names():
            raise unknown("problem", name, problems.names())
    folder = Folder(out, EXPERIMENT)
    built = {name: problems.load(name) for name in names}
    loaded = {name: (problem, problems.answer(name, problem)) for name, problem in built.items()}
    own = {method: {"source": source(method)} if source(method) else {} for method in chosen}
    seeds = range(first_seed, first_seed + num_seeds)
    tried = [(method, factor) for method in chosen for factor in ([1.0] if method == PLAN else grid)]
    began = time.perf_counter()
    rows = []
    with progress.bar(len(names) * len(tried) * num_seeds, None, "accuracy") as update:
        for name, (problem, answer) in loaded.items():
            for (method, factor), seed in itertools.product(tried, seeds):
                settings = {
                    "seed": seed,
                    "step_size": None if method == PLAN else factor * problem.step_size,
                    "chains": num_chains(answer, scale),
                    "budget": SCALES[scale][1] * problem.data_per_step * (2 if method in EVALUATED_TWICE else 1),
                }
                compute = functools.partial(_run, problem, answer, chosen[method], **settings)
                numbers = folder.part(f"{name}/{method}", settings | own[method], compute)
                rows.append({"problem": name, "method": method, "factor": factor, **settings, **numbers})
                update(len(rows), f"{name}: {method}")
    results = {
        "scale": scale,
        "seeds": list(seeds),
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
    problem: Problem,
    answer: Answer,
    build: Builder | None,
    *,
    seed: int,
    step_size: float | None,
    chains: int,
    budget: int,
) -> dict[str, Any]:
    """The measures of one run; without a builder, of a planned one."""
    try:
        if build is None or step_size is None:
            run = _planned(problem, seed, chains, budget)
        else:
            start = jax.tree.map(jnp.asarray, answer.start)
            run = run_with(build(problem, start, step_size), problem, start, seed, chains, budget)
    except InputError as error:
        return {"refused": str(error)}
    if run.settings["interrupted"]:
        raise KeyboardInterrupt
    return measure(problem, answer, run)


def num_chains(answer: Answer, scale: str) -> int:
    """Chains of one run: fewer where there are more than 32 parameters, but at least 16."""
    chains = SCALES[scale][0]
    return max(16, min(chains, chains * 32 // pytree.size(answer.start)))


def run_with(method: Any, problem: Problem, start: Any, seed: int, chains: int, budget: int) -> Run:
    """The whole budget of each chain with one method, from the posterior mean."""
    passes = budget / problem.target.num_data
    parts = (method, None) if isinstance(method, AbstractKernel) else (method.estimator, method.integrator)
    steps = count_steps(compose(problem.target, *parts), None, passes)
    return sample(
        problem.target,
        method,
        init=start,
        num_chains=chains,
        data_passes=passes,
        discard=0,
        thin=max(1, steps // _DRAWS),
        seed=seed,
        progress=False,
    )


def _planned(problem: Problem, seed: int, chains: int, budget: int) -> Run:
    """The budget of all chains together, from the problem's starting point; the plan is paid out of it."""
    return sample_planned(
        problem.target,
        Goal(accuracy=None, budget=budget * chains, num_chains=chains, pooled=False),
        init=problem.init,
        seed=seed,
        rng=None,
        collect=None,
        progress=False,
        save_to=None,
        devices=1,
    )


def _describe(problem: Problem, answer: Answer) -> dict[str, Any]:
    return {
        "title": problem.title,
        "step_size": problem.step_size,
        "friction": problem.friction,
        "data_per_step": problem.data_per_step,
        "num_data": problem.target.num_data,
        "reference": answer.source,
    }
