"""The search for a plan: mode, coordinates, noise, setting, pilots."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from .. import _random
from .._core import pytree
from .._core.types import Key, Position
from ..collect import AbstractCollector, Draws
from ..errors import NoPlan
from ..result.chains import Tick
from ..result.run import Run
from ..target.mode import Mode
from ..target.target import Target
from . import rule
from .attempt import BURN_TIME, Attempt, Driven, attempt
from .choosing import choose, choose_first
from .findings import Findings, judge
from .goal import Goal, Pilot
from .ground import Ground, lay, num_probes
from .modes import the_mode
from .moments import root_of_inverse, shrunk_moments
from .noise import Noise

_PILOT_CHAINS = 32
PILOT_TIME = 25.0
_POINTS = 32
MOST_HALVINGS = 6
_MOST_HALVINGS_AT_FIRST = 12
_LAPLACE_SPREAD = 0.7
_MOST_REFUSED_AT_FIRST = 1e-3
_MOST_HEAT_AT_FIRST = 0.5
_FIRST_PILOT_TIME = 12.0
_SUSPICIOUS_OBJECTIONS = 3
_TOO_FAR = (
    "no step size was small enough within the budget: the posterior is too far from a Gaussian (a funnel, heavy tails) "
    "or has no proper prior where the data say nothing, as with separated classes: give a proper prior, reparametrise, "
    "or use ewsg.NUTS"
)


class Planner:
    """The search for a plan, step by step; every datum gradient is counted.

    Args:
        target: the posterior.
        init: the position where the search for the mode starts.
        goal: what the run is for.
        key: of everything random.
        settings: for `run.settings`.
        collector: what is kept of each draw.
        stop: whether to end early.
        tick: shows progress.
        devices: how many share the chains.
    """

    def __init__(
        self,
        target: Target,
        init: Position,
        goal: Goal,
        key: Key,
        settings: dict[str, Any],
        collector: AbstractCollector,
        stop: Callable[[], bool],
        tick: Tick,
        devices: int = 1,
    ) -> None:
        self.target, self.init, self.goal = target, init, goal
        self.settings, self.collector = settings, collector
        self.stop, self.tick, self.devices = stop, tick, devices
        self.spent = 0
        self.history: list[Pilot] = []
        self.began = time.perf_counter()
        self._key, self._num_keys = key, 0
        self._rng = np.random.default_rng(np.asarray(_random.pack(key), np.uint32).tolist())
        self._unravel = pytree.host_unraveller(init)
        self.ground: Ground | None = None
        self.mode: Mode | None = None
        self.noises: dict[str, Noise] = {}
        self._plainer: rule.Setting | None = None

    def key(self) -> Key:
        """A key that was not used before."""
        self._num_keys += 1
        return jax.jit(_random.fold)(self._key, self._num_keys)  # eager, it would be eleven programs

    # ------------------------------------------------------------------ the plan

    def plan(self) -> Driven:
        """The first attempt that its pilot accepts, in coordinates of the pilot before."""
        self.tick(0, "looking for the mode")
        ground = self._at_mode()
        points = self._rng.normal(size=(_POINTS, ground.dimension))
        starts = _LAPLACE_SPREAD * self._rng.normal(size=(_PILOT_CHAINS, ground.dimension))
        choice = self._choose_first(ground, points)
        ground, within = self._recentred(ground, *self._first_pilot(ground, choice, starts))
        points = within[self._rng.choice(len(within), _POINTS, replace=len(within) < _POINTS)]
        ground, choice = self._choose(ground, points)
        chains = min(self.goal.num_chains, _PILOT_CHAINS)
        driven = self._second_pilot(ground, choice, within[self._rng.choice(len(within), chains, replace=False)])
        return driven if chains == self.goal.num_chains else self._more_chains(driven)

    def _at_mode(self) -> Ground:
        self.mode, spent = the_mode(self.target, self.init, self._rng)
        assert self.mode.precision is not None
        root = root_of_inverse(self.mode.precision)
        ground = lay(self.target, self.mode.position, root, self._probes(len(root)))
        self.spent += spent + ground.spent
        return ground

    def _probes(self, dimension: int) -> Float[np.ndarray, "p d"]:
        """Where the leverage is measured: every coordinate at −1 or 1, so that no direction of a column is missed."""
        return self._rng.choice([-1.0, 1.0], size=(num_probes(self.target.num_data), dimension))

    def _choose_first(self, ground: Ground, points: Float[np.ndarray, "p d"]) -> rule.Choice:
        self.tick(0, "measuring the noise of minibatches")
        choice, spent = choose_first(ground, points, self.key(), self.accuracy)
        self.spent += spent
        return choice

    def _choose(self, ground: Ground, points: Float[np.ndarray, "p d"]) -> tuple[Ground, rule.Choice]:
        self.tick(0, "measuring the noise of minibatches")
        chosen = choose(ground, points, self.key, self.goal, self._left())
        self.noises, self._plainer = chosen.noises, chosen.plainer
        self.spent += chosen.spent
        return chosen.ground, chosen.choice

    @property
    def accuracy(self) -> float:
        """What is judged against: the accuracy asked for, or 0.05."""
        return self.goal.judged_accuracy

    def _left(self) -> float | None:
        return self.goal.left(self.spent)

    def _first_pilot(
        self, ground: Ground, choice: rule.Choice, starts: Float[np.ndarray, "c d"]
    ) -> tuple[Float[np.ndarray, "c t d"], Float[np.ndarray, " d"]]:
        """Draws from where the posterior is, roughly, and their virials: their moments make better coordinates."""
        setting = choice.setting
        if choice.bias > self.accuracy:  # heat feeds noise: such predictions are several times too low
            setting = self._cheaper(setting.halved())
        for _ in range(_MOST_HALVINGS_AT_FIRST):
            tried = self._attempt(ground, setting, starts, Draws())
            driven = tried.to(tried.steps(_FIRST_PILOT_TIME), self.stop, self.telling("first pilot"), lambda run: None)
            run = driven.run
            virial = np.asarray(run.stats["virial"], np.float64).mean((0, 1))
            hot = float(virial.mean()) - 1 > _MOST_HEAT_AT_FIRST
            refused = float(run.stats["refused"].mean()) > _MOST_REFUSED_AT_FIRST
            objections = tuple(name for name, holds in (("refused", refused), ("virial", hot)) if holds)
            self._enter("first pilot", tried, run, choice.bias, objections)
            self._check_stop()
            if not objections:
                return pytree.host_rows(self.target.positions_of(run.draws), 2), virial
            setting = self._cheaper(setting.halved())
        raise NoPlan(_TOO_FAR)

    def _recentred(
        self, ground: Ground, draws: Float[np.ndarray, "c t d"], temperature: Float[np.ndarray, " d"]
    ) -> tuple[Ground, np.ndarray]:
        """Coordinates with the mean and covariance of pilot draws, and these draws in them."""
        center = pytree.host_rows(jax.tree.map(np.asarray, ground.coordinates.center), 0)
        root = np.asarray(ground.coordinates.root, np.float64)
        z = np.linalg.solve(root, (draws - center).reshape(-1, len(center)).T).T.reshape(draws.shape)
        mean, cov = shrunk_moments(z, temperature)
        values, vectors = np.linalg.eigh(cov)
        new_root = root @ (vectors * np.sqrt(values)) @ vectors.T
        within = (z.reshape(-1, len(center)) - mean) @ (vectors / np.sqrt(values)) @ vectors.T
        ground = lay(self.target, self._unravel(center + root @ mean), new_root, self._probes(len(center)))
        self.spent += ground.spent
        return ground, within

    def _second_pilot(self, ground: Ground, choice: rule.Choice, starts: Float[np.ndarray, "c d"]) -> Driven:
        """The first attempt that nothing speaks against, or for which trying is no longer paid by the budget."""
        setting, self.ground = choice.setting, ground
        for _ in range(MOST_HALVINGS):
            last = not self.goal.lets_plan(self._needed(setting, len(starts)))
            tried = self._attempt(ground, setting, starts, self.collector)
            driven = tried.to(tried.steps(PILOT_TIME), self.stop, self.telling("pilot"), lambda run: None)
            found = judge(driven.run, self._pilot_accuracy(choice), None if setting.kind == rule.FULL else ground.rule)
            objections = self._objections(found, choice)
            taken = last or not objections
            self._enter("pilot", tried, driven.run, found.bias, objections, kept=taken)
            self._check_stop()
            if taken:
                return driven
            setting = self._after_objection(setting)
        raise NoPlan(_TOO_FAR)

    def _objections(self, found: Findings, choice: rule.Choice) -> tuple[str, ...]:
        """What speaks against a pilot. The error for a budget is an average over coordinates: so is that of virials."""
        if self._left() is None:
            return found.objections
        wrong = np.mean(np.maximum((found.virial - 1) ** 2 - found.virial_error**2, 0)) / 4
        return tuple(name for name in found.objections if name != "virial" or wrong > choice.price)

    def _more_chains(self, driven: Driven) -> Driven:
        """As many chains as are wanted, from where those of the pilot are; the pilot's draws are given up."""
        assert self.ground is not None
        z = _positions(driven)
        self.spent += driven.run.cost.datum_gradients - driven.run.cost.planning_gradients
        starts = z[np.arange(self.goal.num_chains) % len(z)]
        tried = self._attempt(self.ground, driven.attempt.setting, starts, self.collector)
        return tried.to(tried.steps(PILOT_TIME), self.stop, self.telling("run"), lambda run: None)

    def _pilot_accuracy(self, choice: rule.Choice) -> float:
        if self._left() is None:
            return self.accuracy
        return max(self.accuracy, math.sqrt(choice.price))

    def _cheaper(self, setting: rule.Setting) -> rule.Setting:
        """The setting, or all data in every step where that costs no more."""
        n = self.target.num_data
        everything = rule.Setting(rule.FULL, 0, rule.LARGEST_STEP)
        if setting.kind != rule.FULL and everything.per_time(n) <= setting.per_time(n):
            return everything
        return setting

    def _after_objection(self, setting: rule.Setting) -> rule.Setting:
        """Half the step; in place of the second order, which fails where tails are heavy, the best without it."""
        if setting.kind == rule.SECOND and self._plainer is not None:
            return self._plainer
        return self._cheaper(setting.halved())

    def again(self, driven: Driven, bias: float, objections: tuple[str, ...]) -> Driven:
        """The chains go on from where they are with half the step; their draws so far are given up."""
        assert self.ground is not None
        tried = driven.attempt
        self._enter("run", tried, driven.run, bias, objections)
        setting = self._after_objection(tried.setting)
        tried = self._attempt(self.ground, setting, _positions(driven), self.collector)
        return tried.to(tried.steps(PILOT_TIME), self.stop, self.telling("run"), lambda run: None)

    # ------------------------------------------------------------------ parts

    def _needed(self, setting: rule.Setting, num_chains: int) -> float:
        """Datum gradients after another pilot."""
        return self.spent + num_chains * (BURN_TIME + PILOT_TIME) * setting.per_time(self.target.num_data)

    def affords_again(self, driven: Driven) -> bool:
        """Whether the budget pays for the chains to start again with half the step."""
        needed = self._needed(self._after_objection(driven.attempt.setting), self.goal.num_chains)
        return self.goal.pays(driven.run.cost.datum_gradients - self.spent + needed)

    def _check_budget(self, setting: rule.Setting, num_chains: int) -> None:
        """Raise NoPlan where the budget does not pay for a pilot."""
        needed, budget = self._needed(setting, num_chains), self.goal.budget
        if budget is None or self.goal.pays(needed):
            return
        if sum(bool(pilot.objections) for pilot in self.history) >= _SUSPICIOUS_OBJECTIONS:
            raise NoPlan(_TOO_FAR)
        passes, given = (number / self.target.num_data / self.goal.num_chains for number in (needed, budget))
        raise NoPlan(
            f"data_passes={given:.3g} is below what the plan needs: give at least data_passes={2 * passes:.2g} "
            f"(per chain; {2 * passes * self.goal.num_chains:.2g} passes over the data in all), or set an estimator"
        )

    def _attempt(
        self, ground: Ground, setting: rule.Setting, z: Float[np.ndarray, "c d"], collector: AbstractCollector
    ) -> Attempt:
        self._check_budget(setting, len(z))
        center = pytree.host_rows(jax.tree.map(np.asarray, ground.coordinates.center), 0)
        flat = center + z @ np.asarray(ground.coordinates.root, np.float64).T
        starts = jax.tree.map(lambda *rows: np.stack(rows), *(self._unravel(row) for row in flat))
        seconds = time.perf_counter() - self.began
        return attempt(ground, setting, starts, self.key(), collector, self.settings, self.spent, seconds, self.devices)

    def _enter(
        self, stage: str, tried: Attempt, run: Run, bias: float, objections: tuple[str, ...], kept: bool = False
    ) -> None:
        recorded = (run.settings["num_steps"] - tried.burn) * tried.setting.step_size
        cost = run.cost.datum_gradients - run.cost.planning_gradients
        self.history.append(Pilot(stage, tried.setting, bias, recorded, cost, objections))
        if not kept:
            self.spent += cost

    def telling(self, stage: str) -> Tick:
        return lambda done, text: self.tick(done, f"{stage}: {text}")

    def _check_stop(self) -> None:
        if self.stop():
            raise KeyboardInterrupt


def _positions(driven: Driven) -> Float[np.ndarray, "c d"]:
    """Where the chains are, in coordinates z."""
    return np.asarray(driven.attempt.chains.checkpoint.carry.chains.state.phase.position, np.float64)
