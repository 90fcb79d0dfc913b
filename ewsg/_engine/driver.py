"""The driver: takes chains through their plan in calls of the compiled loop, each about a second long."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ..collect import AbstractCollector
from ..sampler import AbstractSampler
from . import loop, placement, state
from .draws import DrawBuffer, Kept
from .plan import FIRST_CALL_STEPS, Plan, next_chunk, next_quota

_LARGE_DATUM_BYTES = 64 * 2**10


class Snapshot(NamedTuple):
    """A run between two calls of the loop.

    Attributes:
        kept: draws and diagnostics so far.
        status: per chain, the name of its `Status`.
        collected: the collector's results, with a leading axis of chains.
        checkpoint: everything needed to continue.
        plan: the plan of the run.
        num_steps: steps taken since the very start of the run.
        datum_gradients: per chain, the datum gradients since the very start.
        datum_directional: per chain, the directional derivatives since the very start.
        num_probes: the number of measurements of the noise ratio, over all chains.
        seconds: the time that this driver has spent in the loop.
        compile_seconds: the time that it has spent compiling the loop.
    """

    kept: Kept
    status: np.ndarray
    collected: Any
    checkpoint: state.Checkpoint
    plan: Plan
    num_steps: int
    datum_gradients: np.ndarray
    datum_directional: np.ndarray
    num_probes: int
    seconds: float
    compile_seconds: float


class Driver:
    """All chains on their devices, and the host's buffer of their draws.

    Args:
        sampler: the transition.
        collector: what is kept of each draw.
        plan: the steps to take, counted from the very start of the run.
        checkpoint: the state of the chains.
        earlier: the draws so far of a resumed run.
        devices: the number of devices that share the chains.
    """

    def __init__(
        self,
        sampler: AbstractSampler,
        collector: AbstractCollector,
        plan: Plan,
        checkpoint: state.Checkpoint,
        earlier: Kept | None = None,
        devices: int = 1,
    ) -> None:
        carry, keys, self._limits = checkpoint
        self._plan = plan
        self._buffer = DrawBuffer(collector, carry, plan, earlier)
        self._mesh = mesh = placement.mesh(len(carry.chains.status), devices)
        self._sampler, self._collector = placement.place((sampler, collector), state.SAME, mesh)
        self._keys = placement.place(keys, state.EACH, mesh)
        self._carry = placement.place(carry, state.CARRY_SPECS, mesh)
        self._rows = placement.place(self._buffer.empty_rows(), state.ROWS_SPECS, mesh)
        self._loop = loop.advance(mesh, _is_large(sampler, carry))
        self._done = int(carry.step)
        self._seconds = self._compile_seconds = 0.0

    def run(
        self, stop: Callable[[], bool], tick: Callable[[int, str], None], between_calls: Callable[[], None]
    ) -> Snapshot:
        """Take the chains to the end of the plan.

        Args:
            stop: called between calls of the loop; returning True ends the run early.
            tick: called after every call of the loop with the number of steps done and the latest diagnostics.
            between_calls: called after every call of the loop, for example to save a `snapshot`.
        """
        self._compile()
        quota, live = FIRST_CALL_STEPS, ""
        while self._done < self._plan.num_steps and not stop():
            began, before = time.perf_counter(), self._done
            live = self._advance(quota) or live
            seconds, taken = time.perf_counter() - began, self._done - before
            self._seconds += seconds
            quota = next_quota(taken, seconds, quota)
            tick(self._done, f"{taken / seconds:,.0f} steps/s  {live}")
            between_calls()
        return self.snapshot()

    def snapshot(self) -> Snapshot:
        """The present state of the run."""
        carry, chains = self._carry, self._carry.chains
        draws_per_probe, num_chains = int(self._limits.probe_every), len(chains.status)
        return Snapshot(
            kept=self._buffer.kept(),
            status=np.array([state.Status(code).name for code in np.asarray(chains.status)]),
            collected=loop.collected(self._collector, carry),
            checkpoint=state.Checkpoint(carry, self._keys, self._limits),
            plan=self._plan,
            num_steps=self._done,
            datum_gradients=np.asarray(chains.gradients.value()),
            datum_directional=np.asarray(chains.directional.value()),
            num_probes=num_chains * math.ceil(int(carry.draws) / draws_per_probe),
            seconds=self._seconds,
            compile_seconds=self._compile_seconds,
        )

    def _compile(self) -> None:
        """Compile the loop, by a call that takes no step."""
        began = time.perf_counter()
        if self._mesh is not None:
            placement.check(loop.steps, *self._arguments(0, 0, False))
        self._call(0, 0, False)
        self._compile_seconds = time.perf_counter() - began

    def _advance(self, quota: int) -> str:
        """Take up to about `quota` steps; return the latest diagnostics if there was a draw."""
        plan, buffer = self._plan, self._buffer
        since = 0 if self._done == plan.discard else int(self._carry.since)
        first, num_draws, partial = next_chunk(plan, self._done, since, quota, buffer.draws_per_call)
        self._call(first, num_draws, partial)
        self._done += first + (num_draws - 1) * plan.thin
        if not partial:
            buffer.take(self._rows, num_draws)
        return "" if partial else buffer.live()

    def _call(self, first: int, num_draws: int, partial: bool) -> None:
        self._carry, self._rows = jax.block_until_ready(self._loop(*self._arguments(first, num_draws, partial)))

    def _arguments(self, first: int, num_draws: int, partial: bool) -> tuple[Any, ...]:
        plan = self._plan
        ends = not partial or self._done + first in (plan.discard, plan.num_steps)
        chunk = state.Chunk(
            first=np.array(first, np.int32),
            num_draws=np.array(num_draws, np.int32),
            thin=np.array(plan.thin, np.int32),
            begins=np.array(self._done == plan.discard),
            partial=np.array(partial),
            ends=np.array(ends),
        )
        limits = self._limits
        if self._done < plan.discard:  # a chain on its way from a distant start may be hot
            limits = limits._replace(temperature=np.array(np.inf, np.float32))
        return self._sampler, self._collector, self._keys, self._carry, self._rows, chunk, limits


def _is_large(sampler: AbstractSampler, carry: state.Carry) -> bool:
    """Whether data have many intermediates, so that matrix products are large: see `compiler.options`."""
    position = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), carry.chains.anchor)
    return sampler.target.datum_bytes(position) > _LARGE_DATUM_BYTES
