"""The numbers of a report, each with its right value and what it means."""

import math
from typing import TYPE_CHECKING, NamedTuple

from ..estimates import Estimates
from ..predictive import PredictiveVerdict
from ..summary import Summary, num_kept
from ..verdict import Verdict

if TYPE_CHECKING:
    from ..run import Run

_OF_THE_TARGET = "T"
_STATS = {
    "kinetic_temperature": (
        _OF_THE_TARGET,
        "Temperature of the momentum. Above the right value the minibatches, or too large a step, heat the chain, and "
        "posterior variances come out too large.",
    ),
    "configurational_temperature": (
        _OF_THE_TARGET,
        "Temperature of the parameters themselves. Above the right value they are too hot; far below it the chain "
        "still remembers where it began.",
    ),
    "noise_ratio": (
        "well below 1",
        "Gradient noise over injected noise. Uniform minibatches inflate posterior variances by about this share; "
        "paired ones compensate for most of it.",
    ),
    "predicted_sd_error": (
        "below 0.05",
        "How far posterior sds are expected to be off, relatively, after paired selection.",
    ),
    "clipped": ("near 0", "Share of the pairs whose tilt hit its bound: paired selection cannot help there."),
    "acceptance": ("not 0", "Share of accepted proposals, of the index chain or of the whole step."),
    "refused": (
        "below 0.0001",
        "Share of the steps that ran into the wall around the posterior; if there are more, the step is too large.",
    ),
    "projected": ("near 0", "Share of the steps whose estimated covariance had to be made positive semi-definite."),
    "divergent": (
        "0",
        "Share of the trajectories whose energy error exceeded 1,000; if there are any, take a smaller step.",
    ),
    "leapfrogs": ("", "Gradients of all data per step of NUTS."),
    "bright": ("", "Number of bright data, whose likelihoods a step evaluates."),
    "bound_violations": (
        "0",
        "Evaluations that found the bound above the likelihood; if there are any, the draws are not exact.",
    ),
}
_VERDICT = {
    "error": ("at most {accuracy:g}", "Largest error of a mean or sd, Monte Carlo and bias, in posterior sds."),
    "mcse": ("at most {half:g}", "Largest Monte-Carlo standard error of a mean or sd, in posterior sds."),
    "bias": ("near 0", "Relative error of posterior sds that the minibatches are predicted to cause."),
    "coldest": ("1", "Smallest virial temperature of a coordinate."),
    "hottest": ("1", "Largest virial temperature of a coordinate."),
    "slope": ("below 3.5", "Largest score of a temperature that changes along a coordinate."),
    "refused": _STATS["refused"],
}
_PREDICTIVE = {
    "mcse": ("at most {half:g}", "Monte-Carlo standard error of the predicted means, in posterior sds of predictions."),
    "rhat": ("at most 1.05", "Whether chains agree in what they predict: 1 where they do."),
    "kinetic": ("1", "Temperature of the momentum."),
    "configurational": ("1", "Temperature of the weights; below 1 until they have forgotten where they began."),
    "bias": ("near 0", "Relative error of posterior sds that the minibatches are predicted to leave."),
    "failed": ("0", "Share of the chains that became infinite."),
}
_COSTS = {
    "datum_gradients": "gradients of one datum, all chains together",
    "planning_gradients": "of them for planning",
    "datum_directional": "directional derivatives of one datum",
    "data_passes": "passes over the data per chain",
    "seconds": "seconds of sampling",
    "compile_seconds": "seconds of compilation",
    "planning_seconds": "seconds of planning",
}


class Row(NamedTuple):
    """A number, its right value ("" if there is none), and what it means."""

    name: str
    value: str
    right: str = ""
    meaning: str = ""


def subsampling(run: "Run", summary: Summary) -> list[Row]:
    """The means of the run's own diagnostics."""
    rows = []
    for name, value in summary.diagnostics.items():
        if name not in _COSTS:
            right, meaning = _STATS.get(name, ("", "A number of the method itself."))
            right = f"{run.temperature:g}" if right == _OF_THE_TARGET else right
            rows.append(Row(name.replace("_", " "), f"{value:.3g}", right, meaning))
    return rows


def judged(verdict: Verdict | PredictiveVerdict) -> list[Row]:
    """The numbers behind a verdict."""
    known = _PREDICTIVE if isinstance(verdict, PredictiveVerdict) else _VERDICT
    goal = {"accuracy": verdict.accuracy, "half": verdict.accuracy / 2}
    return [
        Row(name, f"{getattr(verdict, name):.3g}", right.format(**goal), meaning)
        for name, (right, meaning) in known.items()
    ]


def convergence(run: "Run", found: Estimates) -> list[Row]:
    """Chains, draws, R-hat and effective sample size."""
    rows = [
        Row("chains", f"{int(run.ok.sum())} of {run.status.size}", f"{run.status.size}", "Chains that did not fail."),
        Row("draws per chain", f"{num_kept(run) or 0:,}", "", "After the discarded part, thinned."),
    ]
    if found.worst is not None:
        largest = f"{found.worst.rhat:.2f} ({found.worst.name})"
        rows.append(Row("largest R-hat", largest, "at most 1.05", "1 where all chains agree, and each with itself."))
    smallest = min((one for one in found.mixing if not math.isnan(one.ess)), key=lambda one: one.ess, default=None)
    if smallest is not None:
        examined = f" Of the {len(found.mixing)} parameters examined." if found.total > len(found.mixing) else ""
        rows.append(
            Row(
                "smallest ESS",
                f"{smallest.ess:,.0f} ({smallest.name})",
                "at least 400",
                f"Effective sample size: independent draws that would be worth as much.{examined}",
            )
        )
    return rows


def costs(run: "Run") -> list[Row]:
    """What the run took."""
    values = {name: getattr(run.cost, name) for name in _COSTS}
    return [
        Row(meaning, f"{values[name]:,}" if isinstance(values[name], int) else f"{values[name]:,.3g}")
        for name, meaning in _COSTS.items()
        if values[name] or name in ("datum_gradients", "seconds")
    ]
