"""`ewsg.sample`: checks, then the compiled loop in chunks, then a `Run`."""

import dataclasses
import importlib.metadata
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _interrupt, _loop, _progress, _tree, storage
from ._component import check_count, check_positive, describe, rebuild
from ._types import Position
from .collect import AbstractCollector, as_collector
from .errors import InputError, unknown
from .estimators import AbstractEstimator
from .failure import likely_cause
from .fingerprint import check_same_target, fingerprint
from .integrators import AbstractIntegrator
from .recipes import Method
from .result import Checkpoint, RunCost, Run
from .sampler import Sampler, compose
from .target import Target

_DEFAULT_STEPS = 2_000
_DEFAULT_DRAWS = 1_000
_CHUNK_SECONDS = 0.4
_CHUNK_BYTES = 32 * 2**20
_AUTOSAVE_SECONDS = 60.0
_PROBE_STEPS = 10
_CHECKED_VALUES = 4_000_000


class Plan(NamedTuple):
    """Which steps are taken and which of them are kept: every `thin`-th after the first `discard`."""

    num_steps: int
    discard: int
    thin: int

    @property
    def num_draws(self) -> int:
        """How many draws a chain keeps."""
        return (self.num_steps - self.discard) // self.thin


def sample(
    target: Target,
    estimator: AbstractEstimator | Method,
    integrator: AbstractIntegrator | None = None,
    *,
    init: Position | Callable[[jax.Array], Position],
    num_chains: int = 4,
    num_steps: int | None = None,
    data_passes: float | None = None,
    discard: float | int = 0.5,
    thin: int | None = None,
    seed: int | jax.Array = 0,
    collect: AbstractCollector | Callable[[Position], Any] | None = None,
    progress: bool | None = None,
    save_to: str | os.PathLike | None = None,
    divergence_limit: float = 1e6,
    **unknown_options: Any,
) -> Run:
    """Runs chains and returns their draws, diagnostics and cost.

    Args:
        target: the posterior, `ewsg.Target` or one of `ewsg.models`.
        estimator: which data move a step (`ewsg.Uniform`, `ewsg.Exponential`, ...), or a recipe in place of both.
        integrator: how a step moves (`ewsg.Underdamped`, ...).
        init: the starting point, a pytree of floating-point arrays; or a function of a key that draws one per chain.
        num_chains: chains, run together.
        num_steps: steps per chain; 2,000 when neither this nor `data_passes` is given.
        data_passes: the budget in its place: at most n · data_passes datum gradients per chain.
        discard: how much of the start is thrown away: a share below 1, or a whole number of steps.
        thin: keep every `thin`-th step of the rest; by default such that about 1,000 draws are kept.
        seed: a whole number or a typed JAX key; equal seeds give equal runs, whatever the chunks.
        collect: None keeps draws; a function of the position keeps its value instead; `ewsg.collect.Moments()` keeps
            running moments and no draws.
        progress: None shows a bar on a terminal when the run takes more than two seconds.
        save_to: a file to which the run is written every minute and at its end.
        divergence_limit: a chain whose largest parameter exceeds this (times that of its start, if larger than 1) has
            diverged.

    Returns:
        A `Run`. Ctrl-C ends the run early and returns what there is.
    """
    if unknown_options:
        known = [name for name in sample.__kwdefaults__] + ["init"]
        raise unknown("option of sample", next(iter(unknown_options)), known)
    if isinstance(estimator, Method):
        if integrator is not None:
            raise InputError("give either a recipe or an estimator and an integrator, not both")
        estimator, integrator = estimator
    sampler = compose(target, estimator, integrator)
    plan = _plan(sampler, num_steps, data_passes, discard, thin)
    check_count("sample", "num_chains", num_chains, 1)
    check_positive("sample", "divergence_limit", divergence_limit)
    collector = as_collector(collect)
    key = _root_key(seed)
    keys = _loop.chain_keys(key, num_chains)
    positions = _initial_positions(target, init, keys.init, num_chains)
    if save_to is not None:
        storage.check_writable(save_to)
    limit = divergence_limit * max(1.0, float(_tree.max_abs(positions)))
    limits = _loop.Limits(jnp.float32(limit), jnp.int32(max(1, _PROBE_STEPS // plan.thin)))
    settings = {
        "estimator": describe(estimator),
        "integrator": describe(integrator),
        "integrator_in_sum_units": describe(sampler.integrator),
        "collect": describe(collector),
        "num_chains": num_chains,
        "num_data": target.num_data,
        "dimension": _tree.size(positions) // num_chains,
        "seed": seed if isinstance(seed, int) else "key",
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
    return _run(sampler, collector, plan, empty, progress, save_to)


def resume(
    path: str | os.PathLike,
    target: Target,
    *,
    num_steps: int | None = None,
    data_passes: float | None = None,
    estimator: AbstractEstimator | None = None,
    integrator: AbstractIntegrator | None = None,
    collect: AbstractCollector | Callable[[Position], Any] | None = None,
    like: Position | None = None,
    progress: bool | None = None,
    save_to: str | os.PathLike | None = None,
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
    further = _plan(sampler, num_steps, data_passes, 0, settings["thin"])
    plan = Plan(settings["num_steps"] + further.num_steps, settings["discard"], settings["thin"])
    if save_to is not None:
        storage.check_writable(save_to)
    carry, keys, limits = old.restore(sampler, collector)
    run = dataclasses.replace(old.run, checkpoint=Checkpoint(carry, keys, limits))
    return _run(sampler, collector, plan, run, progress, save_to)


def _run(
    sampler: Sampler,
    collector: AbstractCollector,
    plan: Plan,
    before: Run,
    progress: bool | None,
    save_to: str | os.PathLike | None,
) -> Run:
    """Takes the run from where `before` stands to the end of the plan."""
    carry, keys, limits = before.checkpoint
    record = _Record(collector, carry, plan, before)
    clock = time.perf_counter()
    zero, no = jnp.int32(0), jnp.array(False)
    thin = jnp.int32(plan.thin)
    carry, rows = _loop.advance(
        sampler, collector, keys, carry, record.empty_rows(), zero, zero, thin, no, limits
    )
    jax.block_until_ready(carry)
    compile_seconds = time.perf_counter() - clock
    began = saved = time.perf_counter()
    done = int(carry.step)
    quota, text = 8, ""

    def snapshot() -> Run:
        cost = before.cost.plus(carry, sampler.target.num_data, compile_seconds, time.perf_counter() - began)
        return record.run(before, Checkpoint(carry, keys, limits), cost, plan, collector)

    with _interrupt.deferred() as interrupted, _progress.bar(plan.num_steps, progress) as update:
        while done < plan.num_steps and not interrupted():
            first, num_draws, partial = _next_chunk(plan, done, int(carry.since), quota, record.room)
            tick = time.perf_counter()
            carry, rows = _loop.advance(
                sampler, collector, keys, carry, rows, jnp.int32(first), jnp.int32(num_draws), thin,
                jnp.array(partial), limits,
            )
            jax.block_until_ready(carry)
            taken = first + (num_draws - 1) * plan.thin
            done += taken
            seconds = time.perf_counter() - tick
            quota = _next_quota(taken, seconds, quota)
            if not partial:
                record.take(rows, num_draws)
                text = record.live()
            if done == plan.discard:
                carry = _loop.begin_recording(carry)
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


def _next_chunk(plan: Plan, done: int, since: int, quota: int, room: int) -> tuple[int, int, bool]:
    """(steps to the first draw, draws, whether that draw is not due yet) of the next call."""
    if done < plan.discard:
        return min(quota, plan.discard - done), 1, True
    to_draw = plan.thin - since
    left = (plan.num_steps - done - to_draw) // plan.thin + 1
    if quota < to_draw or left < 1:
        return min(quota, plan.num_steps - done), 1, min(quota, plan.num_steps - done) < to_draw
    return to_draw, max(1, min(1 + (quota - to_draw) // plan.thin, room, left)), False


def _next_quota(taken: int, seconds: float, quota: int) -> int:
    """Steps that take about `_CHUNK_SECONDS`, approached from below."""
    wanted = int(_CHUNK_SECONDS * taken / max(seconds, 1e-6))
    return max(1, min(wanted, 16 * max(quota, taken), 2**30))


class _Record:
    """Kept draws on the host, filled chunk by chunk."""

    def __init__(self, collector: AbstractCollector, carry: _loop.Carry, plan: Plan, before: Run):
        shapes = jax.eval_shape(lambda c: _loop.empty_rows(collector, c, 1), carry)
        self._shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), shapes)
        self._filled = int(carry.draws)
        row_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self._shapes))
        _check_memory(row_bytes, plan.num_draws)
        self.room = max(1, min(plan.num_draws, _CHUNK_BYTES // max(row_bytes, 1), 4096))
        self._host = jax.tree.map(
            lambda leaf: np.empty((leaf.shape[0], plan.num_draws, *leaf.shape[1:]), leaf.dtype), self._shapes
        )
        if self._filled:
            old = {"draw": before.draws, "stats": before.stats}
            jax.tree.map(lambda host, kept: host.__setitem__((slice(None), slice(0, self._filled)), kept), self._host, old)

    def empty_rows(self) -> Any:
        """The device buffer that a chunk writes its draws to."""
        return jax.tree.map(lambda leaf: jnp.zeros((self.room, *leaf.shape), leaf.dtype), self._shapes)

    def take(self, rows: Any, count: int) -> None:
        """Copies the first `count` rows to the host."""
        where = (slice(None), slice(self._filled, self._filled + count))
        jax.tree.map(
            lambda host, kept: host.__setitem__(where, np.moveaxis(np.asarray(kept[:count]), 0, 1)), self._host, rows
        )
        self._filled += count

    def live(self) -> str:
        """The latest diagnostics, for the progress bar."""
        names = {"kinetic_temperature": "T_kin", "configurational_temperature": "T_conf", "acceptance": "accept"}
        latest = {name: self._host["stats"][name][:, self._filled - 1] for name in names if name in self._host["stats"]}
        return "  ".join(
            f"{names[name]} {np.mean(values[np.isfinite(values)]):.2f}"
            for name, values in latest.items()
            if np.any(np.isfinite(values))
        )

    def run(self, before: Run, checkpoint: Checkpoint, cost: RunCost, plan: Plan, collector: AbstractCollector) -> Run:
        """The run as it stands."""
        kept = jax.tree.map(lambda leaf: leaf[:, : self._filled], self._host)
        carry = checkpoint.carry
        return dataclasses.replace(
            before,
            draws=kept["draw"],
            stats=kept["stats"],
            status=np.array([_loop.Status(code).name for code in np.asarray(carry.chains.status)]),
            cost=cost,
            collected=jax.tree.map(np.asarray, _loop.collected(collector, carry)),
            settings=before.settings
            | {"num_steps": int(carry.step), "discard": plan.discard, "thin": plan.thin}
            | {"interrupted": int(carry.step) < plan.num_steps},
            checkpoint=checkpoint,
        )


def _plan(
    sampler: Sampler, num_steps: int | None, data_passes: float | None, discard: float | int, thin: int | None
) -> Plan:
    if num_steps is not None and data_passes is not None:
        raise InputError("give num_steps= or data_passes=, not both: each fixes the length of the run")
    if data_passes is not None:
        check_positive("sample", "data_passes", data_passes)
        num_steps = sampler.num_steps(round(data_passes * sampler.target.num_data))
        if num_steps < 1:
            raise InputError(
                f"data_passes={data_passes} pays for no step: one step costs "
                f"{sampler.cost().datum_gradients} of the {sampler.target.num_data} datum gradients of a pass"
            )
    num_steps = _DEFAULT_STEPS if num_steps is None else num_steps
    check_count("sample", "num_steps", num_steps, 1)
    if num_steps >= 2**31:
        raise InputError(f"num_steps {num_steps} is above 2^31 − 1: run in parts with save and resume")
    if isinstance(discard, float) and 0 <= discard < 1:
        discard = int(discard * num_steps)
    check_count("sample", "discard", discard, 0)
    if discard >= num_steps:
        raise InputError(f"discard={discard} throws away all of the {num_steps} steps: discard fewer, or run longer")
    if thin is None:
        thin = max(1, (num_steps - discard) // _DEFAULT_DRAWS)
    check_count("sample", "thin", thin, 1)
    if thin > num_steps - discard:
        raise InputError(f"thin={thin} keeps no draw of the {num_steps - discard} steps after discard: lower it")
    return Plan(num_steps, int(discard), int(thin))


def _root_key(seed: int | jax.Array) -> jax.Array:
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return jax.random.key(int(seed))
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key) and seed.shape == ():
        return seed
    raise InputError(f"seed must be a whole number or a typed key (jax.random.key(0)), not {seed!r}")


def _initial_positions(target: Target, init: Any, keys: jax.Array, num_chains: int) -> Position:
    """The starting points of all chains, checked."""
    if callable(init):
        try:
            positions = jax.vmap(init)(keys)
        except Exception as error:
            raise InputError(f"init(key) failed: {str(error).splitlines()[0]}") from error
        target.check(jax.tree.map(lambda leaf: leaf[0], positions))
        distinct = positions
    else:
        position = jax.tree.map(_as_parameter, init)
        target.check(position)
        distinct = jax.tree.map(lambda leaf: leaf[None], position)
        positions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_chains, *leaf.shape)), position)
    _check_density(target, distinct)
    return positions


def _as_parameter(leaf: Any) -> Any:
    """An array as given, but without weak types; other leaves are left for the check to name."""
    try:
        array = jnp.asarray(leaf)
    except TypeError:
        return leaf
    return jax.lax.convert_element_type(array, array.dtype)


def _check_density(target: Target, positions: Position) -> None:
    """Refuse starts of zero density, judged by up to 4 million values of the likelihood, evenly spaced in the data."""
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    count = min(target.num_data, max(1, _CHECKED_VALUES // num_chains))
    indices = jnp.asarray(np.linspace(0, target.num_data - 1, count).round(), jnp.int32)
    for name, values in zip(("log_prior", "log_likelihood"), _loop.densities(target, positions, indices), strict=True):
        bad = np.flatnonzero(~np.isfinite(np.asarray(values)))
        if bad.size:
            raise InputError(
                f"the initial potential is not finite: {name} is {float(values[bad[0]])} at the start of chain {bad[0]}; "
                "start from a point of positive density (see init=)"
            )


def _check_memory(row_bytes: int, num_draws: int) -> None:
    """Refuse to keep more draws than the machine has memory for."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if row_bytes * num_draws > 0.8 * available:
        raise InputError(
            f"keeping {num_draws:,} draws needs {row_bytes * num_draws / 2**30:.0f} GiB and this machine has "
            f"{available / 2**30:.0f}: raise thin=, or keep less of each draw with collect="
        )


