"""The host's buffer of kept draws."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from .._core import memory, pytree
from ..collect import AbstractCollector
from . import loop, state
from .plan import Plan, draws_per_call

_LIVE_LABELS = {"kinetic_temperature": "T_kin", "configurational_temperature": "T_conf", "acceptance": "accept"}


class Kept(NamedTuple):
    """Draws and diagnostics, with leading axes (chain, draw)."""

    draws: Any
    stats: dict[str, np.ndarray]


class DrawBuffer:
    """The draws that a plan keeps, filled chunk by chunk."""

    def __init__(self, collector: AbstractCollector, carry: state.Carry, plan: Plan, earlier: Kept | None):
        row = loop.row_shapes(collector, carry)
        row_bytes = pytree.num_bytes(row)
        num_draws = plan.num_draws
        memory.check(
            row_bytes * num_draws,
            f"keeping {num_draws:,} draws",
            "raise thin=, or keep less of each draw with collect=",
        )
        self.draws_per_call = draws_per_call(row_bytes)
        self._host = jax.tree.map(lambda leaf: np.empty((leaf.shape[0], num_draws, *leaf.shape[1:]), leaf.dtype), row)
        self._row = row
        self._filled = int(carry.draws)
        if self._filled:
            assert earlier is not None
            jax.tree.map(self._fill(0), self._host, {"draw": earlier.draws, "stats": earlier.stats})

    def empty_rows(self) -> Any:
        """Space on the device for the draws of one call, with the axes (draw, chain)."""
        rows = jax.tree.map(lambda leaf: np.zeros((self.draws_per_call, *leaf.shape), leaf.dtype), self._row)
        return jax.device_put(rows)

    def take(self, rows: Any, count: int) -> None:
        """Copy rows to the host and keep the first `count`: slicing on the device would recompile for each count."""
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
        latest = {label: stats[name][:, self._filled - 1] for name, label in _LIVE_LABELS.items() if name in stats}
        finite = {label: values[np.isfinite(values)] for label, values in latest.items()}
        return "  ".join(f"{label} {values.mean():.2f}" for label, values in finite.items() if values.size)

    def kept(self) -> Kept:
        """The draws so far."""
        kept = jax.tree.map(lambda leaf: leaf[:, : self._filled], self._host)
        return Kept(kept["draw"], kept["stats"])
