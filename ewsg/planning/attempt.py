"""An attempt: chains at one setting, run for as long as nothing speaks against them."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from .._core.component import describe
from .._core.types import Key, Position
from .._engine import start as _start
from .._engine.plan import Plan
from ..collect import AbstractCollector
from ..result.chains import Chains, Tick, begin
from ..result.run import Run
from ..sampler import Sampler
from .ground import Ground
from .rule import Setting

BURN_TIME = 6.0
SPACING = 0.5
"""Units of time between two kept draws."""
_DIVERGENCE_LIMIT = 1e6


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Chains at one setting.

    Attributes:
        setting: of their steps.
        chains: the chains themselves, where they are.
        burn: discarded steps.
        thin: steps per draw.
    """

    setting: Setting
    chains: Chains
    burn: int
    thin: int

    def steps(self, time: float) -> int:
        """Steps from the start until `time` is recorded: whole draws."""
        return self.burn + self.thin * max(4, math.ceil(time / self.setting.step_size / self.thin))

    def to(self, num_steps: int, stop: Callable[[], bool], tick: Tick, save: Callable[[Run], None]) -> "Driven":
        """The chains after so many steps from their start, and their run."""
        plan = Plan(num_steps, self.burn, self.thin)
        driver = self.chains.driver(plan)
        snapshot = driver.run(stop, tick, lambda: save(self.chains.run(driver.snapshot())))
        run = self.chains.run(snapshot)
        return Driven(dataclasses.replace(self, chains=self.chains.after(snapshot)), run)


@dataclasses.dataclass(frozen=True)
class Driven:
    """An attempt after some steps, and its run so far."""

    attempt: Attempt
    run: Run


def attempt(
    ground: Ground,
    setting: Setting,
    starts: Position,
    key: Key,
    collector: AbstractCollector,
    settings: dict[str, Any],
    spent: int,
    seconds: float,
    devices: int = 1,
) -> Attempt:
    """Chains at a setting, from starting points in the user's parameters.

    Args:
        ground: coordinates and estimators.
        setting: to be tried.
        starts: stacked along a leading axis.
        key: of the chains.
        collector: what is kept.
        settings: for the run.
        spent: datum gradients of the plan so far, for the cost of the run.
        seconds: of the plan so far.
        devices: how many share the chains.
    """
    method, prepared = ground.method(setting)
    sampler = Sampler(ground.within, prepared, method.integrator)
    burn = math.ceil(BURN_TIME / setting.step_size)
    thin = max(1, round(SPACING / setting.step_size))
    at = _start.stacked_points(ground.target, starts)
    settings = settings | {
        "estimator": describe(method.estimator),
        "integrator": describe(method.integrator),
        "integrator_in_sum_units": describe(method.integrator),
        "collect": describe(collector),
    }
    plan = Plan(burn + thin, burn, thin)
    chains = begin(
        ground.target, sampler, collector, method.coordinates, at, key, settings, _DIVERGENCE_LIMIT, plan, devices
    )
    cost = dataclasses.replace(chains.cost, planning_gradients=spent, planning_seconds=seconds)
    return Attempt(setting, dataclasses.replace(chains, cost=cost), burn, thin)
