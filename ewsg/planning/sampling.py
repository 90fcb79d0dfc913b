"""Planned runs: from a target alone, from a plan, or from a file."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import jax

from .._core import process, pytree
from .._core.component import check_count, check_positive, rebuild
from .._core.types import Position
from .._engine import interrupt, placement, progress as _progress, start as _start
from .._engine.draws import Kept
from .._engine.state import Checkpoint
from ..collect import AbstractCollector, Draws, as_collector, as_seen, check_collector
from ..errors import InputError, shown
from ..estimators import AbstractEstimator, ControlVariate, Full
from ..result import storage
from ..result.autosave import Autosave
from ..result.chains import Chains, explained
from ..result.restore import restore
from ..result.run import Run
from ..sampler import Sampler
from ..target.coordinates import Dense
from ..target.target import Target
from . import rule
from .accuracy import looks, run_to_goal
from .attempt import Attempt, Driven
from .goal import Goal
from .ground import Ground
from .networks.planner import ACCURACY, CHAINS
from .networks.sampling import NETWORK, continue_network, is_network, plan_network, sample_network
from .plan import Plan, describe_plan
from .planner import Planner

_FEWEST_CHAINS, _MOST_CHAINS = 8, 256
_FINEST_ACCURACY = 1e-3
DEFAULT_ACCURACY = 0.05
DEFAULT_CHAINS = 32
GOAL = "goal"
"""The entry of `run.settings` that a planned run has."""


def plan(
    target: Target,
    *,
    accuracy: float | None = None,
    init: Position | None = None,
    num_chains: int | None = None,
    seed: int | jax.Array = 0,
    rng: str | None = None,
    progress: bool | None = None,
    devices: int = 1,
) -> Plan:
    """Finds out how to sample a posterior to an accuracy: mode, coordinates, minibatches and step size, by measuring.

    Args:
        target: the posterior.
        accuracy: of every mean and sd, in posterior standard deviations: 0.05; of a network, of its predictions: 0.1.
        init: where the search for the mode starts; None is the target's own.
        num_chains: chains of the run to come: 32, of a network 8.
        seed: as in `ewsg.sample`.
        rng: as in `ewsg.sample`.
        progress: as in `ewsg.sample`.
        devices: as in `ewsg.sample`.

    Returns:
        A `Plan`: print it, save it, or give it to `ewsg.sample` in place of an estimator and an integrator.

    Example:
        >>> import numpy as np, ewsg
        >>> x = np.random.default_rng(0).normal(size=(500, 3))
        >>> plan = ewsg.plan(ewsg.models.logistic(x, x[:, 0] > 0.3), accuracy=0.1, progress=False)
        >>> plan.notes["friction"]
        (1.0, 'the best for means and sds of N(0, I)')
    """
    default_accuracy, default_chains = defaults(target, init)
    accuracy = check_accuracy(default_accuracy if accuracy is None else accuracy)
    goal = Goal(accuracy, None, None, check_chains(default_chains if num_chains is None else num_chains))
    if is_network(target, init):
        return plan_network(target, goal, init, seed, rng, progress, devices)
    with interrupt.deferred(terminate=False) as stop, _progress.bar(1, progress, "planning") as tick:
        planner = _planner(target, goal, init, seed, rng, Draws(), stop, tick, devices)
        driven, notes = _planned(planner)
    assert planner.ground is not None
    method, _ = planner.ground.method(driven.attempt.setting)
    return Plan(planner.accuracy, method, notes, driven.run)


def sample_planned(
    target: Target,
    goal: Goal,
    *,
    init: Position | None,
    seed: int | jax.Array,
    rng: str | None,
    collect: AbstractCollector | Callable[[Position], Any] | None,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Plans, and runs until the goal is reached: `ewsg.sample` without an estimator."""
    if is_network(target, init):
        options = {"collect": collect, "progress": progress, "save_to": save_to, "devices": devices}
        return sample_network(target, goal, init=init, seed=seed, rng=rng, **options)
    if save_to is not None:
        storage.check_writable(save_to)
    saver = Autosave(save_to)
    with interrupt.deferred(terminate=save_to is not None) as stop, _progress.bar(1, progress, "sampling") as tick:
        planner = _planner(target, goal, init, seed, rng, as_collector(collect), stop, tick, devices)
        driven, _ = _planned(planner)
        return _complete(planner, driven, saver)


def continue_planned(
    run: Run,
    target: Target,
    goal: Goal,
    *,
    collect: AbstractCollector | Callable[[Position], Any] | None,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Goes on with a planned run, or with the pilot of a plan, until the goal is reached.

    Bit for bit as if never interrupted: chains are looked at after the same numbers of steps.
    """
    if NETWORK in run.settings:
        options = {"collect": collect, "progress": progress, "save_to": save_to, "devices": devices}
        return continue_network(run, target, goal, **options)
    saver = Autosave(save_to)
    collector = as_collector(collect) if collect is not None else rebuild(run.settings["collect"], "collect")
    _check_kept(collector, target, run.fingerprint["position"])
    with interrupt.deferred(terminate=save_to is not None) as stop, _progress.bar(1, progress, "sampling") as tick:
        key = _start.root_key(_seed_after(run), run.settings["rng"])
        init = run.fingerprint["position"]
        plain = {name: run.settings[name] for name in ("seed", "plan", GOAL)}
        planner = Planner(target, init, goal, key, plain, collector, stop, _text_only(tick), devices)
        driven = _restored(planner, run)
        done = run.settings["num_steps"]
        look = next(steps for steps in looks(driven.attempt) if steps >= done)
        if look > done:
            driven = driven.attempt.to(look, stop, planner.telling("run"), lambda run: saver.if_due(lambda: run))
        return _complete(planner, driven, saver)


def defaults(target: Any, init: Any = None) -> tuple[float, int]:
    """Accuracy, and number of chains, of a planned run that is told neither."""
    return (ACCURACY, CHAINS) if is_network(target, init) else (DEFAULT_ACCURACY, DEFAULT_CHAINS)


def check_accuracy(accuracy: Any) -> float:
    """Raise InputError unless chains can give such an accuracy."""
    check_positive("sample", "accuracy", accuracy)
    if accuracy < _FINEST_ACCURACY:
        raise InputError(
            f"accuracy={accuracy:g} is finer than chains in float32 can give: ask for at least {_FINEST_ACCURACY:g} "
            "posterior standard deviations"
        )
    return float(accuracy)


def check_chains(num_chains: Any) -> int:
    """Raise InputError unless there are enough chains to tell an error from."""
    check_count("sample", "num_chains", num_chains, 1)
    if num_chains < _FEWEST_CHAINS:
        raise InputError(
            f"num_chains={num_chains} is too few to tell an error bar from: take at least {_FEWEST_CHAINS}, or leave "
            f"it out for {DEFAULT_CHAINS}"
        )
    if num_chains > _MOST_CHAINS:
        raise InputError(f"num_chains={num_chains} is more than a planned run takes: at most {_MOST_CHAINS}")
    return int(num_chains)


def _planner(
    target: Any,
    goal: Goal,
    init: Any,
    seed: int | jax.Array,
    rng: str | None,
    collector: AbstractCollector,
    stop: Callable[[], bool],
    tick: Callable[[int, str], None],
    devices: int,
) -> Planner:
    """A planner, all arguments checked."""
    process.check()
    if not isinstance(target, Target):
        raise InputError(f"target must be an ewsg target, not {shown(target)}: make one with ewsg.Target(...)")
    start = target.init if init is None else init
    if start is None or pytree.is_function(start):
        raise InputError("a plan needs init=: where the search for the mode starts, a pytree like the parameters")
    placement.mesh(goal.num_chains, devices)
    key = _start.root_key(seed, rng)
    start = target.starting_at(start)
    target.check(start)
    _check_kept(collector, target, start)
    settings = {"seed": "key" if isinstance(seed, jax.Array) else int(seed), GOAL: dataclasses.asdict(goal)}
    return Planner(target, start, goal, key, settings, collector, stop, _text_only(tick), devices)


def _check_kept(collector: AbstractCollector, target: Target, position: Position) -> None:
    """Raise InputError unless all parameters are kept, or as many numbers: the verdict needs them."""
    check_collector(collector, target.seen_at(position))
    seen = as_seen(collector, target.support, None)
    if pytree.size(jax.eval_shape(seen.row, position)) < pytree.size(position):
        raise InputError(
            "a planned run is judged by its draws, which collect= does not keep: leave it out, and apply it to "
            "run.draws"
        )


def _text_only(tick: Callable[[int, str], None]) -> Callable[[int, str], None]:
    """How far a search has come nobody knows: only what it does is shown."""
    return lambda done, text: tick(0, text)


def _planned(planner: Planner) -> tuple[Driven, dict[str, tuple[Any, str]]]:
    """The accepted pilot, with the plan's notes in its settings and in those of all that follows."""
    driven = planner.plan()
    notes = describe_plan(planner, driven)
    added = {"plan": {name: list(note) for name, note in notes.items()}}
    planner.settings = planner.settings | added
    chains = driven.attempt.chains
    chains = dataclasses.replace(chains, settings=chains.settings | added)
    run = dataclasses.replace(driven.run, settings=driven.run.settings | added)
    return Driven(dataclasses.replace(driven.attempt, chains=chains), run), notes


def _complete(planner: Planner, driven: Driven, saver: Autosave) -> Run:
    run = run_to_goal(planner, driven, lambda run: saver.if_due(lambda: run))
    run = explained(run, driven.attempt.chains.sampler)
    saver.save(run)
    return run


def _seed_after(run: Run) -> int:
    """A seed for what a resumed run may still have to try: another one than that of its plan."""
    seed = run.settings["seed"]
    return ((seed if isinstance(seed, int) else 0) + 2**32 + run.settings["num_steps"]) % 2**64


def _restored(planner: Planner, run: Run) -> Driven:
    """The chains of a planned run, ready to go on, and the ground they stand on."""
    settings, target = run.settings, planner.target
    coordinates = rebuild(settings["coordinates"], "coordinates")
    plain = rebuild(settings["estimator"], "estimator")
    integrator = rebuild(settings["integrator"], "integrator")
    if not isinstance(coordinates, Dense):
        raise InputError("the file is damaged: its coordinates are not those of a plan; run ewsg.sample again")
    within = target.in_coordinates(coordinates)
    prepared, cost = plain.prepare(within)
    planner.ground = Ground(target, coordinates, within, *_parts(plain, prepared), int(cost.datum_gradients))
    collector = as_seen(planner.collector, target.support, coordinates)
    sampler = Sampler(within, prepared, integrator)
    restored = run if isinstance(run.checkpoint, Checkpoint) else restore(run, sampler, collector)
    assert isinstance(restored.checkpoint, Checkpoint)
    checkpoint = jax.tree.map(lambda leaf: leaf.copy(), restored.checkpoint)  # the loop takes its arguments over
    kept = Kept(restored.draws, restored.stats)
    chains = Chains(
        sampler, collector, settings, restored.fingerprint, checkpoint, kept, restored.cost, planner.devices
    )
    batch, kind = _batch(plain), _kind(plain)
    setting = rule.Setting(kind, batch, integrator.step_size)
    planner.spent = run.cost.planning_gradients
    return Driven(Attempt(setting, chains, settings["discard"], settings["thin"]), restored)


def _kind(estimator: AbstractEstimator) -> str:
    if isinstance(estimator, Full):
        return rule.FULL
    assert isinstance(estimator, ControlVariate)
    return rule.SECOND if getattr(estimator, "order", 1) == 2 else rule.FIRST


def _batch(estimator: Any) -> int:
    """m: data per step."""
    if isinstance(estimator, Full):
        return 0
    while hasattr(estimator, "inner"):
        estimator = estimator.inner
    return 2 * estimator.batch_size


def _parts(plain: Any, prepared: Any) -> tuple[Any, dict[str, AbstractEstimator]]:
    """Points of the leverage, and prepared estimators by kind."""
    if isinstance(plain, Full):
        return None, {}
    points = getattr(plain.inner, "points", None)
    return points, {_kind(plain): prepared}
