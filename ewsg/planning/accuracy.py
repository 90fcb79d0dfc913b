"""Runs that go on until every mean and sd is known to the accuracy asked for, or a budget ends."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..result.run import Run
from . import rule
from .attempt import Driven
from .planner import MOST_HALVINGS, Planner
from .verdict import Findings, judge

_GROWTH = 1.5


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        word: "reached", "budget", "biased" or "interrupted".
        run: with its draws.
        findings: on it.
        accuracy: it was judged against.
    """

    word: str
    run: Run
    findings: Findings
    accuracy: float


def run_to_goal(planner: Planner, driven: Driven, save: Callable[[Run], None]) -> Outcome:
    """Goes on with the chains of the accepted pilot.

    Looks at them at times a factor 1.5 apart. When something speaks against them, they start again where they are with
    half the step and as many data, or with all data if that costs no more.
    """
    goal, accuracy = planner.goal, planner.accuracy
    halvings = 0
    while True:
        tried, run = driven.attempt, driven.run
        pairs = None if tried.setting.kind == rule.FULL else rule_of(run)
        found = judge(run, accuracy, pairs)
        if planner.stop():
            return Outcome("interrupted", run, found, accuracy)
        reached = goal.accuracy is not None and found.error <= accuracy / 2
        objections = tuple(name for name in found.objections if reached or name != "slope")
        if reached and not objections:
            return Outcome("reached", run, found, accuracy)
        if objections and goal.accuracy is not None:
            if halvings == MOST_HALVINGS:
                return Outcome("biased", run, found, accuracy)
            halvings += 1
            driven = planner.again(driven, found.bias, objections)
            continue
        ends = next_look(planner, driven)
        if ends <= run.settings["num_steps"]:
            return Outcome("biased" if objections else "budget", run, found, accuracy)
        driven = tried.to(ends, planner.stop, planner.telling(f"error {found.error:.3f} of {accuracy / 2:.3f}"), save)


def next_look(planner: Planner, driven: Driven) -> int:
    """Steps from the start of the chains to the next look: half as many again, as far as the budget goes."""
    tried, run, goal = driven.attempt, driven.run, planner.goal
    done = run.settings["num_steps"]
    recorded = done - tried.burn
    ends = tried.burn + tried.thin * math.ceil(recorded * _GROWTH / tried.thin)
    if goal.accuracy is None and goal.budget is not None:
        ends = 2**31 - 1
    if goal.budget is not None:
        per_step = tried.setting.per_time(planner.target.num_data) * tried.setting.step_size * goal.num_chains
        left = goal.budget - planner.spent - run.cost.datum_gradients
        ends = min(ends, done + max(0, int(left / per_step)))
    if goal.seconds is not None:
        used = time.perf_counter() - planner.began
        per_step = run.cost.seconds / max(done, 1)
        left = (goal.seconds - used) / max(per_step, 1e-9)
        ends = min(ends, done + max(0, int(left)))
    return tried.burn + (ends - tried.burn) // tried.thin * tried.thin


def rule_of(run: Run) -> str | None:
    """The rule of `Paired` that a run used, None if it used none."""
    estimator: Any = run.settings["estimator"]
    while isinstance(estimator, dict):
        if estimator.get("component") == "Paired":
            return estimator["rule"]
        estimator = estimator.get("inner")
    return None


def error_of(findings: Findings) -> np.ndarray:
    """√(MCSE² + bias²) of every mean and sd: of the sd the bias that the tilts, or a virial off 1, tell."""
    excess = np.maximum(np.abs(findings.virial - 1) - 2 * findings.virial_error, 0) / 2
    bias = np.maximum(excess, findings.bias)
    return np.concatenate([findings.mean_error, np.sqrt(findings.sd_error**2 + bias**2)])
