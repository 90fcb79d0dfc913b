"""`mse-step`: what subsampling adds to the error at fixed T grows as h (Fig. 1e, second term of Theorem 3)."""

from typing import Any

import numpy as np

from ....errors import InputError
from ....theory import fit_slope
from ...panels import Curve, Panel, draw
from ..claims import Claim, Interval, decide
from ..experiment import Experiment, Outcome, Work
from . import time_averages
from .time_averages import Spread

TIME = 1.0
STEPS = (2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)
_SPACING = 2e-3
_SIGNIFICANT, _BELOW = 2.0, 3.0


def run(work: Work) -> Outcome:
    """The raw error, and the error less the squared bias and the exact variance of the full gradient."""
    found = {name: [_spread(work, name, h) for h in STEPS] for name in time_averages.methods(STEPS[0])}
    full = [time_averages.full_gradient(h, round(TIME / h), _thin(h)) for h in STEPS]
    excess = {
        name: [row.variance - base.variance for row, base in zip(rows, full, strict=True)]
        for name, rows in found.items()
    }
    raw = {name: _slope([row.mse for row in rows], _errors(rows)) for name, rows in found.items()}
    slopes = {name: _slope(excess[name], [row.variance_error for row in rows]) for name, rows in found.items()}
    _figure(work, found, full, excess)
    return Outcome(
        numbers={
            "step_sizes": list(STEPS),
            "full gradient (exact)": [row._asdict() | {"mse": row.mse} for row in full],
            **{name: [row._asdict() | {"mse": row.mse} for row in rows] for name, rows in found.items()},
            "variance_beyond_full_gradient": excess,
        },
        claims=_claims(raw, slopes, excess, found),
        figures={
            "figure": f"Error of the time average of θ² over T = {TIME:g} against the step size, over "
            f"{work['chains']:,} chains. Left: the mean square error itself; it does not vanish with h, because 1/T "
            "does not. Right: how much its variance differs from the exact one of the full gradient, in absolute value."
        },
        reading=[
            *time_averages.READING,
            "At fixed T the error tends to C₁/T and not to 0 as h → 0: a line of slope 1 can only be seen in what is "
            "left when the first term (the variance of the full gradient, known exactly here) and the third (the "
            "squared bias) are taken off.",
        ],
        tuning={"step_sizes": list(STEPS), "rule": "none: the same steps for all, small so that h² does not show"},
    )


def _thin(h: float) -> int:
    return max(1, round(_SPACING / h))


def _spread(work: Work, name: str, h: float) -> Spread:
    part = work.sample(
        f"{name}, h = {h:g}",
        time_averages.target(),
        time_averages.methods(h)[name],
        lambda run: time_averages.spread(time_averages.phi(run)),
        init=time_averages.start,
        seed=STEPS.index(h),
        num_chains=work["chains"],
        num_steps=round(TIME / h),
        discard=0,
        thin=_thin(h),
    )
    return Spread(**part["value"])


def _errors(rows: list[Spread]) -> list[float]:
    """Standard errors of the MSE."""
    return [float(np.hypot(row.variance_error, 2 * row.bias * row.bias_error)) for row in rows]


def _slope(values: list[float], errors: list[float]) -> Interval | None:
    """The exponent in h, from the points that are positive beyond doubt; None if there are fewer than three."""
    kept = [k for k, (value, error) in enumerate(zip(values, errors, strict=True)) if value > _SIGNIFICANT * error]
    if len(kept) < 3:
        return None
    try:
        return fit_slope([STEPS[k] for k in kept], [values[k] for k in kept], [errors[k] for k in kept])
    except InputError:
        return None


def _claims(
    raw: dict[str, Any], slopes: dict[str, Any], excess: dict[str, Any], found: dict[str, list[Spread]]
) -> list[Claim]:
    claims = []
    for name in raw:
        paper = "1 (Fig. 1e)" if name.startswith("EWSG") else "-"
        claims.append(_judge(f"{name}: MSE at fixed T has slope 1 in h (within 0.2)", paper, raw[name]))
        text = f"{name}: variance beyond that of the full gradient has slope 1 in h (within 0.2)"
        claim = _judge(text, paper, slopes[name])
        if slopes[name] is None:
            z = np.array(excess[name]) / [row.variance_error for row in found[name]]
            words = ", ".join(f"{value:+.1f}" for value in z)
            ours = f"no slope: the difference is {words} standard errors, small h to large"
            claim = claim._replace(ours=ours, holds="no" if z.min() < -_BELOW else "undecided")
        claims.append(claim)
    return claims


def _judge(text: str, paper: str, slope: Interval | None) -> Claim:
    if slope is None:
        return Claim(text, paper, "no slope", "undecided")
    return Claim(text, paper, f"slope {slope}", decide(slope, 0.8, 1.2))


def _figure(work: Work, found: dict[str, list[Spread]], full: list[Spread], excess: dict[str, list[float]]) -> None:
    left = {name: Curve(STEPS, time_averages.micro([row.mse for row in rows])) for name, rows in found.items()}
    right = {name: Curve(STEPS, time_averages.micro(np.abs(values))) for name, values in excess.items()}
    exact = time_averages.micro([row.mse for row in full])
    largest = max(time_averages.micro([abs(values[-1]) for values in excess.values()]))
    line = (STEPS, [largest * h / STEPS[-1] for h in STEPS])
    draw(
        work.figure("figure"),
        [
            Panel(left, f"Error at T = {TIME:g}", "step size h", "mean square error (10⁻⁶)", "semilogx")._replace(
                lines={"full gradient (exact)": (STEPS, exact)}
            ),
            Panel(
                right, "Beyond the full gradient", "step size h", "|difference of variances| (10⁻⁶)", "loglog"
            )._replace(lines={"full gradient (exact)": ([], []), "slope 1": line}),
        ],
    )


EXPERIMENT = Experiment(
    "mse-step",
    "error of a time average at fixed T against h: slope 1, the second term of Theorem 3",
    {
        "smoke": {"chains": 100},
        "laptop": {"chains": 8000},
        "paper": {"chains": 50_000},
    },
    run,
)
