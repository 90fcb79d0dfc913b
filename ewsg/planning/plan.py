"""`ewsg.plan`: how to sample a posterior, found out by measuring."""

import dataclasses
import os
from typing import Any

from ..result.run import Run
from ..sampler import Method, MethodInCoordinates
from . import rule
from .attempt import Driven
from .planner import Planner

_KINDS = {
    rule.FULL: "all data in every step, where minibatches would cost more",
    rule.FIRST: "control variate of first order, data drawn by their leverage: the cheapest",
    rule.SECOND: "control variate of second order: less than half the price of the first",
}


@dataclasses.dataclass(frozen=True, repr=False)
class Plan:
    """How to sample a posterior: what `ewsg.plan` returns, and `ewsg.sample(target, plan)` takes.

    Attributes:
        accuracy: of every mean and sd, in posterior sd, that it was made for.
        method: estimator, integrator and, unless it is for a network, coordinates.
        notes: every number of the plan by name, and where it came from.
        pilot: the run that accepted it; its draws are draws of the posterior.
    """

    accuracy: float
    method: Method | MethodInCoordinates
    notes: dict[str, tuple[Any, str]]
    pilot: Run

    def save(self, path: str | os.PathLike) -> None:
        """Writes the plan and its pilot to one file, with which `ewsg.resume(path, target)` goes on."""
        self.pilot.save(path)

    @property
    def title(self) -> str:
        """What it is for."""
        return f"Plan for every mean and sd to {self.accuracy:g} posterior sd"

    def __str__(self) -> str:
        numbers = {name: _number(value) for name, (value, _) in self.notes.items()}
        left, middle = (max(map(len, texts)) for texts in (numbers, numbers.values()))
        rows = (f"  {name:<{left}}  {numbers[name]:<{middle}}  {why}" for name, (_, why) in self.notes.items())
        return "\n".join([self.title, *rows])

    __repr__ = __str__


def describe_plan(planner: Planner, driven: Driven) -> dict[str, tuple[Any, str]]:
    """Every number of the plan that a pilot has accepted, and where it came from."""
    assert planner.ground is not None
    assert planner.mode is not None
    setting, n, d = driven.attempt.setting, planner.target.num_data, planner.ground.dimension
    noise = planner.noises.get(setting.kind)
    effort = rule.work(noise.mean, setting.batch / setting.step_size) if noise else rule.work(0.0, 0.0)
    to_come = effort * setting.per_time(n) / (planner.accuracy / 2) ** 2
    kept = driven.run.cost.datum_gradients - driven.run.cost.planning_gradients
    searched = planner.mode.cost.datum_gradients / n
    pilots = ", ".join("+".join(pilot.objections) or "accepted" for pilot in planner.history)
    return {
        "mode": (float(planner.mode.distance or 0.0), f"sd from the mode, after {searched:.3g} passes over the data"),
        "coordinates": (f"{d} × {d}", "from mean and covariance of the first pilot's draws"),
        "estimator": (setting.kind, _KINDS[setting.kind]),
        "noise": (float(noise.mean) if noise else 0.0, "of one datum's force, per coordinate, at 32 of those draws"),
        "data per step": (
            setting.batch or n,
            "m = u h, u data per unit of time from 3 · predicted bias ≤ accuracy",
        ),
        "step size": (setting.step_size, "h = min(1/2, 0.05 u / noise), halved by every pilot that objects"),
        "friction": (rule.FRICTION, "the best for means and sds of N(0, I)"),
        "pilots": (len(planner.history), pilots),
        "spent": (float(planner.spent + kept) / n, "passes over the data: search, noise, pilots"),
        "to come": (max(0.0, float(to_come - kept) / n), "passes over the data, all chains together, predicted"),
    }


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
