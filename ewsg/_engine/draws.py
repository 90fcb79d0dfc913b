"""The host's buffer of kept draws."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .._core import memory, pytree
from ..collect import AbstractCollector
from ..result.run import Checkpoint, Run, RunCost
from . import loop, state
from .plan import Plan, draws_per_call

_LIVE = {"kinetic_temperature": "T_kin", "configurational_temperature": "T_conf", "acceptance": "accept"}


class Record:
    """Kept draws on the host, filled chunk by chunk."""

    def __init__(self, collector: AbstractCollector, carry: state.Carry, plan: Plan, before: Run):
        row = jax.eval_shape(lambda: loop.empty_rows(collector, carry, 1))
        self._filled = int(carry.draws)
        row_bytes = pytree.num_bytes(row)
        memory.check(
            row_bytes * plan.num_draws,
            f"keeping {plan.num_draws:,} draws",
            "raise thin=, or keep less of each draw with collect=",
        )
        self.room = draws_per_call(row_bytes)
        self._host = jax.tree.map(
            lambda leaf: np.empty((leaf.shape[1], plan.num_draws, *leaf.shape[2:]), leaf.dtype), row
        )
        if self._filled:
            jax.tree.map(self._fill(0), self._host, {"draw": before.draws, "stats": before.stats})

    def take(self, rows: Any, count: int) -> None:
        """Copies rows to the host and keeps the first `count`: cut on the device, every count would be compiled."""
        kept = jax.tree.map(lambda leaf: np.moveaxis(np.asarray(leaf)[:count], 0, 1), rows)
        jax.tree.map(self._fill(self._filled), self._host, kept)
        self._filled += count

    @staticmethod
    def _fill(start: int) -> Callable[[np.ndarray, np.ndarray], None]:
        def copy(host: np.ndarray, kept: np.ndarray) -> None:
            host[:, start : start + kept.shape[1]] = kept

        return copy

    def live(self) -> str:
        """The latest diagnostics, for the progress bar."""
        stats = self._host["stats"]
        latest = {label: stats[name][:, self._filled - 1] for name, label in _LIVE.items() if name in stats}
        finite = {label: values[np.isfinite(values)] for label, values in latest.items()}
        return "  ".join(f"{label} {values.mean():.2f}" for label, values in finite.items() if values.size)

    def run(self, before: Run, checkpoint: Checkpoint, cost: RunCost, plan: Plan, collector: AbstractCollector) -> Run:
        """The run as it stands."""
        kept = jax.tree.map(lambda leaf: leaf[:, : self._filled], self._host)
        carry = checkpoint.carry
        return dataclasses.replace(
            before,
            draws=kept["draw"],
            stats=kept["stats"],
            status=np.array([state.Status(code).name for code in np.asarray(carry.chains.status)]),
            cost=cost,
            collected=jax.tree.map(np.asarray, loop.collected(collector, carry)),
            settings=before.settings
            | {"num_steps": int(carry.step), "discard": plan.discard, "thin": plan.thin}
            | {"planned_steps": max(plan.num_steps, before.settings.get("planned_steps", 0))}
            | {"interrupted": int(carry.step) < plan.num_steps},
            checkpoint=checkpoint,
        )
