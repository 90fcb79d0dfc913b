"""`mse-bias`: as T → ∞ the error of a time average is its squared bias, of order h² (Fig. 1f, third term)."""

import numpy as np

from ....theory import fit_slope
from ...panels import Curve, Panel, draw
from ..claims import Claim, Interval, decide
from ..experiment import Experiment, Outcome, Work
from . import time_averages
from .time_averages import Spread

STEPS = (2e-3, 5e-3, 1e-2, 2e-2, 4e-2, 7e-2)
_SPACING, _DISCARDED = 2e-2, 0.1
_SIGNIFICANT = 3.0


def run(work: Work) -> Outcome:
    """Bias of φ̂ over long runs of many chains; for SGHMC it is known exactly."""
    found = {name: [_spread(work, name, h) for h in STEPS] for name in time_averages.methods(STEPS[0])}
    slopes = {name: _slope(rows) for name, rows in found.items()}
    signs = {name: "".join("−" if row.bias < 0 else "+" for row in rows) for name, rows in found.items()}
    claims = []
    for name, (slope, number) in slopes.items():
        text = f"{name}: squared bias as T → ∞ has slope 2 in h (within 0.3)"
        ours = f"slope {slope} over {number} steps; signs of the bias, small h to large: {signs[name]}"
        paper = "2 (Fig. 1f)" if name.startswith("EWSG") else "-"
        claims.append(Claim(text, paper, ours, "undecided" if slope is None else decide(slope, 1.7, 2.3)))
    curves = {name: Curve(STEPS, [abs(row.bias) / time_averages.EXACT for row in rows]) for name, rows in found.items()}
    lines = {
        "SGHMC (exact)": (STEPS, [time_averages.uniform_bias(h) / time_averages.EXACT for h in STEPS]),
        "full gradient (exact)": (
            STEPS,
            [time_averages.stationary(h)[1][0, 0] / time_averages.EXACT - 1 for h in STEPS],
        ),
    }
    panel = Panel(
        curves, "Bias of the variance as T → ∞", "step size h", "|bias| / posterior variance", "loglog", lines
    )
    draw(work.figure("figure"), [panel], width=6.0)
    return Outcome(
        numbers={
            "step_sizes": list(STEPS),
            "SGHMC, exact bias": [time_averages.uniform_bias(h) for h in STEPS],
            **{name: [row._asdict() for row in rows] for name, rows in found.items()},
        },
        claims=claims,
        figures={
            "figure": f"Bias of the time average of θ² over T = {work['time']:g} and {work['chains']:,} chains, in "
            "units of the posterior variance; its square is what is left of the mean square error as T → ∞. "
            "Slope 1 here is slope 2 there."
        },
        reading=time_averages.READING,
        tuning={"step_sizes": list(STEPS), "rule": "none: the same steps for all"},
    )


def _spread(work: Work, name: str, h: float) -> Spread:
    part = work.sample(
        f"{name}, h = {h:g}",
        time_averages.target(),
        time_averages.methods(h)[name],
        lambda run: time_averages.spread(time_averages.phi(run)),
        init=time_averages.start,
        seed=STEPS.index(h),
        num_chains=work["chains"],
        num_steps=round(work["time"] / h),
        discard=_DISCARDED,
        thin=max(1, round(_SPACING / h)),
    )
    return Spread(**part["value"])


def _slope(rows: list[Spread]) -> tuple[Interval | None, int]:
    """The exponent of the squared bias, from the steps whose bias is significant, and their number."""
    kept = [k for k, row in enumerate(rows) if abs(row.bias) > _SIGNIFICANT * row.bias_error]
    if len(kept) < 3:
        return None, len(kept)
    bias = np.array([rows[k].bias for k in kept])
    error = 2 * np.abs(bias) * [rows[k].bias_error for k in kept]
    return fit_slope([STEPS[k] for k in kept], bias**2, error), len(kept)


EXPERIMENT = Experiment(
    "mse-bias",
    "error of a time average as T grows against h: slope 2, the third term of Theorem 3",
    {
        "smoke": {"chains": 100, "time": 6.0},
        "laptop": {"chains": 2000, "time": 20.0},
        "paper": {"chains": 4000, "time": 100.0},
    },
    run,
)
