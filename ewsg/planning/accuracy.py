"""Runs that go on until every mean and sd is known to the accuracy asked for, or a budget ends."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from ..result.paired import rule_of
from ..result.run import Run
from ..result.verdict import Verdict
from .attempt import Attempt, Driven
from .findings import Findings, judge
from .planner import MOST_HALVINGS, PILOT_TIME, Planner

_GROWTH = 1.5


def run_to_goal(planner: Planner, driven: Driven, save: Callable[[Run], None]) -> Run:
    """Goes on with the chains of an accepted pilot; the run comes with its verdict.

    Looks at them at times a factor 1.5 apart. When something speaks against them, they start again where they are with
    half the step and as many data, or with all data if that costs no more.
    """
    goal, accuracy = planner.goal, planner.accuracy
    halvings = 0
    while True:
        tried, run = driven.attempt, driven.run
        found = judge(run, accuracy, paired_rule(run))
        if planner.stop():
            return judged("interrupted", run, found, accuracy)
        reached = goal.accuracy is not None and found.error <= accuracy / 2
        objections = found.objections
        if reached and not objections:
            return judged("reached", run, found, accuracy)
        ends = next_look(planner, driven)
        over = ends <= run.settings["num_steps"]
        again = bool(objections) and goal.accuracy is not None
        if again and not over and halvings < MOST_HALVINGS and planner.affords_again(driven):
            halvings += 1
            driven = planner.again(driven, found.bias, objections)
        elif over or again:
            return judged("biased" if objections else "budget", run, found, accuracy)
        else:
            driven = tried.to(ends, planner.stop, planner.telling(f"error {found.error:.3f}"), save)


def looks(tried: Attempt) -> Iterator[int]:
    """The numbers of steps at which chains are looked at."""
    recorded = tried.steps(PILOT_TIME) - tried.burn
    while True:
        yield tried.burn + recorded
        recorded = tried.thin * math.ceil(recorded * _GROWTH / tried.thin)


def next_look(planner: Planner, driven: Driven) -> int:
    """Steps from the start of the chains to the next look, as far as the budget goes."""
    tried, run, goal = driven.attempt, driven.run, planner.goal
    done = run.settings["num_steps"]
    unlimited = 2**31 - 1 - tried.thin
    ends = unlimited if goal.accuracy is None else next(look for look in looks(tried) if look > done)
    if goal.budget is not None:
        per_step = tried.setting.per_step(planner.target.num_data) * goal.num_chains
        left = goal.budget - run.cost.datum_gradients
        ends = min(ends, done + max(0, int(left / per_step)))
    if goal.seconds is not None:
        per_step = run.cost.seconds / max(done, 1)
        left = goal.seconds - (time.perf_counter() - planner.began)
        ends = min(ends, done + max(0, int(left / max(per_step, 1e-9))))
    return tried.burn + (ends - tried.burn) // tried.thin * tried.thin


def judged(word: str, run: Run, found: Findings, accuracy: float) -> Run:
    """The run with its verdict."""
    verdict = Verdict(
        word=word,
        accuracy=accuracy,
        error=float(errors(found).max()),
        mcse=found.error,
        bias=found.bias,
        coldest=float(found.virial.min()),
        hottest=float(found.virial.max()),
        slope=found.slope,
        refused=found.refused,
        objections=found.objections,
    )
    settings = run.settings | {"verdict": verdict.to_json(), "interrupted": word == "interrupted"}
    return dataclasses.replace(run, settings=settings)


def paired_rule(run: Run) -> str | None:
    """The rule of `Paired` that a run used, None if it took all data in every step."""
    return rule_of(run.settings["estimator"]) if "tilt_second" in run.stats else None


def errors(found: Findings) -> np.ndarray:
    """√(MCSE² + bias²) of every mean, then of every sd: the bias that the tilts tell, or a virial that is not 1."""
    excess = np.maximum(np.abs(found.virial - 1) - 2 * found.virial_error, 0) / 2
    bias = np.maximum(excess, found.bias)
    return np.concatenate([found.mean_error, np.sqrt(found.sd_error**2 + np.max(bias) ** 2)])
