"""`gaussian-m`: the length M of EWSG's index chain at equal budget (Fig. 1c)."""

import itertools

from .... import recipes
from ...panels import Panel, draw
from ..claims import Claim, decide, ratio, smaller
from ..experiment import Experiment, Outcome, Work
from . import shared

STEP_SIZE = 5e-2
LENGTHS = (0, 1, 9, 19)


def run(work: Work) -> Outcome:
    """M = 0 is SGHMC; a step costs M + 1 data."""
    methods = {_label(m): recipes.ewsg(1, STEP_SIZE, shared.FRICTION, chain_length=m) for m in LENGTHS}
    methods["paired (ours)"] = recipes.paired(1, STEP_SIZE, shared.FRICTION)
    draws = range(shared.FIRST_DRAW, shared.FIRST_DRAW + work["draws"])
    curves = shared.kl_curves(work, methods, draws)
    kl = {name: shared.final_kl(rows) for name, rows in curves.items()}
    time = ratio(shared.settling(curves[_label(1)]), shared.settling(curves[_label(0)]))
    claims = [
        Claim(
            "M = 1 converges as fast as SGHMC (within a factor of 2)",
            "yes (Fig. 1c)",
            f"ratio of data passes {time}",
            decide(time, 0.5, 2.0),
        )
    ]
    claims += [
        smaller(f"M = {more} is more accurate than M = {less}", "yes (Fig. 1c)", kl[_label(more)], kl[_label(less)])
        for less, more in itertools.pairwise(LENGTHS)
    ]
    text = "not in the paper: paired is more accurate than M = "
    claims += [smaller(f"{text}{m}", "-", kl["paired (ours)"], kl[_label(m)], "KL ratio") for m in (1, 19)]
    shown = {name: shared.as_curve(rows) for name, rows in curves.items()}
    title = f"Index chains of length M, h = {STEP_SIZE:g}"
    draw(
        work.figure("figure"),
        [Panel(shown, title, "data passes", "KL divergence (nats)", "linear", limits=(0.0, None))],
        width=6.0,
    )
    return Outcome(
        numbers=shared.numbers(curves),
        claims=claims,
        figures={
            "figure": "KL divergence of the target from the chains against data passes for index chains of length M, "
            f"mean and range over draws of the centres, {work['chains']:,} chains each, h = {STEP_SIZE:g}, γ = 10."
        },
        reading=[*shared.READING, "The step size of this figure is not given: 0.05, as in Fig. 1a."],
        tuning={"step_size": STEP_SIZE, "rule": "none: the printed step size of Fig. 1a, the same for all"},
    )


def _label(m: int) -> str:
    return "M = 0 (SGHMC)" if m == 0 else f"M = {m}"


EXPERIMENT = Experiment(
    "gaussian-m",
    "M = 0, 1, 9, 19 at equal budget",
    {
        "smoke": {"chains": 100, "data_passes": 30, "draws": 2},
        "laptop": {"chains": 2000, "data_passes": 30, "draws": 10},
        "paper": {"chains": 10_000, "data_passes": 30, "draws": 20},
    },
    run,
)
