"""`Run`: the result of sampling."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from .._core.types import Batch
from .._engine.driver import Snapshot
from .._engine.state import HOT_RATIO, Checkpoint
from ..prediction.averages import ROWS_PER_BLOCK, Function, predict
from ..prediction.classes import Prediction
from ..prediction.kinds import Kind, Noise
from ..prediction.likelihoods import log_likelihood
from ..prediction.regression import Regression
from ..sampler import AbstractSampler
from ..target.target import Target
from .arviz import to_arviz
from .cost import RunCost
from .file.trees import SavedChains, store
from .file.writing import write
from .html import run_html
from .plots import plot
from .predictive import PredictiveVerdict, verdict_of
from .report import write_page
from .summary import Summary, summarize
from .verdict import Verdict


@dataclasses.dataclass(frozen=True)
class Run:
    """Draws, diagnostics and cost of a finished (or interrupted) run.

    Attributes:
        draws: pytree like the parameters, with leading axes (chain, draw). Draws of a chain after it failed are NaN.
        stats: diagnostics by name, arrays of shape (chain, draw), means over the steps since the last draw:
            `kinetic_temperature` and `configurational_temperature` (both estimate the temperature T when all is well)
            and those of the method, such as `acceptance`; `noise_ratio` (gradient noise over injected noise) was
            measured at this draw or an earlier one. `virial` and `virial_slope`, if kept, have one number per
            parameter, shape (chain, draw, d).
        status: per chain "ok", "nonfinite" or "diverged".
        cost: the cost of the run.
        settings: the settings of the run, by name.
        collected: the collector's results, with a leading axis of chains.
    """

    draws: Any
    stats: dict[str, np.ndarray]
    status: np.ndarray
    cost: RunCost
    settings: dict[str, Any]
    collected: Any = ()
    checkpoint: Checkpoint | SavedChains | None = dataclasses.field(default=None, repr=False)
    fingerprint: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        snapshot: Snapshot,
        sampler: AbstractSampler,
        settings: dict[str, Any],
        fingerprint: dict[str, Any],
        earlier: RunCost,
    ) -> "Run":
        """The run at a snapshot.

        Args:
            snapshot: the snapshot of the driver.
            sampler: the sampler that was run.
            settings: the settings of the run, or those of the run that was resumed.
            fingerprint: the fingerprint of its target.
            earlier: its cost before it was driven.
        """
        plan, done = snapshot.plan, snapshot.num_steps
        progress = {
            "num_steps": done,
            "discard": plan.discard,
            "thin": plan.thin,
            "planned_steps": max(plan.num_steps, settings.get("planned_steps", 0)),
            "interrupted": done < plan.num_steps,
        }
        return Run(
            draws=snapshot.kept.draws,
            stats=snapshot.kept.stats,
            status=snapshot.status,
            cost=RunCost.of(snapshot, sampler, earlier),
            settings=settings | progress,
            collected=snapshot.collected,
            checkpoint=snapshot.checkpoint,
            fingerprint=fingerprint,
        )

    @property
    def ok(self) -> np.ndarray:
        """Boolean mask of the chains with status "ok"."""
        return self.status == "ok"

    @property
    def hot(self) -> np.ndarray:
        """Boolean mask of the chains that end a thousand times hotter than the target: finite, but useless.

        The temperature is the mean over the last tenth of their draws.
        """
        found = (self.stats.get(name) for name in ("kinetic_temperature", "configurational_temperature"))
        heat = next((values for values in found if values is not None and values.size), None)
        if heat is None:
            return np.zeros_like(self.ok)
        last = heat[:, -max(1, heat.shape[1] // 10) :].astype(np.float64).mean(axis=1)
        return self.ok & (last > HOT_RATIO * self.temperature)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended the run before the end of its plan."""
        return bool(self.settings.get("interrupted"))

    @property
    def temperature(self) -> float:
        """T, the temperature of the target exp(−V/T)."""
        return self.settings["temperature"]

    @property
    def verdict(self) -> Verdict | PredictiveVerdict | None:
        """Whether a planned run is as accurate as was asked for; None for a run that was not planned."""
        saved = self.settings.get("verdict")
        return None if saved is None else verdict_of(saved)

    def good_draws(self) -> Any:
        """The draws of the chains with status "ok"."""
        return jax.tree.map(lambda leaf: leaf[self.ok], self.draws)

    def summary(self) -> Summary:
        """A table of the parameters, the run's diagnostics, and a warning for everything that looks wrong."""
        return summarize(self)

    def plot(self, parameters: Sequence[str] | None = None) -> Any:
        """A Matplotlib `Figure`: marginals with intervals, traces, temperatures and noise ratio, the worst-mixing pair.

        Args:
            parameters: names as in the summary; None shows up to six parameters: all of them, or the first three and
                the three with the largest R-hats.
        """
        return plot(self, parameters)

    def report(self, path: str | os.PathLike) -> None:
        """Write one self-contained page of HTML: verdict, task, marginals, convergence, subsampling, cost, settings.

        Args:
            path: a file whose name ends in .html; it is replaced if it exists.
        """
        write_page(self, path)

    def to_arviz(
        self,
        coords: Mapping[str, Any] | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        *,
        target: Target | None = None,
        log_likelihood: bool = False,
        rows: Any = None,
    ) -> Any:
        """Draws and stats of the good chains as ArviZ's data object (InferenceData, or DataTree with ArviZ 1).

        Its attributes have the settings, the cost and the verdict of the run, as JSON.

        Args:
            coords: axis name -> labels of its entries.
            dims: parameter name (as in the summary; "theta" if the parameters are one array) -> names of its axes.
            target: the posterior, whose data become `observed_data` (and, of (inputs, outcomes), `constant_data`).
            log_likelihood: also the log-likelihood of every datum at every draw, which `az.loo` needs.
            rows: row numbers of the data to which both are limited, such as a random sample of tall data.
        """
        return to_arviz(self, coords, dims, target, log_likelihood, rows)

    def predict(
        self,
        function: Function,
        inputs: Batch,
        kind: Kind | None = None,
        *,
        noise: Noise = None,
        block: int = ROWS_PER_BLOCK,
        seed: int = 0,
    ) -> Prediction | Regression:
        """Predictions averaged over the draws of the good chains, one draw and one block of rows at a time.

        Args:
            function: (params, input) -> output for ONE input; or the module that was sampled.
            inputs: pytree of arrays (or DataFrames), one row per input.
            kind: the meaning of the output: "classes" (logits), "binary" (the logit of class 1), "regression" (a mean,
                or a mean and a log sd) or "counts" (the log of a Poisson mean); None where the output leaves no choice.
            noise: of a regression whose function returns the mean alone: the sd of y, or a function of the parameters.
            block: rows at a time.
            seed: of the draws of y.

        Returns:
            Of classes, a `Prediction`; of numbers, a `Regression`: mean, sd, intervals, draws of y, log density, CRPS.
            `ewsg.prediction.score` and `ewsg.prediction.calibration` compare both with the truth.
        """
        return predict(function, self, inputs, kind, noise=noise, block=block, seed=seed)

    def log_likelihood(self, target: Target, rows: Any = None, *, block: int | None = None) -> np.ndarray:
        """ℓ(θ, datum_i) at every draw of the good chains: an array of shape (chains, draws, rows).

        Args:
            target: the posterior, or one of the same model with held-out data.
            rows: the row numbers i; None is all of the target's data.
            block: rows at a time; None is as many as fit into 16 MiB with all draws.
        """
        return log_likelihood(target, self, rows, block=block)

    def save(self, path: str | os.PathLike) -> None:
        """Write the run to one file, atomically: a reader sees the old file or the new one, never a part."""
        write(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy, which cannot handle typed keys: the checkpoint is flattened to arrays as for a file."""
        checkpoint = self.checkpoint
        if isinstance(checkpoint, Checkpoint):
            checkpoint = SavedChains(store(checkpoint), {})
        return self.__dict__ | {"checkpoint": checkpoint}

    def _repr_html_(self) -> str:
        return run_html(self)

    def __repr__(self) -> str:
        good = int(self.ok.sum())
        leaves = jax.tree.leaves(self.draws)
        kept = leaves[0].shape[1] if leaves else 0
        parts = (self.settings[role] for role in ("estimator", "integrator"))
        method = " × ".join(part["component"] for part in parts if part)
        hot = int(self.hot.sum())
        chains = f"{good} of {len(self.status)} chains {f'finite, {hot} of them far too hot' if hot else 'ok'}"
        return (
            f"Run({method}: {chains}, {kept} draws each, "
            f"{self.cost.data_passes:g} data passes, {self.cost.seconds:.1f} s)"
        )
