"""The mechanics of sampling: chains are started or restored, driven for some steps, and turned into a run."""

import dataclasses
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .. import _random
from .._core import pytree
from .._core.component import describe
from .._core.types import Key, Position
from .._engine import interrupt, loop, progress as _progress, start as _start
from .._engine.draws import Kept
from .._engine.driver import Driver, Snapshot
from .._engine.plan import Plan
from .._engine.state import HOT_RATIO, Checkpoint, Limits
from ..collect import AbstractCollector, as_seen
from ..errors import InputError, first_line
from ..sampler import AbstractSampler
from ..target.coordinates import AbstractCoordinates
from ..target.fingerprint import fingerprint as _fingerprint
from ..target.target import Target
from .autosave import Autosave
from .cost import RunCost
from .failure import likely_cause
from .run import Run

_STEPS_PER_PROBE = 10
_RECORDED_VERSIONS = ("ewsg", "jax", "jaxlib", "equinox", "numpy")
Tick = Callable[[int, str], None]


@dataclasses.dataclass(frozen=True)
class Chains:
    """The chains of a run before, between or after calls of the driver.

    Attributes:
        sampler: the transition.
        collector: what is kept of each draw.
        settings: the settings of the run, for `run.settings`.
        fingerprint: the fingerprint of its target.
        checkpoint: the state of the chains.
        kept: their draws so far.
        cost: the cost so far, apart from the evaluations of the chains' own steps.
        devices: the number of devices that share the chains.
    """

    sampler: AbstractSampler
    collector: AbstractCollector
    settings: dict[str, Any]
    fingerprint: dict[str, Any]
    checkpoint: Checkpoint
    kept: Kept | None = None
    cost: RunCost = dataclasses.field(default_factory=RunCost)
    devices: int = 1

    def run(self, snapshot: Snapshot) -> Run:
        """The run at a snapshot."""
        return Run.of(snapshot, self.sampler, self.settings, self.fingerprint, self.cost)

    def driver(self, plan: Plan) -> Driver:
        """The driver that takes these chains through a plan, whose steps are counted from the very start."""
        return Driver(self.sampler, self.collector, plan, self.checkpoint, self.kept, self.devices)

    def after(self, snapshot: Snapshot) -> "Chains":
        """The same chains at a snapshot."""
        cost = self.cost.with_time(snapshot.seconds, snapshot.compile_seconds)
        return dataclasses.replace(self, checkpoint=snapshot.checkpoint, kept=snapshot.kept, cost=cost)


def begin(
    target: Target,
    sampler: AbstractSampler,
    collector: AbstractCollector,
    coordinates: AbstractCoordinates | None,
    at: _start.Start,
    key: Key,
    settings: dict[str, Any],
    limit: float,
    plan: Plan,
    devices: int = 1,
) -> Chains:
    """Chains at their starting points.

    Args:
        target: the posterior of θ, unconstrained.
        sampler: the transition, for the posterior in the coordinates z if there are any.
        collector: what is kept of each draw, a function of the parameters as the user sees them.
        coordinates: z, with θ = c + L z; None if chains run in θ.
        at: the starting points θ.
        key: the root key.
        settings: settings of the run, to which those of the chains are added.
        limit: `divergence_limit` of `ewsg.sample`.
        plan: the plan of the run.
        devices: the number of devices that share the chains.
    """
    positions = at.positions
    if coordinates is not None:
        positions = jax.tree.map(np.asarray, _located(coordinates, positions))
    collector = as_seen(collector, target.support, coordinates)
    sampler.check(positions)
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    settings = settings | {
        "coordinates": describe(coordinates),
        "support": None if target.support is None else target.support.in_words(),
        "temperature": float(sampler.temperature),
        "num_chains": num_chains,
        "num_data": target.num_data,
        "dimension": pytree.size(at.first),
        "rng": _random.generator_of(key),
        "divergence_limit": float(limit),
        "versions": _versions(),
    }
    clock = time.perf_counter()
    try:
        shapes = jax.eval_shape(loop.start, sampler, collector, key, positions)
    except InputError:
        raise
    except Exception as error:  # in a user's own component, or a function among the settings
        raise InputError(f"the first step failed, in the estimator or the integrator: {first_line(error)}") from error
    _start.check_chains(shapes, num_chains)
    carry, keys = jax.block_until_ready(loop.start(sampler, collector, key, positions))
    cost = RunCost(compile_seconds=time.perf_counter() - clock)
    checkpoint = Checkpoint(carry, keys, _limits(sampler, limit, positions, plan))
    found = _fingerprint(target, at.first, at.densities)
    return Chains(sampler, collector, settings, found, checkpoint, None, cost, devices)


def complete(chains: Chains, plan: Plan, progress: bool | None, save_to: str | os.PathLike | None) -> Run:
    """Drive the chains to the end of their plan, or to the first Ctrl-C or SIGTERM, and save the run."""
    saver = Autosave(save_to)
    driver = chains.driver(plan)
    with interrupt.deferred(terminate=save_to is not None) as stop, _progress.bar(plan.num_steps, progress) as tick:
        snapshot = driver.run(stop, tick, lambda: saver.if_due(lambda: chains.run(driver.snapshot())))
        run = explained(chains.run(snapshot), chains.sampler)
        saver.save(run)
    return run


def explained(run: Run, sampler: AbstractSampler) -> Run:
    """The run; if chains failed or are far too hot, the likely cause is added to its settings."""
    if run.ok.all() and not run.hot.any():
        return run
    position = run.fingerprint["position"]
    if isinstance(sampler.target, Target) and sampler.target.is_centred:
        position = np.zeros(pytree.size(position), np.float32)
    cause = likely_cause(sampler, position)
    return dataclasses.replace(run, settings=run.settings | {"likely_cause": cause})


@jax.jit
def _located(coordinates: AbstractCoordinates, positions: Position) -> Position:
    """Positions in coordinates, of all chains; one program for all coordinates of a kind."""
    return jax.vmap(coordinates.locate)(positions)


def _limits(sampler: AbstractSampler, divergence_limit: float, start: Position, plan: Plan) -> Limits:
    size = max(1.0, *(float(np.max(np.abs(np.asarray(leaf, np.float64)))) for leaf in jax.tree.leaves(start)))
    largest = float(np.finfo(np.float32).max)
    return Limits(
        distance=np.array(min(divergence_limit * size, largest), np.float32),
        temperature=np.array(min(HOT_RATIO * float(sampler.temperature), largest), np.float32),
        probe_every=np.array(max(1, _STEPS_PER_PROBE // plan.thin), np.int32),
    )


def _versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a run depends on."""
    found = {name: importlib.metadata.version(name) for name in _RECORDED_VERSIONS}
    return {"python": platform.python_version(), **found}
