"""A run from where it stands to the end of its plan: calls of the compiled loop, progress, saving, and an early end."""

import dataclasses
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..collect import AbstractCollector
from ..errors import InputError
from ..result.failure import likely_cause
from ..result.run import Checkpoint, Run
from ..sampler import AbstractSampler
from . import interrupt, loop, placement, progress as _progress, state
from .draws import Record
from .plan import FIRST_QUOTA, Plan, next_chunk, next_quota

_AUTOSAVE_SECONDS, _AUTOSAVE_SHARE = 60.0, 20
_LARGE_DATUM = 64 * 2**10


def drive(
    sampler: AbstractSampler,
    collector: AbstractCollector,
    plan: Plan,
    before: Run,
    progress: bool | None,
    save_to: str | os.PathLike | None,
    devices: int,
) -> Run:
    """Takes the run from where `before` stands to the end of the plan, or to the first Ctrl-C or SIGTERM."""
    chains = _Chains(sampler, collector, plan, before, devices)
    saver = _Saver(save_to)
    with (
        interrupt.deferred(terminate=save_to is not None) as stop,
        _progress.bar(plan.num_steps, progress) as update,
    ):
        chains.compile()
        quota = FIRST_QUOTA
        while chains.done < plan.num_steps and not stop():
            taken, seconds = chains.advance(quota)
            quota = next_quota(taken, seconds, quota)
            update(chains.done, f"{taken / seconds:,.0f} steps/s  {chains.live}")
            saver.now_and_then(chains.snapshot)
        run = chains.snapshot()
        if not run.ok.all():
            cause = likely_cause(sampler, before.fingerprint["position"])
            run = dataclasses.replace(run, settings=run.settings | {"likely_cause": cause})
        saver.save(run)
    return run


class _Chains:
    """All chains on their devices, and the host's record of what was kept of them."""

    def __init__(
        self, sampler: AbstractSampler, collector: AbstractCollector, plan: Plan, before: Run, devices: int
    ) -> None:
        assert isinstance(before.checkpoint, Checkpoint)
        carry, keys, self._limits = before.checkpoint
        self._plan, self._before = plan, before
        self._record = Record(collector, carry, plan, before)
        self._mesh = mesh = placement.mesh(before.settings["num_chains"], devices)
        self._sampler, self._collector = placement.place((sampler, collector), state.SAME, mesh)
        self._keys = placement.place(keys, state.EACH, mesh)
        self._carry = placement.place(carry, state.CARRY_SPECS, mesh)
        rows = loop.empty_rows(collector, carry, self._record.room)
        self._rows = placement.place(rows, state.ROWS_SPECS, mesh)
        large = sampler.target.datum_bytes(before.fingerprint["position"]) > _LARGE_DATUM
        self._loop = loop.advance(mesh, large)
        self.done = int(carry.step)
        self.live = ""
        self._compile_seconds = self._seconds = 0.0

    def compile(self) -> None:
        """Compiles the loop, by a call that takes no step."""
        began = time.perf_counter()
        if self._mesh is not None:
            placement.check(loop.steps, *self._arguments(0, 0, False))
        self._call(0, 0, False)
        self._compile_seconds = time.perf_counter() - began

    def advance(self, quota: int) -> tuple[int, float]:
        """Takes up to about `quota` steps; returns how many they were and how many seconds they took."""
        plan, record = self._plan, self._record
        began = time.perf_counter()
        first, num_draws, partial = next_chunk(plan, self.done, int(self._carry.since), quota, record.room)
        self._call(first, num_draws, partial)
        taken = first + (num_draws - 1) * plan.thin
        self.done += taken
        if not partial:
            record.take(self._rows, num_draws)
            self.live = record.live()
        if self.done == plan.discard:
            self._carry = placement.place(loop.begin_recording(self._carry), state.CARRY_SPECS, self._mesh)
        seconds = time.perf_counter() - began
        self._seconds += seconds
        return taken, seconds

    def snapshot(self) -> Run:
        """The run as it stands."""
        checkpoint = Checkpoint(self._carry, self._keys, self._limits)
        cost = self._before.cost.plus(checkpoint, self._sampler, self._compile_seconds, self._seconds)
        return self._record.run(self._before, checkpoint, cost, self._plan, self._collector)

    def _call(self, first: int, num_draws: int, partial: bool) -> None:
        self._carry, self._rows = jax.block_until_ready(self._loop(*self._arguments(first, num_draws, partial)))

    def _arguments(self, first: int, num_draws: int, partial: bool) -> tuple[Any, ...]:
        plan = self._plan
        ends = not partial or self.done + first in (plan.discard, plan.num_steps)
        counts = (np.array(count, np.int32) for count in (first, num_draws, plan.thin))
        chunk = state.Chunk(*counts, partial=np.array(partial), ends=np.array(ends))
        limits = self._limits
        if self.done < plan.discard:  # a chain on its way from a far start may be as hot as it likes
            limits = limits._replace(temperature=np.array(np.inf, np.float32))
        return self._sampler, self._collector, self._keys, self._carry, self._rows, chunk, limits


class _Saver:
    """Writes a run now and then, and at its end. A full disk costs a warning, never the draws in memory."""

    def __init__(self, path: str | os.PathLike | None) -> None:
        self._path = path
        self._due = time.perf_counter() + _AUTOSAVE_SECONDS

    def now_and_then(self, snapshot: Callable[[], Run]) -> None:
        """Saves if it is time to: every minute, and such that saving takes at most a twentieth of the time."""
        began = time.perf_counter()
        if self._path is None or began < self._due:
            return
        self.save(snapshot())
        now = time.perf_counter()
        self._due = now + max(_AUTOSAVE_SECONDS, _AUTOSAVE_SHARE * (now - began))

    def save(self, run: Run) -> None:
        """Writes the run, if there is a path to write it to."""
        if self._path is None:
            return
        try:
            run.save(self._path)
        except (OSError, InputError) as error:
            warnings.warn(
                f"the run could not be saved to {self._path} ({error}); it goes on in memory: save what is returned "
                "elsewhere with run.save(path)",
                RuntimeWarning,
                stacklevel=4,
            )
