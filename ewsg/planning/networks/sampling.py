"""Planned runs of networks: from a target alone, from a plan, or from a file."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ... import _random
from ..._core import process, pytree
from ..._core.component import rebuild
from ..._core.types import Key, Position
from ..._engine import interrupt, placement, progress as _progress, start as _start
from ..._engine.draws import Kept
from ..._engine.state import Checkpoint
from ...collect import AbstractCollector, Draws, as_collector, as_seen
from ...errors import InputError
from ...estimators import Full
from ...result import storage
from ...result.autosave import Autosave
from ...result.chains import Chains, Tick, explained
from ...result.restore import restore
from ...result.run import Run
from ...sampler import Sampler
from ...target.likelihood import OfModule
from ...target.target import Target
from ..goal import Goal
from ..plan import Plan
from .accuracy import last_step, run_to_goal
from .legs import Leg
from .planner import PASSES, RELAXATIONS, NetworkPlanner
from .rule import Setting

NETWORK = "network"
"""The entry of `run.settings` that the planned run of a network has."""
_MOST_PARAMETERS = 500
_MOST_STARTS = 8


def is_network(target: Any, init: Any = None) -> bool:
    """Whether a target is planned as networks are: a module, or more than 500 parameters."""
    if not isinstance(target, Target):
        return False
    if isinstance(target.likelihood, OfModule):
        return True
    start = target.init if init is None else init
    if start is None or pytree.is_function(start):
        return False
    start = jax.tree.map(np.asarray, start)
    if target.support is not None:
        target.support.check(start)
        start = jax.eval_shape(lambda start: target.unconstrain(start), start)
    return pytree.size(start) > _MOST_PARAMETERS


@dataclasses.dataclass(frozen=True, repr=False)
class NetworkPlan(Plan):
    """How to sample the posterior of a network."""

    @property
    def title(self) -> str:
        return f"Plan for predictions to {self.accuracy:g} posterior sd"


def plan_network(
    target: Target, goal: Goal, init: Any, seed: Any, rng: str | None, progress: Any, devices: int
) -> Plan:
    """The first half of `sample_network`: up to the first look at the chains."""
    with interrupt.deferred(terminate=False) as stop, _progress.bar(1, progress, "planning") as tick:
        planner = _planner(target, goal, init, seed, rng, stop, tick, devices)
        driven = _planned(planner)
    assert driven.run is not None
    notes = {name: (value, why) for name, (value, why) in planner.settings["plan"].items()}
    return NetworkPlan(planner.accuracy, driven.setting.method(), notes, driven.run)


def sample_network(
    target: Target,
    goal: Goal,
    *,
    init: Position | Callable[[jax.Array], Position] | None,
    seed: int | jax.Array,
    rng: str | None,
    collect: AbstractCollector | Callable[[Position], Any] | None,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Plans, and runs until predictions are as accurate as was asked for, or the budget ends."""
    _check_kept(collect)
    if save_to is not None:
        storage.check_writable(save_to)
    saver = Autosave(save_to)
    with interrupt.deferred(terminate=save_to is not None) as stop, _progress.bar(1, progress, "sampling") as tick:
        planner = _planner(target, goal, init, seed, rng, stop, tick, devices)
        return _complete(planner, _planned(planner), saver)


def continue_network(
    run: Run,
    target: Target,
    goal: Goal,
    *,
    collect: AbstractCollector | Callable[[Position], Any] | None,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Goes on with a planned run of a network, or from its plan: bit for bit as if never interrupted.

    Without a budget it is given another 500 passes over the data per chain.
    """
    _check_kept(collect)
    if goal.budget is None and goal.seconds is None:
        goal = dataclasses.replace(goal, budget=run.cost.datum_gradients + _default_budget(target, goal))
    saver = Autosave(save_to)
    with interrupt.deferred(terminate=save_to is not None) as stop, _progress.bar(1, progress, "sampling") as tick:
        seed = run.settings["seed"] if isinstance(run.settings["seed"], int) else 0
        key = _start.root_key((seed + 2**32 + run.settings["num_steps"]) % 2**64, run.settings["rng"])
        plain = {name: run.settings[name] for name in ("seed", "plan", "goal", NETWORK)}
        starts = jax.tree.map(lambda leaf: np.asarray(leaf)[None], run.fingerprint["position"])
        planner = NetworkPlanner(target, starts, goal, key, plain, stop, _text_only(tick), devices)
        driven = _restored(planner, run)
        done = run.settings["num_steps"]
        look = next(steps for steps in driven.looks(RELAXATIONS) if steps >= done)
        look = min(look, last_step(planner, driven))
        if look > done:
            driven = driven.to(look, stop, planner.telling("run"), lambda run: saver.if_due(lambda: run))
        return _complete(planner, driven, saver)


def _check_kept(collect: Any) -> None:
    """Raise InputError unless draws are kept: predictions, which the verdict is on, come from them."""
    if collect is not None and as_collector(collect) != Draws():
        raise InputError(
            "a planned run of a network is judged by predictions, from its draws: leave collect= out, and apply it to "
            "run.draws (ewsg.prediction.predict takes the run)"
        )


def _default_budget(target: Target, goal: Goal) -> float:
    return float(PASSES) * target.num_data * goal.num_chains


def _planner(
    target: Target,
    goal: Goal,
    init: Any,
    seed: int | jax.Array,
    rng: str | None,
    stop: Callable[[], bool],
    tick: Tick,
    devices: int,
) -> NetworkPlanner:
    """A planner, all arguments checked."""
    process.check()
    placement.mesh(goal.num_chains, devices)
    key = _start.root_key(seed, rng)
    told = goal.budget is not None or goal.seconds is not None
    if not told:
        goal = dataclasses.replace(goal, budget=_default_budget(target, goal))
    starts = _starts(target, init, key, min(_MOST_STARTS, goal.num_chains))
    settings = {
        "seed": "key" if isinstance(seed, jax.Array) else int(seed),
        "goal": dataclasses.asdict(goal),
        NETWORK: {"default_budget": not told},
    }
    return NetworkPlanner(target, starts, goal, _random.fold(key, 1), settings, stop, _text_only(tick), devices)


def _starts(target: Target, init: Any, key: Key, count: int) -> Position:
    """One start if a position is given; else one for each of some chains.

    Of a module without init=, the others have its initial weights in another order within each array: for weights that
    were drawn independently, another draw of the same law.
    """
    if init is not None or not isinstance(target.likelihood, OfModule):
        own = count if pytree.is_function(init) else 1
        found = _start.starting_points(target, init, _random.fold(key, 0), own).positions
        return jax.tree.map(np.asarray, found)
    first = jax.tree.map(np.asarray, _start.starting_points(target, None, key, 1).first)
    rng = np.random.default_rng(np.asarray(_random.pack(key), np.uint32).tolist())
    others = [
        jax.tree.map(lambda leaf: rng.permutation(leaf.ravel()).reshape(leaf.shape), first) for _ in range(count - 1)
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), first, *others)


def _text_only(tick: Tick) -> Tick:
    return lambda done, text: tick(0, text)


def _planned(planner: NetworkPlanner) -> Leg:
    """The chains at their first look, with the plan's notes in their settings and in those of all that follows."""
    driven = planner.plan()
    notes = _notes(planner, driven)
    added = {"plan": {name: list(note) for name, note in notes.items()}}
    planner.settings = planner.settings | added
    return _with_settings(driven, added)


def _with_settings(driven: Leg, added: dict[str, Any]) -> Leg:
    assert driven.run is not None
    chains = dataclasses.replace(driven.chains, settings=driven.chains.settings | added)
    run = dataclasses.replace(driven.run, settings=driven.run.settings | added)
    return dataclasses.replace(driven, chains=chains, run=run)


def _notes(planner: NetworkPlanner, driven: Leg) -> dict[str, tuple[Any, str]]:
    """Every number of the plan, and where it came from."""
    assert planner.warm is not None
    assert driven.run is not None
    setting, n, chains = driven.setting, planner.target.num_data, planner.goal.num_chains
    warm, root, predicted = planner.warm, planner.curvature**0.5, planner.prediction
    ended = "doubling the epochs gained less than d/4" if warm.settled else "a fifth of the budget ended it"
    potential = warm.potentials[-1] if warm.potentials else float("nan")
    budget = (planner.goal.budget or 0.0) / n / chains
    told = "the default" if planner.settings[NETWORK]["default_budget"] else "as given"
    pilots = ", ".join("+".join(objections) or "accepted" for objections in planner.pilots)
    return {
        "warm start": (len(warm.potentials), f"epochs of Adam, to −log posterior {potential:.4g}: {ended}"),
        "largest curvature": (planner.curvature, "λ_max, by Lanczos, where chains are after heating"),
        "step size": (setting.step_size, f"h = 0.1/√λ_max = {0.1 / root:.4g}, halved by every pilot that is too hot"),
        "friction": (setting.friction, "γ = 0.07 √λ_max"),
        "data per step": (setting.batch or n, "the least whose noise is predicted to change sds by at most 2 %"),
        "noise ratio": (predicted.noise_ratio, f"gradient noise over injected noise; sds off by {predicted.bias:.1%}"),
        "pilots": (len(planner.pilots), pilots),
        "budget": (budget, f"passes over the data per chain, {told}"),
        "spent": (driven.run.cost.data_passes, "of them so far: warm start, curvature, noise, pilots, first look"),
    }


def _complete(planner: NetworkPlanner, driven: Leg, saver: Autosave) -> Run:
    run = run_to_goal(planner, driven, lambda run: saver.if_due(lambda: run))
    run = explained(run, driven.chains.sampler)
    saver.save(run)
    return run


def _restored(planner: NetworkPlanner, run: Run) -> Leg:
    """The chains of a run, ready to go on."""
    settings, target = run.settings, planner.target
    estimator = rebuild(settings["estimator"], "estimator")
    integrator = rebuild(settings["integrator"], "integrator")
    sampler = Sampler(target, estimator, integrator)
    collector = as_seen(Draws(), target.support, None)
    restored = run if isinstance(run.checkpoint, Checkpoint) else restore(run, sampler, collector)
    assert isinstance(restored.checkpoint, Checkpoint)
    checkpoint = jax.tree.map(lambda leaf: leaf.copy(), restored.checkpoint)  # the loop takes its arguments over
    kept = Kept(restored.draws, restored.stats)
    chains = Chains(
        sampler, collector, settings, restored.fingerprint, checkpoint, kept, restored.cost, planner.devices
    )
    batch = 0 if isinstance(estimator, Full) else 2 * estimator.batch_size
    rule = "weight" if isinstance(estimator, Full) else estimator.rule
    setting = Setting(batch, integrator.step_size, integrator.friction, rule)
    planner.spent = run.cost.planning_gradients
    return Leg(setting, chains, settings["discard"], settings["thin"], restored)
