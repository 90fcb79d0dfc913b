"""`gaussian-kl`: KL against data passes for SGLD, pSGLD, SGHMC, EWSG and SVRG-LD on the paper's Gaussian (Fig. 1a)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .... import recipes
from ....recipes import Method
from ...panels import Panel, draw
from ..claims import Claim, decide, ratio, smaller
from ..experiment import Experiment, Outcome, Work
from . import shared

GRID = (5e-1, 5e-2, 5e-3, 5e-4)
PRINTED = {"SGLD": 5e-3, "pSGLD": 5e-3, "SGHMC": 5e-2, "EWSG": 5e-2, "SVRG-LD": 5e-4, "paired (ours)": 5e-2}
_BUILD: dict[str, Callable[[float], Method]] = {
    "SGLD": lambda h: recipes.sgld(1, h),
    "pSGLD": lambda h: recipes.psgld(1, h),
    "SGHMC": lambda h: recipes.sghmc(1, h, shared.FRICTION),
    "EWSG": lambda h: recipes.ewsg(1, h, shared.FRICTION),
    "SVRG-LD": lambda h: recipes.svrg_ld(1, h, shared.NUM_DATA),
    "paired (ours)": lambda h: recipes.paired(1, h, shared.FRICTION),
}
_RULE = (
    "every method gets the grid 5e-1, 5e-2, 5e-3, 5e-4 and takes the step with the smallest KL (geometric mean) at the "
    "full budget, on draws of the centres that are used for nothing else"
)


def run(work: Work) -> Outcome:
    """Printed step sizes first, then step sizes tuned by one rule."""
    draws = range(shared.FIRST_DRAW, shared.FIRST_DRAW + work["draws"])
    printed = shared.kl_curves(work, {name: build(PRINTED[name]) for name, build in _BUILD.items()}, draws)
    grid = _tune(work)
    best = {name: _best(found) for name, found in grid.items()}
    tuned = shared.kl_curves(work, {name: build(best[name]) for name, build in _BUILD.items()}, draws)
    _figure(work, printed, tuned, best)
    return Outcome(
        numbers={"printed": shared.numbers(printed), "tuned": shared.numbers(tuned)},
        claims=_claims(printed, tuned, best),
        figures={
            "figure": "KL divergence of the target from the chains against data passes, mean and range over draws of "
            f"the centres, {work['chains']:,} chains each. Left: the paper's step sizes. Right: every method at the "
            "step of the paper's grid that is best for it. Grey: what exact draws would give."
        },
        reading=[*shared.READING, "SVRG-LD's period is not given: a new anchor every n steps."],
        tuning={"printed": PRINTED, "grid": list(GRID), "rule": _RULE, "kl": grid, "chosen": best},
    )


def _tune(work: Work) -> dict[str, dict[str, float | None]]:
    """KL at the full budget by method and step size."""
    first = shared.FIRST_DRAW + 1000
    found: dict[str, dict[str, float | None]] = {}
    for name, build in _BUILD.items():
        found[name] = {}
        for h in GRID:
            rows = [shared.kl_curve(work, f"{name}, tuning", build(h), first + k) for k in range(work["tuning_draws"])]
            values = [value for value in shared.final_kl(rows) if value is not None]
            found[name][f"{h:g}"] = math.exp(np.mean(np.log(values))) if len(values) == len(rows) else None
    return found


def _best(found: dict[str, float | None]) -> float:
    return float(min((math.inf if kl is None else kl, h) for h, kl in found.items())[1])


def _claims(printed: dict[str, Any], tuned: dict[str, Any], best: dict[str, float]) -> list[Claim]:
    kl = {name: shared.final_kl(rows) for name, rows in printed.items()}
    time = {name: shared.settling(rows) for name, rows in printed.items()}
    other = {name: shared.final_kl(rows) for name, rows in tuned.items()}
    claims = [
        smaller(f"EWSG is more accurate than {name}", "yes (Fig. 1a)", kl["EWSG"], kl[name], "KL ratio")
        for name in ("SGHMC", "SGLD", "pSGLD")
    ]
    claims += [
        smaller("SVRG-LD is the most accurate: below EWSG", "yes (Fig. 1a)", kl["SVRG-LD"], kl["EWSG"], "KL ratio"),
        smaller("SVRG-LD converges slower than EWSG", "yes", time["EWSG"], time["SVRG-LD"], "ratio of data passes"),
    ]
    same = ratio(time["EWSG"], time["SGHMC"])
    text = f"ratio of data passes {same}"
    claims.append(Claim("EWSG converges as fast as SGHMC (within a factor of 2)", "yes", text, decide(same, 0.5, 2.0)))
    steps = f"(h {best['EWSG']:g} and {best['SGHMC']:g})"
    return [
        *claims,
        smaller(
            f"at tuned steps, too, EWSG is more accurate than SGHMC {steps}",
            "steps are said to be tuned on this grid",
            other["EWSG"],
            other["SGHMC"],
            "KL ratio",
        ),
        smaller(
            "not in the paper: paired is more accurate than EWSG at h = 0.05",
            "-",
            kl["paired (ours)"],
            kl["EWSG"],
            "KL ratio",
        ),
        smaller(
            "not in the paper: paired is more accurate than EWSG, both tuned",
            "-",
            other["paired (ours)"],
            other["EWSG"],
            "KL ratio",
        ),
    ]


def _figure(work: Work, printed: dict[str, Any], tuned: dict[str, Any], best: dict[str, float]) -> None:
    floor = {"exact draws": shared.floor(work["chains"])}
    panels = []
    for title, rows in (("The paper's step sizes", printed), ("Each at its best step", tuned)):
        curves = {name: shared.as_curve(each) for name, each in rows.items()}
        panels.append(Panel(curves, title, "data passes", "KL divergence (nats)", lines=floor))
    draw(work.figure("figure"), panels)


EXPERIMENT = Experiment(
    "gaussian-kl",
    "KL against data passes for SGLD, pSGLD, SGHMC, EWSG, SVRG-LD",
    {
        "smoke": {"chains": 200, "data_passes": 30, "draws": 2, "tuning_draws": 1},
        "laptop": {"chains": 2000, "data_passes": 30, "draws": 10, "tuning_draws": 3},
        "paper": {"chains": 10_000, "data_passes": 30, "draws": 20, "tuning_draws": 5},
    },
    run,
)
