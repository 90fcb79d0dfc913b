"""`Run`: what sampling returns."""

import dataclasses
import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from .._engine import state
from .._random.streams import Keys
from ..sampler import AbstractSampler

if TYPE_CHECKING:
    from .storage.trees import Form, StoredTree


class Checkpoint(NamedTuple):
    """All that is needed to go on: the chains, their keys, and their limits."""

    carry: state.Carry
    keys: Keys
    limits: state.Limits


class SavedChains(NamedTuple):
    """A checkpoint as arrays: what a loaded, unpickled or copied run holds in its place.

    Attributes:
        tree: the checkpoint, taken apart.
        forms: the structures that the trees of the run have in its file, by name; empty if it was not loaded.
    """

    tree: "StoredTree"
    forms: dict[str, "Form"]


@dataclasses.dataclass(frozen=True)
class RunCost:
    """What a run cost.

    Attributes:
        datum_gradients: gradients of one datum, all chains together.
        datum_directional: directional derivatives of one datum (forward passes), all chains together.
        data_passes: datum gradients per chain over n, preparation included: the paper's budget.
        seconds: time in the sampling loop.
        compile_seconds: time spent compiling it.
        diagnostic_directional: directional derivatives that only the noise ratio of `run.stats` took, over and above
            the method's own.
    """

    datum_gradients: int = 0
    datum_directional: int = 0
    data_passes: float = 0.0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    diagnostic_directional: int = 0

    def plus(self, now: Checkpoint, sampler: AbstractSampler, compile_seconds: float, seconds: float) -> "RunCost":
        """The cost once the chains stand where they do `now`; they count from the start of the run."""
        chains = now.carry.chains
        gradients = chains.gradients.value()
        before = sampler.preparation_cost()
        probes = np.size(gradients) * math.ceil(int(now.carry.draws) / int(now.limits.probe_every))
        return RunCost(
            datum_gradients=int(gradients.sum()) + int(before.datum_gradients),
            datum_directional=int(chains.directional.value().sum()) + int(before.datum_directional),
            diagnostic_directional=probes * sampler.probe_cost(),
            data_passes=float((gradients.max() + int(before.datum_gradients)) / sampler.target.num_data),
            seconds=self.seconds + seconds,
            compile_seconds=self.compile_seconds + compile_seconds,
        )


@dataclasses.dataclass(frozen=True)
class Run:
    """Draws, diagnostics and cost of a finished (or interrupted) run.

    Attributes:
        draws: pytree like the parameters, with leading axes (chain, draw). Draws of a chain after it failed are NaN.
        stats: diagnostics by name, arrays of shape (chain, draw), each the mean over the steps since the last draw:
            `kinetic_temperature`, `configurational_temperature` (both estimate the temperature T when all is well),
            `noise_ratio` (gradient noise over injected noise), `acceptance` of an index chain.
        status: per chain "ok", "nonfinite" or "diverged".
        cost: what the run cost.
        settings: how it was made.
        collected: what the collector kept, with a leading axis of chains.
    """

    draws: Any
    stats: dict[str, np.ndarray]
    status: np.ndarray
    cost: RunCost
    settings: dict[str, Any]
    collected: Any = ()
    checkpoint: Checkpoint | SavedChains | None = dataclasses.field(default=None, repr=False)
    fingerprint: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def ok(self) -> np.ndarray:
        """Which chains are fit for use."""
        return self.status == "ok"

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C, or SIGTERM, ended the run before its plan did."""
        return bool(self.settings.get("interrupted"))

    @property
    def temperature(self) -> float:
        """T, the temperature of the target exp(−V/T)."""
        return self.settings["temperature"]

    def good_draws(self) -> Any:
        """The draws of the chains whose status is ok."""
        return jax.tree.map(lambda leaf: leaf[self.ok], self.draws)

    def summary(self) -> "Any":
        """A table of the parameters and the run's diagnostics, with a sentence for everything that looks wrong."""
        from .summary import summarize

        return summarize(self)

    def to_arviz(self) -> Any:
        """The draws and stats of the good chains as ArviZ's data object (InferenceData, or DataTree with ArviZ 1)."""
        from .arviz import to_arviz

        return to_arviz(self)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the run to one file, atomically: a reader sees the old file or the new one, never a part."""
        from . import storage

        storage.write(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy, which know no typed keys: the checkpoint is taken apart as for a file."""
        from .storage.trees import store

        checkpoint = self.checkpoint
        if isinstance(checkpoint, Checkpoint):
            checkpoint = SavedChains(store(checkpoint), {})
        return self.__dict__ | {"checkpoint": checkpoint}

    def __repr__(self) -> str:
        good = int(self.ok.sum())
        leaves = jax.tree.leaves(self.draws)
        kept = leaves[0].shape[1] if leaves else 0
        parts = (self.settings[role] for role in ("estimator", "integrator"))
        method = " × ".join(part["component"] for part in parts if part)
        return (
            f"Run({method}: {good} of {len(self.status)} chains ok, {kept} draws each, "
            f"{self.cost.data_passes:g} data passes, {self.cost.seconds:.1f} s)"
        )
