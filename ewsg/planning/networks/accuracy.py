"""Runs of networks that go on until their predictions are accurate enough, or a budget ends."""

import dataclasses
from collections.abc import Callable

from ...errors import NoPlan
from ...result.predictive import PredictiveVerdict
from ...result.run import Run
from .legs import Leg
from .planner import MOST_HALVINGS, RELAXATIONS, NetworkPlanner
from .watch import known, watch

_LARGEST = 1e9


def run_to_goal(planner: NetworkPlanner, driven: Leg, save: Callable[[Run], None]) -> Run:
    """Looks at the chains at times a factor 1.5 apart; half the step when something speaks against them."""
    halvings = 0
    while True:
        run = driven.run
        assert run is not None
        planner.note_speed(driven)
        if planner.stop():
            return _judged("interrupted", _verdict("interrupted", planner, run), run)
        verdict = _verdict("budget", planner, run)
        wanted = planner.goal.accuracy is not None
        if wanted and verdict.mixed and not verdict.objections:
            return _judged("reached", verdict, run)
        done, end = run.settings["num_steps"], last_step(planner, driven)
        if verdict.objections and halvings < MOST_HALVINGS:
            halvings += 1
            own = planner.spent + run.cost.datum_gradients - run.cost.planning_gradients
            try:
                driven = planner.again(driven)
                continue
            except NoPlan:  # the budget ends here, or no step helps
                return _judged("biased", verdict, _with_cost(run, planner.spent - own))
        if end <= done or verdict.objections:
            return _judged("biased" if verdict.objections else "budget", verdict, run)
        look = next(steps for steps in driven.looks(RELAXATIONS) if steps > done) if wanted else end
        tell = planner.telling(f"predictions to {verdict.mcse:.2g} sd, R-hat {verdict.rhat:.2f}")
        driven = driven.to(min(look, end), planner.stop, tell, save)


def last_step(planner: NetworkPlanner, driven: Leg) -> int:
    """Steps from the start of the chains that the budget pays: whole draws."""
    assert driven.run is not None
    total = driven.run.settings["num_steps"] + planner.affordable(driven)
    return driven.discard + max(0, total - driven.discard) // driven.thin * driven.thin


def _verdict(word: str, planner: NetworkPlanner, run: Run) -> PredictiveVerdict:
    found, agreed = watch(run, settled=True), known(run, planner.target)
    passes = (planner.goal.budget or 0.0) / planner.target.num_data / planner.goal.num_chains
    return PredictiveVerdict(
        word=word,
        accuracy=planner.accuracy,
        mcse=_finite(agreed.mcse),
        rhat=_finite(agreed.rhat),
        kinetic=_finite(found.kinetic),
        configurational=_finite(found.configurational),
        bias=found.bias,
        failed=found.failed,
        passes=passes,
        objections=found.objections,
    )


def _finite(number: float) -> float:
    """As a file can hold it."""
    return number if abs(number) < _LARGEST else _LARGEST


def _judged(word: str, verdict: PredictiveVerdict, run: Run) -> Run:
    """The run with its verdict."""
    saved = dataclasses.replace(verdict, word=word).to_json()
    return dataclasses.replace(run, settings=run.settings | {"verdict": saved, "interrupted": word == "interrupted"})


def _with_cost(run: Run, gradients: int) -> Run:
    """The run, with what was spent after it on pilots that did not help."""
    cost = run.cost
    passes = gradients / run.settings["num_chains"] / run.settings["num_data"]
    cost = dataclasses.replace(
        cost,
        datum_gradients=cost.datum_gradients + gradients,
        planning_gradients=cost.planning_gradients + gradients,
        data_passes=cost.data_passes + passes,
    )
    return dataclasses.replace(run, cost=cost)
