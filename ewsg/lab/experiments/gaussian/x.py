"""`gaussian-x`: four choices of EWSG's hyper-parameter x on the paper's Gaussian (Fig. 1b)."""

from .... import recipes
from ....estimators import Exponential
from ....integrators import Underdamped
from ....recipes import Method
from ...panels import Panel, draw
from ..claims import smaller
from ..experiment import Experiment, Outcome, Work
from . import shared

STEP_SIZE = 7e-2
CHOICES = {
    "x = √h γ r/σ (recommended)": "momentum",
    "x = 0": "zero",
    "x = 1": "one",
    "x = (−1 + hγ) r/(σ√h)": "next_zero",
}


def run(work: Work) -> Outcome:
    """The paper's four, and SGHMC and paired beside them."""
    integrator = Underdamped(STEP_SIZE, shared.FRICTION)
    methods = {label: Method(Exponential(1, 1, x=choice), integrator) for label, choice in CHOICES.items()}
    methods["SGHMC"] = recipes.sghmc(1, STEP_SIZE, shared.FRICTION)
    methods["paired (ours)"] = recipes.paired(1, STEP_SIZE, shared.FRICTION)
    draws = range(shared.FIRST_DRAW, shared.FIRST_DRAW + work["draws"])
    curves = shared.kl_curves(work, methods, draws)
    kl = {name: shared.final_kl(rows) for name, rows in curves.items()}
    recommended, *others = CHOICES
    claims = [
        smaller(f"the recommended x is better than {name}", "yes (Fig. 1b)", kl[recommended], kl[name], "KL ratio")
        for name in others
    ]
    new = "not in the paper: "
    claims.append(
        smaller(f"{new}the recommended x is better than SGHMC", "-", kl[recommended], kl["SGHMC"], "KL ratio")
    )
    claims += [
        smaller(f"{new}{name} is better than SGHMC", "-", kl[name], kl["SGHMC"], "KL ratio")
        for name in (*others, "paired (ours)")
    ]
    title = f"EWSG, M = 1, h = {STEP_SIZE:g}"
    shown = {name: shared.as_curve(rows) for name, rows in curves.items()}
    panel = Panel(shown, title, "data passes", "KL divergence (nats)", "linear", limits=(0.0, None))
    draw(work.figure("figure"), [panel], width=6.0)
    return Outcome(
        numbers=shared.numbers(curves),
        claims=claims,
        figures={
            "figure": "KL divergence of the target from the chains against data passes for four choices of x, mean and "
            f"range over draws of the centres, {work['chains']:,} chains each, M = 1, h = {STEP_SIZE:g}, γ = 10."
        },
        reading=shared.READING,
        tuning={"step_size": STEP_SIZE, "rule": "none: the printed step size, the same for all"},
    )


EXPERIMENT = Experiment(
    "gaussian-x",
    "four choices of the hyper-parameter x",
    {
        "smoke": {"chains": 100, "data_passes": 30, "draws": 2},
        "laptop": {"chains": 2000, "data_passes": 30, "draws": 10},
        "paper": {"chains": 10_000, "data_passes": 30, "draws": 20},
    },
    run,
)
