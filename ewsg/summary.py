"""The table and the sentences that a person reads first."""

import dataclasses
import io
import math
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ._arviz import leaf_name, statistic

if TYPE_CHECKING:
    from .result import Run

_TABLE_ROWS = 20
_TEMPERATURE_TOLERANCE = 0.1
_PAIRED_KINETIC_TOLERANCE = 0.25
_RHAT_LIMIT = 1.05
_SD_ERROR_LIMIT = 0.05
_FAR_OFF = 0.5


@dataclasses.dataclass(frozen=True)
class Summary:
    """Estimates by parameter, diagnostics of the run, and warnings.

    Attributes:
        parameters: column name -> values, one entry a parameter (the first ones, when there are many): name, mean, sd,
            mcse, ess, ess_per_million (effective draws per 10^6 datum gradients), rhat.
        diagnostics: run-level numbers by name.
        warnings: sentences; empty when all is well.
        hidden: how many parameters the table leaves out.
    """

    parameters: dict[str, np.ndarray]
    diagnostics: dict[str, float]
    warnings: list[str]
    hidden: int
    title: str

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        columns = list(self.parameters)
        for column in columns:
            table.add_column(column, justify="left" if column == "parameter" else "right")
        for row in zip(*self.parameters.values(), strict=True):
            table.add_row(*(_format(column, value) for column, value in zip(columns, row, strict=True)))
        console = Console(width=110, record=True, file=io.StringIO(), highlight=False, markup=False, emoji=False)
        console.print(self.title, soft_wrap=True)
        console.print(table)
        if self.hidden:
            console.print(f"... and {self.hidden} more parameters")
        numbers = (f"{name.replace('_', ' ')} {value:.3g}" for name, value in self.diagnostics.items())
        console.print(", ".join(numbers), soft_wrap=True)
        for sentence in self.warnings:
            console.print(f"! {sentence}", soft_wrap=True)
        return console.export_text().rstrip()

    __repr__ = __str__


def summarize(run: "Run") -> Summary:
    """The summary of the good chains of a run."""
    draws = run.good_draws()
    names, values = _flatten(draws)
    shown = values[:, :, :_TABLE_ROWS]
    parameters = _estimates(names[:_TABLE_ROWS], shown, run.cost.datum_gradients) if names else {}
    diagnostics = _diagnostics(run)
    bias = _tilt_warnings(diagnostics) or _temperature_warnings(run, diagnostics)
    warnings = [*_failures(run), *bias, *_mixing_warnings(parameters)]
    return Summary(parameters, diagnostics, warnings, max(0, len(names) - _TABLE_ROWS), repr(run))


def _flatten(draws: Any) -> tuple[list[str], np.ndarray]:
    """Names of all scalars, and their draws as one array (chain, draw, scalar)."""
    names, columns = [], []
    for path, leaf in jax.tree_util.tree_leaves_with_path(draws):
        name = leaf_name(path)
        names += [name + (f"[{','.join(map(str, index))}]" if index else "") for index in np.ndindex(leaf.shape[2:])]
        columns.append(np.asarray(leaf, np.float64).reshape(*leaf.shape[:2], math.prod(leaf.shape[2:])))
    return names, np.concatenate(columns, axis=2) if columns else np.zeros((0, 0, 0))


def _estimates(names: list[str], values: np.ndarray, datum_gradients: int) -> dict[str, np.ndarray]:
    chains, draws = values.shape[:2]
    if chains == 0 or draws < 4:
        missing = np.full(len(names), np.nan)
        ess = rhat = missing
    else:
        ess, rhat = statistic("ess", values), statistic("rhat", values)
    if chains * draws:
        mean, sd = values.mean((0, 1)), values.std((0, 1), ddof=1 if chains * draws > 1 else 0)
    else:
        mean = sd = np.full(len(names), np.nan)
    return {
        "parameter": np.array(names),
        "mean": mean,
        "sd": sd,
        "mcse": sd / np.sqrt(ess),
        "ess": ess,
        "ess_per_million": ess / max(datum_gradients, 1) * 1e6,
        "rhat": rhat,
    }


def _diagnostics(run: "Run") -> dict[str, float]:
    """Means of the stats over draws and good chains, what follows from them, and the cost."""
    means = {name: float(np.nanmean(values[run.ok])) for name, values in run.stats.items() if values[run.ok].size}
    if means.get("tilt_second"):
        means |= predicted_sd_error(means["tilt_second"], means["tilt_fourth"], means["noise_ratio"])
    means = {name: value for name, value in means.items() if not name.startswith("tilt_")}
    cost = {
        "data_passes": run.cost.data_passes,
        "seconds": run.cost.seconds,
        "compile_seconds": run.cost.compile_seconds,
    }
    return means | cost


def predicted_sd_error(second: float, fourth: float, noise_ratio: float) -> dict[str, float]:
    """τ₄ = mean(D⁴)/(3 mean(D²)) of the tilts D of paired selection, and (τ₄/8) ρ/(1 + ρ).

    The latter is about the relative error that the clipped, one-step tilt of `Paired(rule="weight")` leaves in the
    posterior sd; `select` errs by somewhat more, `sequential` by less.
    """
    tau = fourth / (3 * second)
    return {"tau_4": tau, "predicted_sd_error": tau / 8 * noise_ratio / (1 + noise_ratio)}


def _failures(run: "Run") -> list[str]:
    sentences = []
    for status, what in (("nonfinite", "became NaN or infinite"), ("diverged", "ran away")):
        chains = np.flatnonzero(run.status == status)
        if chains.size:
            listed = ", ".join(map(str, chains[:10])) + (", ..." if chains.size > 10 else "")
            sentences.append(
                f"{chains.size} of {run.status.size} chains {what} and are left out here (chains {listed}). "
                f"{run.settings.get('likely_cause', 'Lower the step size.')}"
            )
    if run.settings.get("interrupted"):
        sentences.append(
            f"The run was interrupted after {run.settings['num_steps']} steps; save it and resume to go on."
        )
    return sentences


def _temperature_warnings(run: "Run", diagnostics: dict[str, float]) -> list[str]:
    """One sentence when position or momentum is hotter or colder than T by more than 10 % and its Monte-Carlo error.

    Paired selection heats the momentum by several times what it does to the position, which its own prediction tells
    better: there the momentum is given 25 %.
    """
    worst, culprit = 0.0, ""
    tolerances = {"kinetic_temperature": _TEMPERATURE_TOLERANCE, "configurational_temperature": _TEMPERATURE_TOLERANCE}
    if "predicted_sd_error" in diagnostics:
        tolerances["kinetic_temperature"] = _PAIRED_KINETIC_TOLERANCE
    for name, tolerance in tolerances.items():
        if name not in diagnostics:
            continue
        relative = diagnostics[name] / run.temperature - 1
        if abs(relative) > tolerance + 3 * _standard_error(run, name) and abs(relative) > abs(worst):
            worst, culprit = relative, name
    if not culprit:
        return []
    way = "hotter" if worst > 0 else "colder"
    return [
        f"The chains run {way} than their target: {culprit.replace('_', ' ')} {diagnostics[culprit]:.2f} against "
        f"{run.temperature:g}, gradient noise {diagnostics['noise_ratio']:.2g} times the injected noise. The posterior "
        f"sd is off by about as much: halve the step size or double the batch size."
    ]


def _tilt_warnings(diagnostics: dict[str, float]) -> list[str]:
    """One sentence when paired selection cannot be expected to make up for the noise of its minibatches."""
    error = diagnostics.get("predicted_sd_error", 0.0)
    if error <= _SD_ERROR_LIMIT:
        return []
    amount = f"{error:.0%}" if error < _FAR_OFF else f"more than {_FAR_OFF:.0%}"
    return [
        f"The minibatches are too noisy for paired selection at this step: the posterior sd is expected to be off by "
        f"{amount} (tau_4 {diagnostics['tau_4']:.2g}, gradient noise {diagnostics['noise_ratio']:.2g} times the "
        f"injected noise, {diagnostics['clipped']:.0%} of the pairs clipped): halve the step size or double the batch "
        "size."
    ]


def _standard_error(run: "Run", name: str) -> float:
    """Of the mean over chains, relative to T; infinite for a single draw."""
    values = run.stats[name][run.ok]
    if values.size < 4:
        return np.inf
    sd = values.std() / run.temperature
    ess = float(statistic("ess", values)) if values.shape[1] >= 4 else values.shape[0]
    return float(sd / np.sqrt(max(ess, 1.0))) if np.isfinite(ess) else np.inf


def _mixing_warnings(parameters: dict[str, np.ndarray]) -> list[str]:
    rhat = parameters.get("rhat", np.array([]))
    if rhat.size and np.any(rhat > _RHAT_LIMIT):
        worst = int(np.nanargmax(rhat))
        name = parameters["parameter"][worst]
        return [
            f"The chains have not mixed: R-hat is {rhat[worst]:.2f} for {name} (above {_RHAT_LIMIT}). "
            "Run longer, or discard more of the start."
        ]
    return []


def _format(column: str, value: Any) -> str:
    if column == "parameter":
        return str(value)
    if column == "ess":
        return f"{value:,.0f}"
    return f"{value:.2f}" if column == "rhat" else f"{value:.3g}"
