"""`ewsg.sample` and `ewsg.resume`: check all arguments, start or restore the chains, drive them to their end."""

import dataclasses
import functools
import importlib.metadata
import inspect
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from . import _random
from ._core import process, pytree
from ._core.component import check_count, check_positive, check_same, describe, rebuild
from ._core.types import Position
from ._engine import interrupt, loop, placement, start as _start
from ._engine.draws import Kept
from ._engine.driver import Driver, Snapshot
from ._engine.plan import Plan, check_length, check_plan, check_total, count_steps, make_plan
from ._engine.state import HOT, Checkpoint, Limits
from ._random.streams import chain_keys
from .collect import AbstractCollector, as_collector, check_collector
from .errors import InputError, first_line, unknown
from .estimators import AbstractEstimator
from .integrators import AbstractIntegrator
from .recipes import Method
from .result import storage
from .result.autosave import Autosave
from .result.cost import RunCost
from .result.failure import likely_cause
from .result.run import Run
from .sampler import AbstractKernel, AbstractSampler, check_parts, compose
from .target.fingerprint import check_same_target, fingerprint
from .target.target import Target

_PROBE_STEPS = 10
_RECORDED_VERSIONS = ("ewsg", "jax", "jaxlib", "equinox", "numpy")


def sample(
    target: Target,
    estimator: AbstractEstimator | AbstractKernel | Method,
    integrator: AbstractIntegrator | None = None,
    *,
    init: Position | Callable[[jax.Array], Position] | None = None,
    num_chains: int = 4,
    num_steps: int | None = None,
    data_passes: float | None = None,
    discard: float | int = 0.5,
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
    """Runs chains and returns their draws, diagnostics and cost.

    Args:
        target: the posterior, `ewsg.Target` or one of `ewsg.models`.
        estimator: which data a step uses (`ewsg.Uniform`, `ewsg.Exponential`, ...); or a recipe, or a whole method,
            which needs no integrator.
        integrator: how a step moves (`ewsg.Underdamped`, ...).
        init: the starting point, a pytree of floating-point arrays; or a function of a key that draws one per chain.
        num_chains: chains, run together.
        num_steps: steps per chain; 2,000 when neither this nor `data_passes` is given.
        data_passes: a budget instead of `num_steps`: at most n · data_passes datum gradients per chain.
        discard: the discarded start of each chain: a share below 1, or a whole number of steps.
        thin: keep every `thin`-th step of the rest; by default such that about 1,000 draws are kept, or as many as
            fit into 1 GiB.
        seed: a whole number from 0 to 2^64 − 1, or a typed JAX key; equal seeds give equal runs.
        rng: the generator of random numbers: "fast" (docs/random.md) or "threefry", JAX's own; None is "fast" on the
            CPU and "threefry" elsewhere. A key given as seed keeps its own generator.
        collect: None keeps draws; a function of the position keeps its value instead; `ewsg.collect.Moments()` keeps
            running moments and no draws.
        progress: None shows a bar on a terminal when the run takes more than two seconds.
        save_to: a file to which the run is written every minute, at its end, and when the process is told to end
            (SIGTERM, as clusters send it at their time limit).
        devices: how many of JAX's devices, e.g. cores, share the chains (docs/speed.md).
        divergence_limit: a chain has diverged if, after the discarded part, its largest parameter exceeds this (times
            that of its start, if larger than 1) while it is a thousand times too hot.
        **unknown_options: refused, with the nearest option suggested.

    Returns:
        A `Run`. Ctrl-C stops early and returns the draws so far, with `run.interrupted` set.
    """
    _check_options(sample, unknown_options)
    estimator, integrator = _parts(estimator, integrator)
    process.check()
    check_parts(target, estimator, integrator)
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
    positions, first, densities = _start.starting_points(target, init, key, num_chains)
    check_collector(collector, first)

    sampler = compose(target, estimator, integrator)
    draw_bytes = num_chains * pytree.num_bytes(jax.eval_shape(collector.row, first))
    plan = make_plan(count_steps(sampler, num_steps, data_passes), discard, thin, draw_bytes)
    sampler.check(positions)
    settings = {
        "estimator": describe(estimator),
        "integrator": describe(integrator),
        "integrator_in_sum_units": describe(getattr(sampler, "integrator", None)),
        "temperature": float(sampler.temperature),
        "collect": describe(collector),
        "num_chains": num_chains,
        "num_data": target.num_data,
        "dimension": pytree.size(first),
        "seed": "key" if isinstance(seed, jax.Array) else int(seed),
        "rng": _random.generator_of(key),
        "divergence_limit": float(divergence_limit),
        "versions": _versions(),
    }
    clock = time.perf_counter()
    try:
        shapes = jax.eval_shape(loop.start, sampler, collector, key, positions)
    except InputError:
        raise
    except Exception as error:  # in a component of the user's own, or a function among the settings
        raise InputError(f"the first step failed, in the estimator or the integrator: {first_line(error)}") from error
    _start.check_chains(shapes, num_chains)
    carry, keys = jax.block_until_ready(loop.start(sampler, collector, key, positions))
    cost = RunCost(compile_seconds=time.perf_counter() - clock)
    checkpoint = Checkpoint(carry, keys, _limits(sampler, divergence_limit, positions, plan))
    driver = Driver(sampler, collector, plan, checkpoint, devices=devices)
    make_run = functools.partial(
        Run.of, sampler=sampler, settings=settings, fingerprint=fingerprint(target, first, densities), earlier=cost
    )
    return _complete(driver, make_run, sampler, progress, save_to)


def resume(
    path: str | os.PathLike,
    target: Target,
    *,
    num_steps: int | None = None,
    data_passes: float | None = None,
    estimator: AbstractEstimator | AbstractKernel | Method | None = None,
    integrator: AbstractIntegrator | None = None,
    collect: AbstractCollector | Callable[[Position], Any] | None = None,
    like: Position | None = None,
    progress: bool | None = None,
    save_to: str | os.PathLike | None = None,
    devices: int = 1,
    **unknown_options: Any,
) -> Run:
    """Goes on where a saved run stopped: the old draws, then the new ones, bit for bit as if never interrupted.

    Args:
        path: a file written by `run.save`.
        target: the same posterior; another one is refused.
        num_steps: further steps; or
        data_passes: further datum gradients per chain, over n. Without either, an interrupted run is taken to the end
            of what was planned.
        estimator: needed only when the saved one has a Python function among its settings, or a class of your own;
            with the same settings.
        integrator: likewise.
        collect: likewise.
        like: an example of the parameters, needed when they are not nested dicts, lists and tuples.
        progress: as in `sample`.
        save_to: as in `sample`; may be `path` itself.
        devices: as in `sample`.
        **unknown_options: refused, with the nearest option suggested.
    """
    _check_options(resume, unknown_options)
    given_estimator, given_integrator = (None, integrator) if estimator is None else _parts(estimator, integrator)
    process.check()
    check_length(num_steps, data_passes)
    if save_to is not None:
        storage.check_writable(save_to)
    old = storage.read(path, like)
    settings = old.settings
    collector = as_collector(collect) if collect is not None else rebuild(settings["collect"], "collect")
    chosen = given_estimator or rebuild(settings["estimator"], "estimator")
    integrator = given_integrator or rebuild(settings["integrator"], "integrator")
    check_parts(target, chosen, integrator)
    check_same(settings["estimator"], given_estimator, "estimator")
    check_same(settings["integrator"], given_integrator, "integrator")
    check_same(settings["collect"], None if collect is None else collector, "collect")
    check_same_target(old.fingerprint, target)
    placement.mesh(settings["num_chains"], devices)
    total = None if data_passes is not None else _total_steps(settings, num_steps)
    sampler = compose(target, chosen, integrator)
    if total is None:
        total = _total_steps(settings, count_steps(sampler, None, data_passes, resumed=True))
    plan = Plan(total, settings["discard"], settings["thin"])
    restored = old.restored(sampler, collector)
    assert isinstance(restored.checkpoint, Checkpoint)
    driver = Driver(sampler, collector, plan, restored.checkpoint, Kept(restored.draws, restored.stats), devices)
    make_run = functools.partial(
        Run.of, sampler=sampler, settings=settings, fingerprint=restored.fingerprint, earlier=restored.cost
    )
    return _complete(driver, make_run, sampler, progress, save_to)


def _complete(
    driver: Driver,
    make_run: Callable[[Snapshot], Run],
    sampler: AbstractSampler,
    progress: bool | None,
    save_to: str | os.PathLike | None,
) -> Run:
    """Drives the chains to the end of their plan, or to the first Ctrl-C or SIGTERM, and saves the run."""
    saver = Autosave(save_to)
    with interrupt.deferred(terminate=save_to is not None) as stop:
        run = make_run(driver.run(stop, progress, lambda: saver.if_due(lambda: make_run(driver.snapshot()))))
        if not run.ok.all() or run.hot.any():
            cause = likely_cause(sampler, run.fingerprint["position"])
            run = dataclasses.replace(run, settings=run.settings | {"likely_cause": cause})
        saver.save(run)
    return run


def _check_options(function: Callable, options: dict[str, Any]) -> None:
    """Raises UnknownOption, with the nearest name as a suggestion, if there is any."""
    if options:
        parameters = inspect.signature(function).parameters.values()
        known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
        raise unknown(f"option of {function.__name__}", next(iter(options)), known)


def _parts(
    estimator: AbstractEstimator | AbstractKernel | Method, integrator: AbstractIntegrator | None
) -> tuple[AbstractEstimator | AbstractKernel, AbstractIntegrator | None]:
    """Estimator and integrator, of a recipe if one was given in place of both."""
    if not isinstance(estimator, Method):
        return estimator, integrator
    if integrator is not None:
        raise InputError("give either a recipe or an estimator and an integrator, not both")
    return estimator.estimator, estimator.integrator


def _total_steps(settings: dict[str, Any], num_steps: int | None) -> int:
    """The length of a resumed run, from its start: so many further steps, or what was planned."""
    done = settings["num_steps"]
    total = settings.get("planned_steps", done) if num_steps is None else done + int(num_steps)
    if total <= done:
        raise InputError("the saved run is complete: give num_steps= or data_passes=, how much further to go")
    check_total(total)
    return total


def _limits(sampler: AbstractSampler, divergence_limit: float, start: Position, plan: Plan) -> Limits:
    size = max(1.0, *(float(np.max(np.abs(np.asarray(leaf, np.float64)))) for leaf in jax.tree.leaves(start)))
    largest = float(np.finfo(np.float32).max)
    return Limits(
        distance=np.array(min(divergence_limit * size, largest), np.float32),
        temperature=np.array(min(HOT * float(sampler.temperature), largest), np.float32),
        probe_every=np.array(max(1, _PROBE_STEPS // plan.thin), np.int32),
    )


def _versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a run depends on."""
    found = {name: importlib.metadata.version(name) for name in _RECORDED_VERSIONS}
    return {"python": platform.python_version(), **found}
