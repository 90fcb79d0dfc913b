"""`ewsg.sample`: checks, then the compiled loop in chunks, then a `Run`."""

import dataclasses
import importlib.metadata
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _chains, _devices, _interrupt, _loop, _progress, _random, _tree, storage
from ._component import check_count, check_positive, describe, rebuild
from ._record import Plan, Record, next_chunk
from ._start import count_steps, initial_positions, make_plan, root_key
from ._types import Position
from .collect import AbstractCollector, as_collector
from .errors import InputError, unknown
from .estimators import AbstractEstimator
from .failure import likely_cause
from .fingerprint import check_same_target, fingerprint
from .integrators import AbstractIntegrator
from .recipes import Method
from .result import Checkpoint, Run, RunCost
from .sampler import AbstractKernel, AbstractSampler, compose
from .target import Target

_CHUNK_SECONDS, _FEW_SECONDS, _FEW_STEPS = 1.0, 3.0, 8
_AUTOSAVE_SECONDS = 60.0
_LARGE_DATUM = 64 * 2**10
_PROBE_STEPS = 10


def sample(
    target: Target,
    estimator: AbstractEstimator | AbstractKernel | Method,
    integrator: AbstractIntegrator | None = None,
    *,
    init: Position | Callable[[jax.Array], Position],
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
        estimator: which data move a step (`ewsg.Uniform`, `ewsg.Exponential`, ...); or a recipe, or a whole method,
            in place of both.
        integrator: how a step moves (`ewsg.Underdamped`, ...).
        init: the starting point, a pytree of floating-point arrays; or a function of a key that draws one per chain.
        num_chains: chains, run together.
        num_steps: steps per chain; 2,000 when neither this nor `data_passes` is given.
        data_passes: the budget in its place: at most n · data_passes datum gradients per chain.
        discard: how much of the start is thrown away: a share below 1, or a whole number of steps.
        thin: keep every `thin`-th step of the rest; by default such that about 1,000 draws are kept.
        seed: a whole number or a typed JAX key; equal seeds give equal runs, whatever the chunks.
        rng: the generator of random numbers: "fast" (docs/random.md) or "threefry", JAX's own; None is "fast" on the
            CPU and "threefry" elsewhere. A key given as seed keeps its own generator.
        collect: None keeps draws; a function of the position keeps its value instead; `ewsg.collect.Moments()` keeps
            running moments and no draws.
        progress: None shows a bar on a terminal when the run takes more than two seconds.
        save_to: a file to which the run is written every minute and at its end.
        devices: how many of JAX's devices, e.g. cores, share the chains (docs/speed.md).
        divergence_limit: a chain whose largest parameter exceeds this (times that of its start, if larger than 1) has
            diverged.
        **unknown_options: refused, with the nearest option suggested.

    Returns:
        A `Run`. Ctrl-C ends the run early and returns what there is.
    """
    if unknown_options:
        raise unknown("option of sample", next(iter(unknown_options)), ["init", *(sample.__kwdefaults__ or ())])
    if isinstance(estimator, Method):
        if integrator is not None:
            raise InputError("give either a recipe or an estimator and an integrator, not both")
        estimator, integrator = estimator
    sampler = compose(target, estimator, integrator)
    plan = make_plan(count_steps(sampler, num_steps, data_passes), discard, thin)
    check_count("sample", "num_chains", num_chains, 1)
    check_positive("sample", "divergence_limit", divergence_limit)
    _devices.mesh(num_chains, devices)
    collector = as_collector(collect)
    key = root_key(seed, rng)
    keys = _loop.chain_keys(key, num_chains)
    positions = initial_positions(target, init, keys.init, num_chains)
    sampler.check(positions)
    if save_to is not None:
        storage.check_writable(save_to)
    limit = divergence_limit * max(1.0, float(_tree.max_abs(positions)))
    limits = _chains.Limits(jnp.float32(limit), jnp.int32(max(1, _PROBE_STEPS // plan.thin)))
    settings = {
        "estimator": describe(estimator),
        "integrator": describe(integrator),
        "integrator_in_sum_units": describe(getattr(sampler, "integrator", None)),
        "temperature": float(sampler.temperature),
        "collect": describe(collector),
        "num_chains": num_chains,
        "num_data": target.num_data,
        "dimension": _tree.size(positions) // num_chains,
        "seed": seed if isinstance(seed, int) else "key",
        "rng": _random.generator_of(key),
        "divergence_limit": limit,
        "versions": {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy")},
    }
    clock = time.perf_counter()
    carry = jax.block_until_ready(_loop.start(sampler, collector, keys, positions))
    checkpoint = Checkpoint(carry, keys, limits)
    empty = Run(
        draws=None,
        stats={},
        status=np.full(num_chains, "ok"),
        cost=RunCost(compile_seconds=time.perf_counter() - clock),
        settings=settings,
        checkpoint=checkpoint,
        fingerprint=fingerprint(target, jax.tree.map(lambda leaf: leaf[0], positions)),
    )
    return _run(sampler, collector, plan, empty, progress, save_to, devices)


def resume(
    path: str | os.PathLike,
    target: Target,
    *,
    num_steps: int | None = None,
    data_passes: float | None = None,
    estimator: AbstractEstimator | AbstractKernel | None = None,
    integrator: AbstractIntegrator | None = None,
    collect: AbstractCollector | Callable[[Position], Any] | None = None,
    like: Position | None = None,
    progress: bool | None = None,
    save_to: str | os.PathLike | None = None,
    devices: int = 1,
) -> Run:
    """Goes on where a saved run stopped: the old draws, then the new ones, bit for bit as if never interrupted.

    Args:
        path: a file written by `run.save`.
        target: the same posterior; another one is refused.
        num_steps: further steps; or
        data_passes: further datum gradients per chain, over n.
        estimator: needed only when the saved one has a Python function among its settings, or a class of your own.
        integrator: likewise.
        collect: likewise.
        like: an example of the parameters, needed when they are not nested dicts, lists and tuples.
        progress: as in `sample`.
        save_to: as in `sample`; may be `path` itself.
        devices: as in `sample`.
    """
    old = storage.read(path, like)
    settings = old.settings
    collector = as_collector(collect) if collect is not None else rebuild(settings["collect"], "collect")
    sampler = compose(
        target,
        estimator or rebuild(settings["estimator"], "estimator"),
        integrator or rebuild(settings["integrator"], "integrator"),
    )
    check_same_target(old.fingerprint, target)
    if num_steps is None and data_passes is None:
        raise InputError("resume needs num_steps= or data_passes=: how much further to go")
    further = count_steps(sampler, num_steps, data_passes, resumed=True)
    plan = Plan(settings["num_steps"] + further, settings["discard"], settings["thin"])
    if save_to is not None:
        storage.check_writable(save_to)
    carry, keys, limits = old.restore(sampler, collector)
    run = dataclasses.replace(old.run, checkpoint=Checkpoint(carry, keys, limits))
    return _run(sampler, collector, plan, run, progress, save_to, devices)


def _run(
    sampler: AbstractSampler,
    collector: AbstractCollector,
    plan: Plan,
    before: Run,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Takes the run from where `before` stands to the end of the plan."""
    assert before.checkpoint is not None
    carry, keys, limits = before.checkpoint
    record = Record(collector, carry, plan, before)
    mesh = _devices.mesh(before.settings["num_chains"], devices)
    sampler, collector = _devices.place((sampler, collector), _chains.SAME, mesh)
    keys = _devices.place(keys, _chains.EACH, mesh)
    carry = _devices.place(carry, _chains.CARRY_SPECS, mesh)
    rows = _devices.place(record.empty_rows(), _chains.ROWS_SPECS, mesh)
    large = sampler.target.datum_bytes(before.fingerprint["position"]) > _LARGE_DATUM

    def chunk(first: int, num_draws: int, partial: bool) -> _chains.Chunk:
        ends = not partial or done + first in (plan.discard, plan.num_steps)
        counts = (jnp.int32(count) for count in (first, num_draws, plan.thin))
        return _chains.Chunk(*counts, partial=jnp.array(partial), ends=jnp.array(ends))

    def advanced(first: int, num_draws: int, partial: bool) -> tuple[_chains.Carry, Any]:
        arguments = sampler, collector, keys, carry, rows, chunk(first, num_draws, partial), limits
        return jax.block_until_ready(_loop.advance(mesh, large)(*arguments))

    def snapshot() -> Run:
        cost = before.cost.plus(carry, sampler, compile_seconds, time.perf_counter() - began)
        return record.run(before, Checkpoint(carry, keys, limits), cost, plan, collector)

    with _interrupt.deferred() as interrupted, _progress.bar(plan.num_steps, progress) as update:
        clock = time.perf_counter()
        done = int(carry.step)
        if mesh is not None:
            _devices.check(_loop.steps, sampler, collector, keys, carry, rows, chunk(0, 0, False), limits)
        carry, rows = advanced(0, 0, False)
        compile_seconds = time.perf_counter() - clock
        began = saved = time.perf_counter()
        quota, text = 8, ""
        while done < plan.num_steps and not interrupted():
            first, num_draws, partial = next_chunk(plan, done, int(carry.since), quota, record.room)
            tick = time.perf_counter()
            carry, rows = advanced(first, num_draws, partial)
            taken = first + (num_draws - 1) * plan.thin
            done += taken
            seconds = time.perf_counter() - tick
            quota = _next_quota(taken, seconds, quota)
            if not partial:
                record.take(rows, num_draws)
                text = record.live()
            if done == plan.discard:
                carry = _devices.place(_loop.begin_recording(carry), _chains.CARRY_SPECS, mesh)
            update(done, f"{taken / seconds:,.0f} steps/s  {text}")
            if save_to is not None and time.perf_counter() - saved > _AUTOSAVE_SECONDS:
                snapshot().save(save_to)
                saved = time.perf_counter()
    run = snapshot()
    if not run.ok.all():
        cause = likely_cause(sampler, before.fingerprint["position"])
        run = dataclasses.replace(run, settings=run.settings | {"likely_cause": cause})
    if save_to is not None:
        run.save(save_to)
    return run


def _next_quota(taken: int, seconds: float, quota: int) -> int:
    """How many steps the next call takes: about a second's worth, approached from below.

    A call also has to ask the system for its memory. Where steps are slow, that of a large network takes as long as one
    of them, so that a few are taken together as long as an interrupt need not wait for more than three seconds.
    """
    rate = taken / max(seconds, 1e-6)
    wanted = max(1, int(_CHUNK_SECONDS * rate), min(_FEW_STEPS, int(_FEW_SECONDS * rate)))
    return min(wanted, 16 * max(quota, taken), 2**30)
