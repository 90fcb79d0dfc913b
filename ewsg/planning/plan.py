"""`ewsg.plan`: how to sample a posterior, found out by measuring; and the runs that follow it."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import jax

from .._core import process, pytree
from .._core.component import check_count, check_positive
from .._core.types import Position
from .._engine import interrupt, placement, progress as _progress, start as _start
from ..collect import AbstractCollector, Draws, as_collector, check_collector
from ..errors import InputError, shown
from ..result import storage
from ..result.autosave import Autosave
from ..result.cost import RunCost
from ..result.run import Run
from ..running import explained
from ..sampler import Method
from ..target.target import Target
from . import rule
from .accuracy import Outcome, error_of, run_to_goal
from .attempt import Driven
from .planner import Goal, NoPlan, Planner

_FEWEST_CHAINS = 8
_FINEST_ACCURACY = 1e-3
DEFAULT_ACCURACY = 0.05
DEFAULT_CHAINS = 32


@dataclasses.dataclass(frozen=True)
class Plan:
    """How to sample a posterior: what `ewsg.plan` returns, and `ewsg.sample(target, plan)` takes.

    Attributes:
        accuracy: of every mean and sd, in posterior sd, that it was made for.
        method: estimator, integrator and coordinates.
        notes: every number of the plan by name: (value, where it came from).
        pilot: the run that accepted it; its draws are draws of the posterior.
    """

    accuracy: float
    method: Method
    notes: dict[str, tuple[Any, str]]
    pilot: Run

    def save(self, path: str | os.PathLike) -> None:
        """Writes the plan, with its pilot, to one file: `ewsg.load` reads it as a run, `ewsg.resume` goes on with it."""
        self.pilot.save(path)

    def __str__(self) -> str:
        width = max(len(name) for name in self.notes)
        shown_numbers = {
            name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, (value, _) in self.notes.items()
        }
        middle = max(len(text) for text in shown_numbers.values())
        rows = [f"{name:<{width}}  {shown_numbers[name]:<{middle}}  {why}" for name, (_, why) in self.notes.items()]
        return "\n".join([f"Plan for means and sds to {self.accuracy:g} posterior sd", *rows])

    __repr__ = __str__


def make_plan(
    target: Target,
    *,
    accuracy: float = DEFAULT_ACCURACY,
    init: Position | None = None,
    num_chains: int = DEFAULT_CHAINS,
    seed: int | jax.Array = 0,
    rng: str | None = None,
    progress: bool | None = None,
    devices: int = 1,
) -> Plan:
    """Finds out how to sample a posterior to an accuracy: mode, coordinates, minibatches, step size, by measuring.

    Args:
        target: the posterior.
        accuracy: of every mean and sd, in posterior standard deviations.
        init: where the search for the mode starts; None is the target's own.
        num_chains: chains of the run to come.
        seed: as in `ewsg.sample`.
        rng: as in `ewsg.sample`.
        progress: as in `ewsg.sample`.
        devices: as in `ewsg.sample`.

    Returns:
        A `Plan`: print it, save it, give it to `ewsg.sample` in place of an estimator and an integrator.
    """
    goal = Goal(check_accuracy(accuracy), None, None, check_chains(num_chains))
    with interrupt.deferred(terminate=False) as stop, _progress.bar(1, progress, "planning") as tick:
        planner = _planner(target, goal, init, seed, rng, Draws(), stop, lambda done, text: tick(0, text), devices)
        driven = planner.plan()
        return _plan(planner, driven)


def sample_planned(
    target: Target,
    goal: Goal,
    *,
    init: Position | None,
    seed: int | jax.Array,
    rng: str | None,
    collect: AbstractCollector | Callable[[Position], Any] | None,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Plans, and runs until the goal is reached: `ewsg.sample` without an estimator."""
    saver = Autosave(save_to)
    if save_to is not None:
        storage.check_writable(save_to)
    collector = as_collector(collect)
    with (
        interrupt.deferred(terminate=save_to is not None) as stop,
        _progress.bar(1, progress, "sampling") as tick,
    ):
        planner = _planner(target, goal, init, seed, rng, collector, stop, lambda done, text: tick(0, text), devices)
        driven = planner.plan()
        plan = _plan(planner, driven)
        outcome = run_to_goal(planner, driven, lambda run: saver.if_due(lambda: run))
        run = _finished(planner, plan, outcome)
        saver.save(run)
    return run


def check_accuracy(accuracy: Any) -> float:
    """Raise InputError unless float32 and patience can give such an accuracy."""
    check_positive("sample", "accuracy", accuracy)
    if accuracy < _FINEST_ACCURACY:
        raise InputError(
            f"accuracy={accuracy:g} is finer than chains in float32 can give: ask for at least {_FINEST_ACCURACY:g} "
            "posterior standard deviations"
        )
    return float(accuracy)


def check_chains(num_chains: Any) -> int:
    """Raise InputError unless there are enough chains to tell an error from."""
    check_count("sample", "num_chains", num_chains, 1)
    if num_chains < _FEWEST_CHAINS:
        raise InputError(
            f"num_chains={num_chains} is too few to tell an error bar from: take at least {_FEWEST_CHAINS}, "
            f"or leave it out for {DEFAULT_CHAINS}"
        )
    return int(num_chains)


def _planner(
    target: Target,
    goal: Goal,
    init: Position | None,
    seed: int | jax.Array,
    rng: str | None,
    collector: AbstractCollector,
    stop: Callable[[], bool],
    tick: Callable[[int, str], None],
    devices: int,
) -> Planner:
    process.check()
    if not isinstance(target, Target):
        raise InputError(f"target must be an ewsg target, not {shown(target)}")
    start = target.init if init is None else init
    if start is None or pytree.is_function(start):
        raise InputError("a plan needs init=: where the search for the mode starts, a pytree like the parameters")
    placement.mesh(goal.num_chains, devices)
    key = _start.root_key(seed, rng)
    start = pytree.as_arrays(start)
    target.check(start)
    check_collector(collector, start)
    settings = {"seed": "key" if isinstance(seed, jax.Array) else int(seed)}
    return Planner(target, start, goal, key, settings, collector, stop, tick, devices)


def _plan(planner: Planner, driven: Driven) -> Plan:
    assert planner.ground is not None and planner.mode is not None
    setting, n = driven.attempt.setting, planner.target.num_data
    method, _ = planner.ground.method(setting)
    accuracy = planner.accuracy
    noise = planner.noises.get(setting.kind)
    rate = setting.batch / setting.step_size
    effort = rule.work(noise.mean if noise else 0.0, rate)
    passes = effort * setting.per_time(n) / (accuracy / 2) ** 2 / n
    kinds = {
        rule.FULL: "all data in every step: minibatches would cost more",
        rule.FIRST: "control variate of first order, data drawn by leverage: the cheapest",
        rule.SECOND: "control variate of second order: less than half the price of the first",
    }
    notes: dict[str, tuple[Any, str]] = {
        "mode": (
            f"{planner.mode.distance:.2f} sd away",
            f"found in {planner.mode.cost.datum_gradients / n:.3g} passes over the data",
        ),
        "coordinates": (
            f"{planner.ground.dimension} × {planner.ground.dimension}",
            "mean and covariance of the first pilot",
        ),
        "estimator": (setting.kind, kinds[setting.kind]),
        "noise": (noise.mean if noise else 0.0, "Tr Cov of one datum's force over d, at 32 draws of the first pilot"),
        "data per step": (setting.batch or n, "m = u h"),
        "step size": (setting.step_size, "in whitened coordinates: h = min(1/2, 0.05 u/noise)"),
        "friction": (rule.FRICTION, "best for means and sds of a whitened posterior"),
        "pilots": (
            len(planner.history),
            "; ".join(f"{p.stage}: {', '.join(p.objections) or 'accepted'}" for p in planner.history),
        ),
        "planning": (planner.spent / n, "passes over the data spent so far, pilots that were given up included"),
        "run": (passes, f"passes over the data, all chains, predicted until the accuracy of {accuracy:g}"),
    }
    pilot = _with_cost(driven.run, planner)
    recorded = {
        name: [value if isinstance(value, int | float | str) else str(value), why]
        for name, (value, why) in notes.items()
    }
    pilot = dataclasses.replace(pilot, settings=pilot.settings | {"plan": recorded, "accuracy": accuracy})
    return Plan(accuracy, method, notes, pilot)


def _finished(planner: Planner, plan: Plan, outcome: Outcome) -> Run:
    run = _with_cost(outcome.run, planner)
    found = outcome.findings
    verdict = {
        "word": outcome.word,
        "accuracy": outcome.accuracy,
        "error": float(error_of(found).max()),
        "mcse": found.error,
        "bias": found.bias,
        "slope": found.slope,
        "refused": found.refused,
        "virial": [float(found.virial.min()), float(found.virial.max())],
        "objections": list(found.objections),
        "pilots": [[p.stage, *p.setting, p.bias, p.time, p.cost, list(p.objections)] for p in planner.history],
    }
    settings = run.settings | {
        "plan": plan.pilot.settings["plan"],
        "accuracy": outcome.accuracy,
        "verdict": verdict,
        "interrupted": outcome.word == "interrupted",
    }
    run = dataclasses.replace(run, settings=settings)
    sampler = None
    del sampler
    return run


def _with_cost(run: Run, planner: Planner) -> Run:
    """The run, with the plan's own cost in its cost."""
    n, chains = planner.target.num_data, planner.goal.num_chains
    cost: RunCost = dataclasses.replace(
        run.cost,
        datum_gradients=run.cost.datum_gradients + planner.spent,
        data_passes=run.cost.data_passes + planner.spent / n / chains,
    )
    return dataclasses.replace(run, cost=cost)


__all__ = ["DEFAULT_ACCURACY", "DEFAULT_CHAINS", "NoPlan", "Plan", "explained", "make_plan", "sample_planned"]
