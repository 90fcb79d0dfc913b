"""`mse-time`: the error of a time average falls as 1/T (Fig. 1d, first term of Theorem 3)."""

from typing import Any

import numpy as np

from ....result.run import Run
from ....theory import fit_slope, running_errors
from ...panels import Curve, Panel, draw
from ..claims import Claim, Interval, decide
from ..experiment import Experiment, Outcome, Work
from . import time_averages

STEP_SIZE = 1e-3
_THIN, _FROM = 5, 1.0


def run(work: Work) -> Outcome:
    """One small step, so that the error has not reached its floor."""
    found = {name: _errors(work, name, method) for name, method in time_averages.methods(STEP_SIZE).items()}
    slopes = {name: _slope(rows) for name, rows in found.items()}
    claims = [
        Claim(
            f"{name}: MSE against T has slope −1 (within 0.15)",
            "−1 (Fig. 1d)" if name.startswith("EWSG") else "-",
            f"slope {slope}",
            decide(slope, -1.15, -0.85),
        )
        for name, slope in slopes.items()
    ]
    curves = {name: Curve(rows["time"], time_averages.micro(rows["mse"])) for name, rows in found.items()}
    times = np.geomspace(STEP_SIZE * 50, work["time"], 30)
    exact = [time_averages.full_gradient(STEP_SIZE, max(_THIN, round(t / STEP_SIZE)), _THIN).mse for t in times]
    reference = {"full gradient (exact)": (times, time_averages.micro(exact))}
    panel = Panel(
        curves,
        f"Time averages of θ², h = {STEP_SIZE:g}",
        "time T = number of steps × h",
        "mean square error (10⁻⁶)",
        scale="loglog",
        lines=reference,
    )
    draw(work.figure("figure"), [panel], width=6.0)
    return Outcome(
        numbers={name: rows | {"slope": slopes[name]._asdict()} for name, rows in found.items()},
        claims=claims,
        figures={
            "figure": f"Mean square error of the time average of θ² against time, over {work['chains']:,} independent "
            f"chains that start in the posterior; h = {STEP_SIZE:g}, γ = 10. Slopes are fitted from T = {_FROM:g} on."
        },
        reading=time_averages.READING,
        tuning={"step_size": STEP_SIZE, "rule": "none: one small step for all"},
    )


def _errors(work: Work, name: str, method: Any) -> dict[str, Any]:
    def measure(run: Run) -> dict[str, Any]:
        errors = running_errors(time_averages.phi(run), time_averages.EXACT, time_step=STEP_SIZE * _THIN, num_times=24)
        return {key: value.tolist() for key, value in errors._asdict().items()}

    part = work.sample(
        name,
        time_averages.target(),
        method,
        measure,
        init=time_averages.start,
        num_chains=work["chains"],
        num_steps=round(work["time"] / STEP_SIZE),
        discard=0,
        thin=_THIN,
    )
    return part["value"]


def _slope(rows: dict[str, Any]) -> Interval:
    late = np.array(rows["time"]) >= _FROM
    time, mse = np.array(rows["time"])[late], np.array(rows["mse"])[late]
    return fit_slope(time, mse, np.array(rows["covariance"])[np.ix_(late, late)])


EXPERIMENT = Experiment(
    "mse-time",
    "error of a time average against T: slope −1, the first term of Theorem 3",
    {
        "smoke": {"chains": 100, "time": 5.0},
        "laptop": {"chains": 2000, "time": 20.0},
        "paper": {"chains": 2000, "time": 100.0},
    },
    run,
)
