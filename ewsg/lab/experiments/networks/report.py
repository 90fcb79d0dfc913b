"""`bnn-mlp` and `bnn-cnn`: all methods at equal temperature and datum gradients, then the claims."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import figures
from ...panels import Curve, Panel, draw
from ...styles import style
from ..claims import Claim, Interval, decide, difference, interval
from ..experiment import Outcome, Work
from . import shared

METHODS = ("SGLD", "pSGLD", "SGHMC", "CP-SGHMC", "EWSG", "paired (ours)")
PRINTED_EPOCHS, _ENOUGH = 200, 0.5
COLD_METHODS = ("SGHMC", "EWSG")
_READINGS: dict[str, dict[str, Any]] = {
    "one repeat": {"marker": "o"},
    "all chains averaged": {"marker": "o", "markerfacecolor": "white"},
    "paper": {"marker": "+", "markersize": 9},
}
"""Markers of the errors in the legend; in the figure each method has its own."""
_SCORES = ("error", "log_likelihood", "calibration_error", "brier", "single_error")
RULE = (
    "the printed ones, in mean units, times step_factor; SGLD's, 1e-7 and 2e-8 for the sum over the 60,000 training "
    "data, is 6e-3 and 1.2e-3 for their mean; paired takes EWSG's, with as many steps. Nothing is tuned"
)

Repeats = list[dict[str, Any] | None]


class Architecture(NamedTuple):
    """A column of the paper's table.

    Attributes:
        name: in words.
        friction: γ in mean units.
        steps: h by method, in mean units.
        printed: test errors, in percent.
        near: how far from them ours may be to count as the same, in percentage points.
    """

    name: str
    friction: float
    steps: Mapping[str, float]
    printed: Mapping[str, float]
    near: float


def compare(work: Work, architecture: Architecture) -> Outcome:
    """All methods at T = 1; SGHMC and EWSG also at the colder temperature of the settings."""
    here = shared.problem(work)
    cold = work["cold"]
    found = {"T = 1": _at(work, here, architecture, 1.0, work["methods"])}
    if cold:
        found[f"T = {cold:g}"] = _at(work, here, architecture, cold, COLD_METHODS)
    printed = architecture.printed if work["images"] == "mnist" else {}
    claims = [*_published(printed, architecture.near, found["T = 1"]), *_order(found["T = 1"])]
    if printed and work["epochs"] < _ENOUGH * PRINTED_EPOCHS:
        claims = [_too_early(claim, work["epochs"]) for claim in claims]
    draw_curves(work.figure("curves"), found)
    _draw_errors(work.figure("errors"), printed, found)
    return Outcome(
        numbers={"printed": dict(printed), "table": _table(found), "found": found},
        claims=[*claims, *_beyond(found)],
        figures={
            "curves": f"{architecture.name}: error of single samples on {work['curve_rows']:,} training images against "
            f"data passes, mean and one standard deviation over {_number(found)} repeats.",
            "errors": f"{architecture.name}: error on the test images, averaged over the last {work['averaged']} of "
            f"{work['snapshots']} samples of a repeat (95 % intervals), and over all chains; beside it the paper's.",
        },
        reading=_reading(work),
        tuning={"rule": RULE, "printed": dict(architecture.steps), "step_factor": work["step_factor"]},
    )


def _at(
    work: Work, here: shared.NetworkProblem, architecture: Architecture, temperature: float, names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    rows = {}
    for name in names:
        h = architecture.steps[name] * work["step_factor"]
        how = shared.method(name, work["batch"], h, architecture.friction, temperature)
        part = f"{name}, T = {temperature:g}"
        rows[name] = shared.repeats(work, here, part, how)
    return rows


def scores(repeats: Repeats, key: str) -> list[float | None]:
    """A number of each repeat, errors in percent; None where chains diverged."""
    scale = 100 if "error" in key and key != "calibration_error" else 1
    return [None if row is None else scale * row[key] for row in repeats]


def training(repeats: Repeats) -> list[float | None]:
    """The training error, in percent, averaged over the second half of the curve."""
    return [None if row is None else 100 * float(np.mean(row["curve"][len(row["curve"]) // 2 :])) for row in repeats]


def percent(found: Interval) -> str:
    """An interval of percentages."""
    return f"{found} %" if np.isfinite(found.value) else str(found)


def _table(found: dict[str, Any]) -> dict[str, Any]:
    return {
        temperature: {
            name: {key: interval(scores(row["repeats"], key))._asdict() for key in _SCORES}
            | {"training_error": interval(training(row["repeats"]))._asdict(), "all_chains": row["together"]}
            for name, row in rows.items()
        }
        for temperature, rows in found.items()
    }


def _number(found: dict[str, Any]) -> int:
    return len(next(iter(found["T = 1"].values()))["repeats"])


def _published(printed: Mapping[str, float], near: float, rows: dict[str, Any]) -> list[Claim]:
    claims = []
    for name, error in printed.items():
        if name not in rows:
            continue
        ours = interval(scores(rows[name]["repeats"], "error"))
        text = f"{name}: test error of the table (within {near:g} points; T = 1)"
        claims.append(Claim(text, f"{error} %", percent(ours), decide(ours, error - near, error + near)))
    return claims


def _too_early(claim: Claim, epochs: float) -> Claim:
    """A claim about the end of a chain when ours has only begun: undecided, whatever we found."""
    found = f"{claim.ours} after {epochs:g} of {PRINTED_EPOCHS} epochs"
    return claim._replace(ours=found, holds="undecided")


def _smaller(text: str, paper: str, pair: Sequence[list[float | None]], unit: str) -> Claim:
    """The claim that the first of the two is smaller, by their difference over repeats."""
    ours = difference(*pair)
    return Claim(text, paper, f"difference {ours} {unit}", decide(ours, high=0.0))


def _order(rows: dict[str, Any]) -> list[Claim]:
    claims = []
    for what, column in (("test error", lambda r: scores(r, "error")), ("training error", training)):
        for other in (name for name in METHODS[:4] if name in rows):
            text = f"EWSG has a smaller {what} than {other} (T = 1)"
            pair = [column(rows[name]["repeats"]) for name in ("EWSG", other)]
            claims.append(_smaller(text, "yes", pair, "points"))
    return claims


def _beyond(found: dict[str, Any]) -> list[Claim]:
    """Ours: paired selection, likelihood and calibration, and what the temperature does."""
    claims, rows = [], found["T = 1"]
    for one, other in (("paired (ours)", "EWSG"), ("paired (ours)", "SGHMC"), ("EWSG", "SGHMC")):
        for key, words, unit in (
            ("error", "test error", "points"),
            ("brier", "Brier score", ""),
            ("calibration_error", "calibration error", ""),
        ):
            if (one, key) == ("EWSG", "error") or one not in rows:
                continue
            text = f"not in the paper: {one} has a smaller {words} than {other} (T = 1)"
            pair = [scores(rows[name]["repeats"], key) for name in (one, other)]
            claims.append(_smaller(text, "-", pair, unit))
    for temperature, colder in list(found.items())[1:]:
        for name, row in colder.items():
            text = f"not in the paper: {name} has a smaller test error at {temperature} than at T = 1"
            pair = [scores(side["repeats"], "error") for side in (row, rows[name])]
            claims.append(_smaller(text, "-", pair, "points"))
        text = f"not in the paper: EWSG has a smaller test error than SGHMC at {temperature}"
        pair = [scores(colder[name]["repeats"], "error") for name in ("EWSG", "SGHMC")]
        claims.append(_smaller(text, "-", pair, "points"))
    return claims


def _reading(work: Work) -> list[str]:
    whole = work["runs"] > 1
    return [
        "Step sizes and frictions are in mean units (for the mean of the gradients, at temperature T/n), in which the "
        "printed ones are stable; SGLD's printed step moves the chain only if it is for the sum.",
        f"{work['epochs']} epochs are {work['epochs']} n datum gradients per chain, n the training images: SGLD, "
        f"pSGLD, SGHMC and CP-SGHMC take {work['batch']} per step; EWSG (M = 1: two minibatches) and paired (whose "
        "directional derivatives come on top) take twice as many per step and half as many steps.",
        "Pixels are divided by their largest value; all weights and biases have the prior N(0, 1); chains start from "
        "Equinox's default initialisation, a different one each.",
        "A repeat is "
        + (f"a run of {work['chains']} chains" if whole else "a chain")
        + f"; its prediction averages the class probabilities of {work['averaged']} samples"
        + (" of each chain" if whole else "")
        + ". The row of all chains averages over every chain of a run.",
        "Convolutions keep the size of the image (zeros around it), so that 7 × 7 × 64 numbers reach the fully "
        "connected layers.",
        "Temperatures are compared with each other, but methods only at equal temperature.",
    ]


def draw_curves(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Training error against data passes, one panel for each temperature; mean and sd over repeats."""
    panels = []
    for temperature, rows in found.items():
        shown = {}
        for name in METHODS:
            repeats: list[Any] = rows[name]["repeats"] if name in rows else [None]
            if None in repeats:
                shown[name] = Curve([], [])
                continue
            curves = 100 * np.array([row["curve"] for row in repeats])
            mean, sd = curves.mean(0), curves.std(0, ddof=1) if len(curves) > 1 else np.zeros(curves.shape[1])
            shown[name] = Curve(repeats[0]["passes"], mean, np.maximum(mean - sd, 1e-3), mean + sd)
        panels.append(Panel(shown, f"Training error, {temperature}", "data passes", "wrong predictions (%)"))
    draw(path, panels)


def _draw_errors(path: Path, printed: Mapping[str, float], found: dict[str, Any]) -> None:
    labels = [(temperature, name) for temperature, rows in found.items() for name in rows]
    with figures.drawing(path, width=6.4, height=0.9 + 0.36 * len(labels)) as (figure, axis):
        for place, (temperature, name) in enumerate(labels):
            row = found[temperature][name]
            ours = interval(scores(row["repeats"], "error"))
            color, marker, _ = style(name)
            if np.isfinite(ours.value):
                spread = [[ours.value - ours.low], [ours.high - ours.value]] if np.isfinite(ours.low) else None
                axis.errorbar(ours.value, place, xerr=spread, fmt=marker, color=color, capsize=3)
                axis.plot(100 * row["together"]["error"], place, marker, color=color, markerfacecolor="white")
            if name in printed and temperature == "T = 1":
                axis.plot(printed[name], place, "+", color="0.3", markersize=9)
        for label, look in _READINGS.items():
            axis.plot([], [], linestyle="none", color="0.3", label=label, **look)
        axis.set(yticks=range(len(labels)), yticklabels=[f"{n}, {t}" for t, n in labels], xlabel="test error (%)")
        axis.invert_yaxis()
        axis.set_xlim(left=max(0.0, axis.get_xlim()[0]))
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)
