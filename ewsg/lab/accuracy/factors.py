"""`ewsg bench factors`: what coordinates, control variates, pairs and leverage buy, with every method tuned alike.

Every method runs in the problem's own coordinates and in planned ones (those of `ewsg.plan`), from the same start, with
the same budget and as many kept draws, at the best of eighteen settings: six steps × three frictions, found with other
seeds than those that are reported.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.console import Console

from ... import diagnostics, problems
from ..._core import pytree
from ..._engine import progress
from ...errors import NoPlan, unknown
from ...estimators import ControlVariate, Leverage, Paired, Uniform
from ...integrators import BAOAB
from ...planning.sampling import plan
from ...problems import Answer, Problem
from ...recipes import Method
from ...result.run import Run
from ...sampler import AbstractKernel, MethodInCoordinates
from ...target.coordinates import Dense
from ..folder import Folder
from .benchmark import SCALES, num_chains, run_with
from .factors_report import draw, tables
from .measures import MOST_FAILED, error_curve, measure
from .methods import EVALUATED_TWICE, METHODS, Builder

EXPERIMENT = "bench factors"
OWN, PLANNED = "own", "planned"
_OWN_FACTORS = ((0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (0.25, 1.0, 4.0))
"""Of the problem's own step size and friction."""
_PLANNED_SETTINGS = ((0.003, 0.01, 0.03, 0.1, 0.3, 0.9), (1.0, 3.0, 10.0))
"""Step sizes and frictions for a posterior near N(0, I)."""
_TUNING_CHAINS = 16
_TUNING_SEED = 1_000
_PROBES = 16


class View(NamedTuple):
    """A problem in some coordinates, and the settings that are tried there.

    Attributes:
        problem: the posterior of these coordinates.
        answer: its reference, with the start in these coordinates.
        steps: six step sizes.
        frictions: three frictions.
    """

    problem: Problem
    answer: Answer
    steps: tuple[float, ...]
    frictions: tuple[float, ...]


def _anchored(inner: Callable[[int], Any], evaluations: int = 2, order: int = 1) -> Builder:
    """A control variate at the starting point whose data cost `evaluations` gradients each."""

    def build(problem: Problem, start: Any, h: float) -> Method:
        estimator = ControlVariate(inner(problem.data_per_step // evaluations), anchor=start, order=order)
        return Method(estimator, BAOAB(h, problem.friction))

    return build


def _by_leverage(inner: Callable[[int], Any]) -> Builder:
    """The same with data drawn by their leverage at ±1 in every planned coordinate, as a plan draws them."""

    def build(problem: Problem, start: Any, h: float) -> Method | AbstractKernel:
        points = np.random.default_rng(0).choice([-1.0, 1.0], size=(_PROBES, len(start))).astype(start.dtype)
        return _anchored(lambda b: Leverage(inner(b), points=points))(problem, start, h)

    return build


IN_PLANNED: dict[str, Builder] = {
    "control variate + sequential": _anchored(lambda b: Paired(max(1, b // 2), "sequential")),
    "leverage": _by_leverage(Uniform),
    "leverage + sequential": _by_leverage(lambda b: Paired(max(1, b // 2), "sequential")),
    "second order": _anchored(Uniform, 4, order=2),
    "second order + sequential": _anchored(lambda b: Paired(max(1, b // 2), "sequential"), 4, order=2),
}
"""Methods of planned coordinates only; leverage and the second order are those of a control variate."""


def compare_factors(
    out: str | Path = "ewsg-factors",
    names: Sequence[str] = (),
    methods: Sequence[str] = (),
    num_seeds: int = 3,
    scale: str = "laptop",
) -> dict[str, Any]:
    """Runs the benchmark, or the rest of it; writes tables, a figure and the numbers to `out`.

    Args:
        out: folder for the files.
        names: problems (`ewsg.problems.names()`); all by default.
        methods: names of `METHODS` and `IN_PLANNED`; all by default.
        num_seeds: independent repeats at the best setting.
        scale: "smoke" or "laptop".
    """
    everything = METHODS | IN_PLANNED
    for kind, given, known in (("problem", names, problems.names()), ("method", methods, everything)):
        for name in given:
            if name not in known:
                raise unknown(kind, name, known)
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    folder = Folder(out, EXPERIMENT)
    chosen = list(methods) or list(everything)
    rows: list[dict[str, Any]] = []
    total = len(list(names) or problems.names()) * (len(chosen) + sum(name in METHODS for name in chosen))
    with progress.bar(total, None, "factors") as update:
        for name in list(names) or problems.names():
            for coordinates, view in _views(folder, name).items():
                for method in chosen:
                    if method in METHODS or coordinates == PLANNED:
                        rows.append(_row(folder, view, name, coordinates, method, num_seeds, scale))
                        update(len(rows), f"{name}, {coordinates} coordinates: {method}")
    results = {"scale": scale, "num_seeds": num_seeds, "rows": rows}
    folder.finish(results)
    console = Console(width=150)
    (folder.path / "table.md").write_text(tables(rows, console), encoding="utf-8")
    draw(rows, folder.path / "figure")
    console.print(f"\nWrote table.md, figure.png, figure.svg and results.json to {folder.path}.")
    return results


def _views(folder: Folder, name: str) -> dict[str, View]:
    """The problem in its own coordinates and, where there is a plan that whitens, in those."""
    problem = problems.load(name)
    answer = problems.answer(name, problem)
    steps, frictions = (
        tuple(common * factor for factor in factors)
        for common, factors in zip((problem.step_size, problem.friction), _OWN_FACTORS, strict=True)
    )
    views = {OWN: View(problem, answer, steps, frictions)}
    found = folder.part(f"{name}/coordinates", {"seed": _TUNING_SEED}, lambda: _coordinates(problem))
    if found is not None:
        views[PLANNED] = in_coordinates(problem, answer, np.array(found["center"]), np.array(found["root"]))
    return views


def _coordinates(problem: Problem) -> dict[str, Any] | None:
    """c and L of a plan, as lists; None where a plan does not whiten (networks) or there is none."""
    try:
        method = plan(problem.target, init=problem.init, seed=_TUNING_SEED, progress=False).method
    except NoPlan:
        return None
    if not isinstance(method, MethodInCoordinates):
        return None
    center = pytree.host_rows(jax.tree.map(np.asarray, method.coordinates.center), 0)
    return {"center": center.tolist(), "root": np.asarray(method.coordinates.root).tolist()}  # pyright: ignore[reportAttributeAccessIssue]


def in_coordinates(problem: Problem, answer: Answer, center: np.ndarray, root: np.ndarray) -> View:
    """The posterior of z, θ = c + L z, from the same start."""
    place = pytree.host_unraveller(problem.init)
    dtype = pytree.wide_dtype(problem.init)
    coordinates = Dense(place(center), np.asarray(root, dtype))
    start = np.linalg.solve(root, pytree.host_rows(jax.tree.map(np.asarray, answer.start), 0) - center)

    def observe(z: Any) -> Any:
        position = coordinates.place(z)
        return position if problem.observe is None else problem.observe(position)

    within = dataclasses.replace(
        problem, target=problem.target.in_coordinates(coordinates), init=start.astype(dtype), observe=observe
    )
    answer = answer._replace(start=start.astype(dtype))
    return View(within, answer, *_PLANNED_SETTINGS)


def _row(
    folder: Folder, view: View, name: str, coordinates: str, method: str, num_seeds: int, scale: str
) -> dict[str, Any]:
    """A method at the best of its settings."""
    build = (METHODS | IN_PLANNED)[method]
    budget = SCALES[scale][1] * view.problem.data_per_step * (2 if method in EVALUATED_TWICE else 1)
    title = f"{name}/{coordinates}/{method}"
    tried = {}
    for h, friction in itertools.product(view.steps, view.frictions):
        setting = {"step_size": h, "friction": friction, "budget": budget}
        tuning = setting | {"seed": _TUNING_SEED, "chains": _TUNING_CHAINS}
        tried[h, friction] = folder.part(f"{title}/tuning", tuning, lambda s=tuning: _error(view, build, s))
    row = {"problem": name, "coordinates": coordinates, "method": method}
    h, friction = min(tried, key=lambda settled: math.inf if tried[settled] is None else tried[settled])
    if tried[h, friction] is None:
        return row | {"seeds": []}
    setting = {"step_size": h, "friction": friction, "budget": budget, "chains": num_chains(view.answer, scale)}
    found = [
        folder.part(
            title, setting | {"seed": seed}, lambda s=setting, seed=seed: _measures(view, build, s | {"seed": seed})
        )
        for seed in range(num_seeds)
    ]
    return row | {"step_size": h, "friction": friction, "num_data": view.problem.target.num_data, "seeds": found}


def _drive(view: View, build: Builder, setting: dict[str, Any]) -> tuple[Problem, Run]:
    """The problem with this friction, and a run with this setting."""
    problem, start = dataclasses.replace(view.problem, friction=setting["friction"]), view.answer.start
    method = build(problem, start, setting["step_size"])
    return problem, run_with(method, problem, start, setting["seed"], setting["chains"], setting["budget"])


def _error(view: View, build: Builder, setting: dict[str, Any]) -> float | None:
    """The error of one chain after the whole budget; None if chains fail."""
    problem, run = _drive(view, build, setting)
    if 1 - run.ok.mean() > MOST_FAILED:
        return None
    error = error_curve(diagnostics.flatten(problem.seen(run.good_draws())), view.answer)[-1][1]
    return error if math.isfinite(error) else None


def _measures(view: View, build: Builder, setting: dict[str, Any]) -> dict[str, Any]:
    problem, run = _drive(view, build, setting)
    return measure(problem, view.answer, run)
