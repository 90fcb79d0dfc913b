"""The plan of a network: no mode to whiten at, so the step comes from the largest curvature, and is watched."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ... import _random
from ..._core import pytree
from ..._core.types import Key, Position
from ..._engine.plan import Plan as Steps
from ...errors import NoPlan
from ...result.chains import Tick
from ...target.target import Target
from ..goal import Goal
from .legs import Leg, leg
from .rule import Prediction, Setting, choose
from .stiffness import largest_curvature, tilts
from .warm import Warm, warm_start
from .watch import watch

CHAINS, ACCURACY, PASSES = 8, 0.2, 500
"""Chains, accuracy of predictions, and passes over the data per chain, of a network's run that is told nothing."""
RELAXATIONS = 10.0
"""Times 1/γ of a pilot."""
MOST_HALVINGS = 6
_BURN_SHARE, _WARM_SHARE, _HEAT_SHARE = 0.2, 0.2, 0.1
_MOST_STARTS = 8
_MEASURED_POINTS = 4
_PILOT_DRAWS = 40
_HEATED, _POINTS_PER_CHAIN = 2, 4
_FEWEST_STEPS = 200
_MOST_DRAWS, _DRAW_BYTES = 4_000, 256 * 2**20


class NetworkPlanner:
    """The search for a network's settings, step by step; every datum gradient is counted.

    Args:
        target: the posterior.
        starts: of up to 8 warm starts, stacked along a leading axis.
        goal: what the run is for; with a budget, of datum gradients or of seconds.
        key: of everything random.
        settings: for `run.settings`.
        stop: whether to end early.
        tick: shows progress.
        devices: how many share the chains.
    """

    def __init__(
        self,
        target: Target,
        starts: Position,
        goal: Goal,
        key: Key,
        settings: dict[str, Any],
        stop: Callable[[], bool],
        tick: Tick,
        devices: int = 1,
    ) -> None:
        self.target, self.starts, self.goal, self.settings = target, starts, goal, settings
        self.stop, self.tick, self.devices = stop, tick, devices
        self.spent, self.began, self.seconds_per_step = 0, time.perf_counter(), 0.0
        self.warm: Warm | None = None
        self.curvature, self.prediction = float("nan"), Prediction(0.0, 0.0)
        self.pilots: list[tuple[str, ...]] = []
        self._key, self._num_keys = key, 0
        self._rng = np.random.default_rng(np.asarray(_random.pack(key), np.uint32).tolist())
        self.dimension = pytree.size(starts) // jax.tree.leaves(starts)[0].shape[0]

    @property
    def accuracy(self) -> float:
        """What is judged against: the accuracy asked for, or 0.2."""
        return ACCURACY if self.goal.accuracy is None else self.goal.accuracy

    def plan(self) -> Leg:
        """The chains after their pilot, up to the first look."""
        warm = self._warmed()
        self._measure_curvature(warm.positions)
        heated, points = self._heated(warm.positions)
        self._measure_curvature(heated)
        return self._piloted(self._chosen(points), heated)

    # ------------------------------------------------------------------ before the chains

    def _warmed(self) -> Warm:
        def go_on(spent: int) -> bool:
            self._check_stop()
            return self._spares(_WARM_SHARE, spent)

        def tell(epoch: int, potential: float) -> None:
            self.tick(0, f"warm start: epoch {epoch}, −log posterior {potential:.4g}")

        self.tick(0, "warm start")
        self.warm = found = warm_start(self.target, self.starts, self.key(), go_on, tell)
        self.spent += found.spent
        return found

    def _measure_curvature(self, positions: Position) -> None:
        """λ_max, the mean over up to 4 positions."""
        self.tick(0, "largest curvature")
        count = min(_MEASURED_POINTS, jax.tree.leaves(positions)[0].shape[0])
        found = []
        for k in range(count):
            value, cost = largest_curvature(self.target, jax.tree.map(lambda leaf, k=k: leaf[k], positions), self._rng)
            self.spent += cost
            found.append(value)
            self._check_stop()
        self.curvature = float(np.mean(found))
        if not (math.isfinite(self.curvature) and self.curvature > 0):
            raise NoPlan(
                f"the largest curvature of −log posterior is {self.curvature:g} after the warm start, and a step size "
                "cannot be told from it: check loss and log_prior, start elsewhere (init=), or give an estimator and "
                "an integrator (docs/networks.md)"
            )

    def _heated(self, positions: Position) -> tuple[Position, Position]:
        """Where up to 8 chains are after the time 20/γ, and four points of each on the second half of their way.

        Minibatches are far less noisy at an optimum than in the posterior.
        """
        count = min(_MOST_STARTS, self.goal.num_chains)
        starts = _repeated(positions, count)
        setting = self._chosen(starts, more=2)
        length = min(setting.steps(_HEATED * RELAXATIONS), self._affordable(setting, count, _HEAT_SHARE))
        thin = max(1, length // 2 // _POINTS_PER_CHAIN)
        length = max(length, 2 * thin * _POINTS_PER_CHAIN)
        heating = self._leg(setting, starts, Steps(length, length - thin * _POINTS_PER_CHAIN, thin))
        heating = heating.to(length, self.stop, self.telling("heating"), lambda run: None)
        self._enter(heating)
        self._check_stop()
        assert heating.run is not None
        if not heating.run.ok.all():  # the step is far too large: what is measured here would be too
            return positions, positions
        points = jax.tree.map(
            lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), self.target.positions_of(heating.run.draws)
        )
        return heating.positions, points

    def _chosen(self, points: Position, more: int = 1) -> Setting:
        """h and γ from the largest curvature; m, an even number, from the noise: a predicted bias of at most 2 %.

        Args:
            points: where the noise is measured, stacked along a leading axis.
            more: takes so many times as many data.
        """
        self.tick(0, "noise of minibatches")
        found, cost = tilts(self.target, points, self.key())
        self.spent += cost
        setting, self.prediction = choose(self.curvature, found, self.dimension, self.target.num_data, more)
        return setting

    # ------------------------------------------------------------------ chains

    def _piloted(self, setting: Setting, positions: Position) -> Leg:
        """Chains that are not too hot, up to their first look."""
        starts = _repeated(positions, self.goal.num_chains)
        for _ in range(MOST_HALVINGS + 1):
            total = self._affordable(setting, self.goal.num_chains)
            self._check_budget(setting, total)
            length = min(setting.steps(RELAXATIONS), int(_BURN_SHARE * total))
            half = length // 2
            thin = min(self._thin(starts, total), max(1, half // _PILOT_DRAWS))
            pilot = self._leg(setting, starts, Steps(length, half, thin))
            pilot = pilot.to(half + (length - half) // thin * thin, self.stop, self.telling("pilot"), lambda run: None)
            assert pilot.run is not None
            found = watch(pilot.run, settled=False)
            self.pilots.append(found.objections)
            self._check_stop()
            if not found.objections and not self.goal.pooled:  # whoever takes the second half of a chain discards it
                self.note_speed(pilot)
                return pilot
            self._enter(pilot)
            starts = pilot.positions if not found.failed else starts
            if not found.objections:
                return self._started(setting, starts, int(_BURN_SHARE * total) - length)
            setting = setting.halved()
        raise NoPlan(
            f"the chains stay too hot however small the step, after {MOST_HALVINGS} halvings: check loss and log_prior "
            "(kinks, very large inputs), standardise the inputs, or give an estimator and an integrator"
        )

    def _started(self, setting: Setting, starts: Position, discard: int) -> Leg:
        """The run up to its first look: a fifth of the steps, with those of the pilot, is discarded."""
        left = self._affordable(setting, self.goal.num_chains)
        thin = self._thin(starts, left - discard)
        begun = self._leg(setting, starts, Steps(0, discard, thin))
        end = min(next(begun.looks(RELAXATIONS)), discard + (left - discard) // thin * thin)
        return begun.to(end, self.stop, self.telling("run"), lambda run: None)

    def _thin(self, starts: Position, steps: int) -> int:
        """Steps per draw: 4,000 draws, or as many as fit into 256 MiB."""
        most = _DRAW_BYTES // pytree.num_bytes(starts)
        return max(1, math.ceil(steps / max(_PILOT_DRAWS, min(_MOST_DRAWS, most))))

    def again(self, driven: Leg) -> Leg:
        """The chains go on from where they are with half the step; their draws so far are given up."""
        assert driven.run is not None
        self._enter(driven)
        return self._piloted(driven.setting.halved(), driven.positions)

    # ------------------------------------------------------------------ budgets

    def affordable(self, driven: Leg) -> int:
        """Further steps of chains on their way that the budget pays."""
        assert driven.run is not None
        own = driven.run.cost.datum_gradients - driven.run.cost.planning_gradients
        return self._affordable(driven.setting, self.goal.num_chains, spent=self.spent + own)

    def _affordable(self, setting: Setting, num_chains: int, share: float = 1.0, spent: int | None = None) -> int:
        """Steps that this share of the budget, or what is left of all of it, pays for so many chains."""
        steps, spent = 2**31 - 1 - 2**16, self.spent if spent is None else spent
        if self.goal.budget is not None:
            left = min(share * self.goal.budget, self.goal.budget - spent)
            steps = min(steps, int(left / num_chains / setting.per_step(self.target.num_data)))
        if self.goal.seconds is not None and self.seconds_per_step:
            left = self.goal.seconds - (time.perf_counter() - self.began)
            per_step = self.seconds_per_step * num_chains * setting.per_step(self.target.num_data)
            steps = min(steps, int(min(share * self.goal.seconds, left) / per_step))
        return max(0, steps)

    def _spares(self, share: float, spent: int) -> bool:
        """Whether so much is within a share of the budget."""
        budget, seconds = self.goal.budget, self.goal.seconds
        within = budget is None or spent <= share * budget
        return within and (seconds is None or time.perf_counter() - self.began <= share * seconds)

    def _check_budget(self, setting: Setting, total: int) -> None:
        if total >= _FEWEST_STEPS:
            return
        if self.goal.budget is None:
            raise NoPlan(f"seconds={self.goal.seconds:g} is below what the plan needs: give data_passes=, or more")
        chains, n = self.goal.num_chains, self.target.num_data
        given = self.goal.budget / n / chains
        needed = (self.spent / chains + 10 * _FEWEST_STEPS * setting.per_step(n)) / n
        raise NoPlan(
            f"data_passes={given:.3g} is below what the plan of this network needs: give at least "
            f"data_passes={max(needed, 2 * given):.2g} (per chain), or set an estimator and an integrator"
        )

    # ------------------------------------------------------------------ parts

    def key(self) -> Key:
        """A key that was not used before."""
        self._num_keys += 1
        return _random.fold(self._key, self._num_keys)

    def _leg(self, setting: Setting, starts: Position, steps: Steps) -> Leg:
        starts = jax.tree.map(np.asarray, starts)
        seconds = time.perf_counter() - self.began
        return leg(self.target, setting, starts, self.key(), self.settings, self.spent, seconds, steps, self.devices)

    def _enter(self, driven: Leg) -> None:
        """Counts a leg whose draws are given up."""
        assert driven.run is not None
        cost = driven.run.cost
        self.spent += cost.datum_gradients - cost.planning_gradients
        self.note_speed(driven)

    def note_speed(self, driven: Leg) -> None:
        """Seconds per datum gradient, for a budget of seconds."""
        assert driven.run is not None
        cost = driven.run.cost
        own = max(1, cost.datum_gradients - cost.planning_gradients)
        self.seconds_per_step = max(cost.seconds, 1e-9) / own

    def telling(self, stage: str) -> Tick:
        return lambda done, text: self.tick(done, f"{stage}: {text}")

    def _check_stop(self) -> None:
        if self.stop():
            raise KeyboardInterrupt


def _repeated(positions: Position, count: int) -> Position:
    """As many positions as are wanted, those that there are in turn."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[np.arange(count) % leaf.shape[0]], positions)
