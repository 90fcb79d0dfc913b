"""`ewsg.sample` and `ewsg.resume`: check all arguments, start or restore the chains, and run them to the end."""

import inspect
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ._core import process, pytree
from ._core.component import check_count, check_positive, check_same, describe, rebuild
from ._core.types import Position
from ._engine import placement, start as _start, statistics
from ._engine.draws import Kept
from ._engine.plan import Plan as Steps, check_length, check_plan, check_total, count_steps, make_plan
from ._engine.state import Checkpoint
from ._random.streams import chain_keys
from .collect import AbstractCollector, as_collector, as_seen, check_collector
from .errors import InputError, unknown
from .estimators import AbstractEstimator, Full
from .integrators import BAOAB, AbstractIntegrator
from .planning.goal import Goal
from .planning.plan import Plan as Plan
from .planning.sampling import (
    GOAL,
    check_accuracy,
    check_chains,
    continue_planned,
    defaults,
    sample_planned,
)
from .recipes import Method
from .result import storage
from .result.chains import Chains, begin, complete
from .result.run import Run
from .sampler import AbstractKernel, MethodInCoordinates, check_parts, compose
from .target.coordinates import AbstractCoordinates, as_coordinates
from .target.fingerprint import check_same_target
from .target.target import Target


def sample(
    target: Target,
    estimator: AbstractEstimator | AbstractKernel | Method | MethodInCoordinates | Plan | None = None,
    integrator: AbstractIntegrator | None = None,
    *,
    accuracy: float | None = None,
    coordinates: AbstractCoordinates | None = None,
    init: Position | Callable[[jax.Array], Position] | None = None,
    num_chains: int | None = None,
    num_steps: int | None = None,
    data_passes: float | None = None,
    seconds: float | None = None,
    discard: float | int | None = None,
    thin: int | None = None,
    seed: int | jax.Array = 0,
    rng: str | None = None,
    collect: AbstractCollector | Callable[[Position], Any] | None = None,
    progress: bool | None = None,
    save_to: str | os.PathLike | None = None,
    devices: int = 1,
    divergence_limit: float = 1e6,
    **unknown_options: Any,
) -> Run:
    """Run chains and return their draws, diagnostics and cost.

    `ewsg.sample(target)` needs nothing else: it makes a plan (`ewsg.plan`) and runs until every mean and sd is known to
    0.05 posterior standard deviations; `run.verdict` says whether it got there. Given an estimator and an integrator,
    it runs these for `num_steps` steps or `data_passes` passes over the data.

    Args:
        target: the posterior, `ewsg.Target` or one of `ewsg.models`.
        estimator: which data a step uses (`ewsg.Uniform`, `ewsg.Exponential`, ...); or a recipe, a whole method or a
            plan, which need no integrator; None makes a plan.
        integrator: how a step moves (`ewsg.Underdamped`, ...).
        accuracy: for a planned run, the accuracy wanted of every mean and sd, in posterior standard deviations. 0.05 by
            default; with only a budget (`data_passes` or `seconds`), the best that the budget allows.
        coordinates: z, in which the chains run, with θ = c + L z (`ewsg.coordinates`); draws are returned as θ. Of a
            target with constraints, θ are unconstrained positions (`target.unconstrain`).
        init: the starting point, a pytree of floating-point arrays; or a function of a key that draws one per chain;
            None is the target's own.
        num_chains: the number of chains, run together; 4 by default, 32 for a planned run.
        num_steps: steps per chain; 2,000 if neither this nor `data_passes` is given.
        data_passes: a budget instead of `num_steps`: at most n · data_passes datum gradients per chain. For a planned
            run, n · data_passes · num_chains in all, the cost of the plan included.
        seconds: for a planned run, a budget of wall-clock time.
        discard: the start of each chain to discard: a share below 1 (by default one half), or a whole number of steps.
        thin: keep every `thin`-th step of the rest; by default about 1,000 draws are kept, or as many as fit into
            1 GiB.
        seed: a whole number from 0 to 2^64 − 1, or a typed JAX key; equal seeds give equal runs.
        rng: the generator of random numbers: "fast" (docs/random.md) or "threefry", JAX's own; None is "fast" on the
            CPU and "threefry" elsewhere. A key given as seed keeps its own generator.
        collect: None keeps draws; a function of the position keeps its value instead; `ewsg.collect.Moments()` keeps
            running moments and no draws.
        progress: None shows a bar, on a terminal or in a notebook, if the run takes more than two seconds.
        save_to: a file to which the run is written every minute, at its end, and when the process is told to terminate
            (SIGTERM, which clusters send at their time limit).
        devices: the number of JAX devices, e.g. cores, that share the chains (docs/speed.md).
        divergence_limit: a chain has diverged if, after the discarded part, its largest parameter exceeds this (times
            the largest at the start, if that is above 1) while it is a thousand times too hot.
        **unknown_options: raise an error that suggests the nearest option.

    Returns:
        A `Run`. Ctrl-C stops early and returns the draws so far, with `run.interrupted` set.
    """
    _check_options(sample, unknown_options)
    if estimator is None or (isinstance(estimator, Plan) and num_steps is None):
        _refuse_given(
            "a planned run",
            integrator=integrator,
            coordinates=coordinates,
            num_steps=num_steps,
            discard=discard,
            thin=thin,
        )
        goal = _goal(estimator, accuracy, data_passes, seconds, num_chains, target, init)
        options = {"collect": collect, "progress": progress, "save_to": save_to, "devices": devices}
        if isinstance(estimator, Plan):
            check_same_target(estimator.pilot.fingerprint, target)
            return continue_planned(estimator.pilot, target, goal, **options)
        return sample_planned(target, goal, init=init, seed=seed, rng=rng, **options)
    _refuse_given("a run with a given estimator", accuracy=accuracy, seconds=seconds)
    num_chains = 4 if num_chains is None else num_chains
    discard = 0.5 if discard is None else discard
    estimator, integrator, coordinates = _parts(estimator, integrator, coordinates)
    process.check()
    check_parts(target, estimator, integrator)
    if init is None and coordinates is not None:
        center = coordinates.center
        _check_coordinates(coordinates, center if target.init is None else target.starting_at(target.init))
        init = target.constrain(center)
    check_length(num_steps, data_passes)
    check_plan(discard, thin)
    check_count("sample", "num_chains", num_chains, 1)
    check_positive("sample", "divergence_limit", divergence_limit)
    placement.mesh(num_chains, devices)
    collector = as_collector(collect)
    key = _start.root_key(seed, rng)
    if save_to is not None:
        storage.check_writable(save_to)
    num_chains = int(num_chains)
    _start.check_chains(jax.eval_shape(lambda: chain_keys(key, num_chains)), num_chains)
    at = _start.starting_points(target, init, key, num_chains)
    check_collector(collector, target.seen_at(at.first))
    _check_coordinates(coordinates, at.first)

    sampler = compose(target, estimator, integrator, coordinates)
    seen = as_seen(collector, target.support, None)
    row = jax.eval_shape(seen.row, at.first)
    draw_bytes = num_chains * (pytree.num_bytes(row) + statistics.vector_bytes(seen, at.first, num_chains))
    plan = make_plan(count_steps(sampler, num_steps, data_passes), discard, thin, draw_bytes)
    settings = {
        "estimator": describe(estimator),
        "integrator": describe(integrator),
        "integrator_in_sum_units": describe(getattr(sampler, "integrator", None)),
        "collect": describe(collector),
        "seed": "key" if isinstance(seed, jax.Array) else int(seed),
    }
    chains = begin(target, sampler, collector, coordinates, at, key, settings, divergence_limit, plan, devices)
    return complete(chains, plan, progress, save_to)


def resume(
    path: str | os.PathLike,
    target: Target,
    *,
    num_steps: int | None = None,
    data_passes: float | None = None,
    accuracy: float | None = None,
    estimator: AbstractEstimator | AbstractKernel | Method | None = None,
    integrator: AbstractIntegrator | None = None,
    coordinates: AbstractCoordinates | None = None,
    collect: AbstractCollector | Callable[[Position], Any] | None = None,
    like: Position | None = None,
    progress: bool | None = None,
    save_to: str | os.PathLike | None = None,
    devices: int = 1,
    **unknown_options: Any,
) -> Run:
    """Continue a saved run: the old draws, then the new ones, bit for bit as if it had never been interrupted.

    Args:
        path: a file written by `run.save`.
        target: the same posterior; a different one raises InputError.
        num_steps: further steps per chain; or
        data_passes: a budget of n · data_passes further datum gradients per chain. Without either, an interrupted run
            continues to its planned end.
        accuracy: for a planned run, a new accuracy to continue to.
        estimator: the estimator of the saved run; needed only if it has a Python function among its settings, or is of
            a class of your own.
        integrator: likewise.
        coordinates: likewise.
        collect: likewise.
        like: an example of the parameters, needed if they are not nested dicts, lists and tuples.
        progress: as in `sample`.
        save_to: as in `sample`; may be `path` itself.
        devices: as in `sample`.
        **unknown_options: raise an error that suggests the nearest option.
    """
    _check_options(resume, unknown_options)
    given_estimator, given_integrator, given_coordinates = (None, integrator, coordinates)
    if estimator is not None:
        given_estimator, given_integrator, given_coordinates = _parts(estimator, integrator, coordinates)
    process.check()
    check_length(num_steps, data_passes)
    if save_to is not None:
        storage.check_writable(save_to)
    old = storage.read(path, like)
    settings = old.settings
    if GOAL in settings and num_steps is None and data_passes is None:
        check_same_target(old.fingerprint, target)
        goal = _goal_to_go_on(old.run, accuracy)
        return continue_planned(
            old.run, target, goal, collect=collect, progress=progress, save_to=save_to, devices=devices
        )
    _refuse_given("a run that was not planned, or with a length", accuracy=accuracy)
    collector = as_collector(collect) if collect is not None else rebuild(settings["collect"], "collect")
    chosen = given_estimator or rebuild(settings["estimator"], "estimator")
    integrator = given_integrator or rebuild(settings["integrator"], "integrator")
    coordinates = given_coordinates or as_coordinates(rebuild(settings.get("coordinates"), "coordinates"))
    check_parts(target, chosen, integrator)
    check_same(settings["estimator"], given_estimator, "estimator")
    check_same(settings["integrator"], given_integrator, "integrator")
    check_same(settings.get("coordinates"), given_coordinates, "coordinates")
    check_same(settings["collect"], None if collect is None else collector, "collect")
    check_same_target(old.fingerprint, target)
    placement.mesh(settings["num_chains"], devices)
    total = None if data_passes is not None else _total_steps(settings, num_steps)
    sampler = compose(target, chosen, integrator, coordinates)
    if total is None:
        total = _total_steps(settings, count_steps(sampler, None, data_passes, resumed=True))
    plan = Steps(total, settings["discard"], settings["thin"])
    collector = as_seen(collector, target.support, coordinates)
    restored = old.restored(sampler, collector)
    assert isinstance(restored.checkpoint, Checkpoint)
    kept = Kept(restored.draws, restored.stats)
    chains = Chains(
        sampler, collector, settings, restored.fingerprint, restored.checkpoint, kept, restored.cost, devices
    )
    return complete(chains, plan, progress, save_to)


def _check_options(function: Callable, options: dict[str, Any]) -> None:
    """Raise an error that suggests the nearest name, if there are unknown options."""
    if options:
        parameters = inspect.signature(function).parameters.values()
        known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        raise unknown(f"option of {function.__name__}", next(iter(options)), known)


def _parts(
    estimator: AbstractEstimator | AbstractKernel | Method | MethodInCoordinates | Plan,
    integrator: AbstractIntegrator | None,
    coordinates: AbstractCoordinates | None,
) -> tuple[AbstractEstimator | AbstractKernel, AbstractIntegrator | None, AbstractCoordinates | None]:
    """Estimator, integrator and coordinates, taken from a recipe or a plan if that was given instead."""
    as_coordinates(coordinates)
    if isinstance(estimator, Plan):
        estimator = estimator.method
    if not isinstance(estimator, Method | MethodInCoordinates):
        return estimator, integrator, coordinates
    own = getattr(estimator, "coordinates", None)
    if integrator is not None or (coordinates is not None and own is not None):
        raise InputError("give either a recipe or an estimator and an integrator, not both")
    return estimator.estimator, estimator.integrator, own or coordinates


def _goal(
    plan: Plan | None,
    accuracy: float | None,
    data_passes: float | None,
    seconds: float | None,
    num_chains: int | None,
    target: Any,
    init: Any,
) -> Goal:
    """The goal of a planned run, checked."""
    default_accuracy, default_chains = defaults(target, init)
    for name, value in (("data_passes", data_passes), ("seconds", seconds)):
        if value is not None:
            check_positive("sample", name, value)
    if accuracy is None and data_passes is None and seconds is None:
        accuracy = default_accuracy if plan is None else plan.accuracy
    chains = check_chains(default_chains if num_chains is None else num_chains)
    if plan is not None:
        chains = plan.pilot.settings["num_chains"]
        if num_chains not in (None, chains):
            raise InputError(f"the plan was made for {chains} chains, not {num_chains}: leave num_chains= out")
    check_parts(target, Full(), BAOAB(1.0, 1.0))
    budget = None if data_passes is None else data_passes * target.num_data * chains
    return Goal(None if accuracy is None else check_accuracy(accuracy), budget, seconds, chains)


def _goal_to_go_on(old: Run, accuracy: float | None) -> Goal:
    """The goal of the saved run, or a new accuracy; raises InputError if nothing is left to do."""
    goal = Goal(**old.settings[GOAL])
    verdict = old.verdict
    if accuracy is not None:
        goal = Goal(check_accuracy(accuracy), None, None, goal.num_chains)
    if verdict is not None and verdict.reached and not (goal.accuracy or 0.0) < verdict.accuracy:
        raise InputError("the saved run has reached its accuracy: give a smaller accuracy=, or num_steps=")
    return goal


def _refuse_given(what: str, **options: Any) -> None:
    """Raise InputError if one of these options is given, none of which is for `what`."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name}= is not for {what}: leave it out, or see help(ewsg.sample)")


def _check_coordinates(coordinates: AbstractCoordinates | None, position: Position) -> None:
    """Raise InputError unless the coordinates are for parameters like these."""
    if coordinates is None:
        return
    center = coordinates.center
    same = jax.tree.structure(center) == jax.tree.structure(position)
    if not same or any(
        jnp.shape(own) != jnp.shape(leaf)
        for own, leaf in zip(jax.tree.leaves(center), jax.tree.leaves(position), strict=True)
    ):
        raise InputError("the center of the coordinates must be like the parameters: give a pytree of the same shapes")


def _total_steps(settings: dict[str, Any], num_steps: int | None) -> int:
    """The length of a resumed run, from its start: `num_steps` more steps, or None for the planned end."""
    done = settings["num_steps"]
    total = settings.get("planned_steps", done) if num_steps is None else done + int(num_steps)
    if total <= done:
        raise InputError("the saved run is complete: say how much further to go, with num_steps= or data_passes=")
    check_total(total)
    return total
