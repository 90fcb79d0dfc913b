"""An attempt: chains at one setting, run for as long as nothing speaks against them."""

import dataclasses
import math
from collections.abc import Callable

import jax

from .._core.component import describe
from .._core.types import Key, Position
from .._engine import start as _start
from .._engine.plan import Plan
from ..collect import AbstractCollector
from ..result.run import Run
from ..running import Chains, Tick, begin
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
        setting: it.
        chains: where they are.
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
    settings: dict,
    most_draws: int | None = None,
    burn_time: float = BURN_TIME,
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
        most_draws: unused draws are not kept: a longer spacing.
        burn_time: discarded.
        devices: how many share the chains.
    """
    del most_draws
    method, prepared = ground.method(setting)
    assert method.integrator is not None
    sampler = Sampler(ground.within, prepared, method.integrator)
    burn = math.ceil(burn_time / setting.step_size)
    thin = max(1, round(SPACING / setting.step_size))
    plan = Plan(burn + thin, burn, thin)
    at = _start.stacked_points(ground.target, starts)
    settings = settings | {
        "estimator": describe(method.estimator),
        "integrator": describe(method.integrator),
        "integrator_in_sum_units": describe(method.integrator),
        "collect": describe(collector),
    }
    chains = begin(
        ground.target, sampler, collector, method.coordinates, at, key, settings, _DIVERGENCE_LIMIT, plan, devices
    )
    return Attempt(setting, chains, burn, thin)


def last_positions(run: Run, count: int) -> Position:
    """The last draws of a run, one per chain, repeated if more are wanted."""
    del count
    return jax.tree.map(lambda leaf: leaf[:, -1], run.draws)
