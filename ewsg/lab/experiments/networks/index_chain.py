"""`bnn-m`: is an index chain of length M worth its data? EWSG against SGHMC with b(M + 1) data per step (App.)."""

import dataclasses
import math
from typing import Any

import numpy as np

from ...panels import Curve, Panel, draw
from ..claims import Claim, decide, difference, interval
from ..experiment import Experiment, Outcome, Work
from . import shared
from .report import percent, scores

FRICTION = 0.1
PRINTED = {
    (100, 2): (1.86, 1.94),
    (100, 5): (1.83, 1.92),
    (100, 10): (1.80, 1.97),
    (200, 2): (1.90, 1.87),
    (200, 5): (1.87, 1.97),
    (200, 10): (1.80, 2.07),
    (500, 2): (1.79, 1.97),
    (500, 5): (2.01, 2.17),
    (500, 10): (2.36, 2.37),
}
"""Test errors (%) of EWSG and SGHMC, by b and M + 1."""
RULE = (
    "10/(b(M + 1)) is read as a learning rate, h² in mean units (as in Chen et al. 2014, whom the paper cites for it); "
    "not tuned"
)


def run(work: Work) -> Outcome:
    """The cells of the settings, then the other reading of the step size at the ends of the table."""
    here = shared.problem(work)
    cells = [tuple(cell) for cell in work["cells"]]
    ewsg = {cell: _repeats(work, here, "EWSG", *cell) for cell in cells}
    totals = sorted({b * number for b, number in cells})
    sghmc = {total: _repeats(work, here, "SGHMC", total, 1) for total in totals}
    other = {total: _repeats(work, here, "SGHMC", total, 1, mean=True) for total in {totals[0], totals[-1]}}
    _draw(work, cells, ewsg, sghmc)
    rows = [_cell(cell, ewsg[cell], sghmc[math.prod(cell)]) for cell in cells]
    won = sum(claim.holds == "yes" for claim in rows)
    lost = sum(claim.holds == "no" for claim in rows)
    lead = sum(_mean(ewsg[cell]) < _mean(sghmc[math.prod(cell)]) for cell in cells)
    printed = sum(PRINTED[cell][0] < PRINTED[cell][1] for cell in cells)
    many = Claim(
        "EWSG wins most of the cells",
        f"{printed} of {len(cells)}",
        f"smaller mean in {lead} of {len(cells)}; decided: {won} won, {lost} lost",
        "yes" if 2 * won > len(cells) else "no" if 2 * lost > len(cells) else "undecided",
    )
    return Outcome(
        numbers={
            "EWSG": {f"b = {b}, M + 1 = {number}": ewsg[b, number] for b, number in cells},
            "SGHMC": {f"b = {total}": found for total, found in sghmc.items()},
            "SGHMC, printed h in mean units": {f"b = {total}": found for total, found in other.items()},
        },
        claims=[many, *rows, *_readings(other, sghmc)],
        figures={
            "table": "Test error against data per step, mean and one standard deviation over repeats: EWSG with M + 1 "
            "minibatches of b, SGHMC with one minibatch of b(M + 1); T = 1."
        },
        reading=[
            f"{work['epochs']} epochs are {work['epochs']} n datum gradients per chain: both sides of a cell take the "
            "same number of steps with the same data per step.",
            "h = 10/(b(M + 1)) is read as a learning rate (h² in mean units). Read as h itself, 200 epochs at b(M + 1) "
            "= 5,000 are 2,400 steps of 0.002, 4.8 units of time at friction 0.1: the chain has hardly left its start, "
            "and the paper's 2.4 % is out of reach; both ends of the table are also run that way.",
            "The friction is that of the MLP, 0.1 in mean units; a repeat is a chain, whose prediction averages "
            f"{work['averaged']} samples, or at paper scale a run of 10 chains.",
        ],
        tuning={"rule": RULE},
    )


def _repeats(
    work: Work, here: shared.NetworkProblem, name: str, batch: int, number: int, mean: bool = False
) -> dict[str, Any]:
    """`number` is M + 1 of EWSG, 1 for SGHMC."""
    rate = work["rate"] / (batch * number)
    how = shared.method(name, batch, rate if mean else math.sqrt(rate), FRICTION)
    if name == "EWSG":
        estimator: Any = how.estimator
        how = how._replace(estimator=dataclasses.replace(estimator, chain_length=number - 1))
    text = f"{name}, b = {batch}" + (f", M + 1 = {number}" if number > 1 else "") + (", mean units" if mean else "")
    return shared.repeats(work, here, text, how)


def _mean(found: dict[str, Any]) -> float:
    return interval(scores(found["repeats"], "error")).value


def _cell(cell: tuple[int, int], ewsg: dict[str, Any], sghmc: dict[str, Any]) -> Claim:
    b, number = cell
    one, other = (scores(found["repeats"], "error") for found in (ewsg, sghmc))
    ours = difference(one, other)
    printed = PRINTED[cell]
    text = f"b = {b}, M + 1 = {number}: EWSG has a smaller test error than SGHMC with {b * number:,} data per step"
    won = "yes" if printed[0] < printed[1] else "no"
    shown = f"difference {ours} points; {percent(interval(one))} against {percent(interval(other))}"
    return Claim(text, f"{won}: {printed[0]} against {printed[1]} %", shown, decide(ours, high=0.0))


def _readings(other: dict[int, Any], sghmc: dict[int, Any]) -> list[Claim]:
    claims = []
    for total in sorted(other):
        ours = difference(*(scores(found[total]["repeats"], "error") for found in (sghmc, other)))
        text = f"not in the paper: SGHMC, b = {total:,}: h² = 10/b has a smaller test error than h = 10/b"
        claims.append(Claim(text, "-", f"difference {ours} points", decide(ours, high=0.0)))
    return claims


def _draw(work: Work, cells: list, ewsg: dict, sghmc: dict[int, Any]) -> None:
    def curve(found: dict[int, Any]) -> Curve:
        rows = {total: scores(row["repeats"], "error") for total, row in sorted(found.items())}
        good = {total: np.array(row, np.float64) for total, row in rows.items() if None not in row}
        mean = np.array([row.mean() for row in good.values()])
        sd = np.array([row.std(ddof=1) if len(row) > 1 else 0.0 for row in good.values()])
        return Curve(list(good), mean, mean - sd, mean + sd)

    curves = {"SGHMC": curve(sghmc)}
    for b in sorted({b for b, _ in cells}):
        curves[f"EWSG, b = {b}"] = curve({b * number: ewsg[b, number] for size, number in cells if size == b})
    panel = Panel(curves, "Test error", "data per step, b(M + 1)", "wrong predictions (%)", "semilogx")
    draw(work.figure("table"), [panel])


_MNIST = {
    "images": "mnist",
    "hidden": [100],
    "rate": 10.0,
    "cells": [list(cell) for cell in PRINTED],
    "curve_rows": 2_000,
}
EXPERIMENT = Experiment(
    "bnn-m",
    "EWSG with M + 1 minibatches of b against SGHMC with one of b(M + 1), on MNIST",
    {
        "smoke": {
            "images": "digits",
            "hidden": [16],
            "rate": 10.0,
            "cells": [[100, 2]],
            "curve_rows": 300,
            "epochs": 30,
            "runs": 1,
            "chains": 2,
            "snapshots": 4,
            "averaged": 2,
        },
        "laptop": _MNIST | {"epochs": 50, "runs": 1, "chains": 3, "snapshots": 10, "averaged": 5},
        "paper": _MNIST | {"epochs": 200, "runs": 10, "chains": 10, "snapshots": 10, "averaged": 1},
    },
    run,
    heavy=True,
)
