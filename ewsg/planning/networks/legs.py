"""Legs of a network's run: chains at one setting, in the user's own parameters."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

from ..._core.component import describe
from ..._core.types import Key, Position
from ..._engine import start as _start
from ..._engine.plan import Plan
from ...collect import Draws
from ...result.chains import Chains, Tick, begin
from ...result.run import Run
from ...sampler import Sampler
from ...target.target import Target
from .rule import Setting

_DIVERGENCE_LIMIT = 1e6
_GROWTH = 1.5
_FEWEST_DRAWS = 16


@dataclasses.dataclass(frozen=True)
class Leg:
    """Chains at one setting.

    Attributes:
        setting: of their steps.
        chains: the chains themselves, where they are.
        discard: discarded steps.
        thin: steps per draw.
        run: their run so far; None at the start.
    """

    setting: Setting
    chains: Chains
    discard: int
    thin: int
    run: Run | None = None

    def to(self, num_steps: int, stop: Callable[[], bool], tick: Tick, save: Callable[[Run], None]) -> "Leg":
        """The chains after so many steps from their start."""
        driver = self.chains.driver(Plan(num_steps, self.discard, self.thin))
        snapshot = driver.run(stop, tick, lambda: save(self.chains.run(driver.snapshot())))
        run = self.chains.run(snapshot)
        return dataclasses.replace(self, chains=self.chains.after(snapshot), run=run)

    @property
    def positions(self) -> Position:
        """Where the chains are."""
        return self.chains.checkpoint.carry.chains.state.phase.position

    def looks(self, relaxations: float) -> Iterator[int]:
        """The numbers of steps at which the chains are looked at: a factor 1.5 apart."""
        recorded = self.thin * max(_FEWEST_DRAWS, math.ceil(self.setting.steps(relaxations) / self.thin))
        while True:
            yield self.discard + recorded
            recorded = self.thin * math.ceil(recorded * _GROWTH / self.thin)


def leg(
    target: Target,
    setting: Setting,
    starts: Position,
    key: Key,
    settings: dict[str, Any],
    spent: int,
    seconds: float,
    steps: Plan,
    devices: int = 1,
) -> Leg:
    """Chains at their starting points.

    Args:
        target: the posterior.
        setting: of a step.
        starts: stacked along a leading axis.
        key: of the chains.
        settings: for the run.
        spent: datum gradients of the plan so far, for the cost of the run.
        seconds: of the plan so far.
        steps: discarded, and per draw.
        devices: how many share the chains.
    """
    method = setting.method()
    settings = settings | {
        "estimator": describe(method.estimator),
        "integrator": describe(method.integrator),
        "integrator_in_sum_units": describe(method.integrator),
        "collect": describe(Draws()),
    }
    at = _start.stacked_points(target, starts)
    chains = begin(
        target, Sampler(target, *method), Draws(), None, at, key, settings, _DIVERGENCE_LIMIT, steps, devices
    )
    cost = dataclasses.replace(chains.cost, planning_gradients=spent, planning_seconds=seconds)
    return Leg(setting, dataclasses.replace(chains, cost=cost), steps.discard, steps.thin)
