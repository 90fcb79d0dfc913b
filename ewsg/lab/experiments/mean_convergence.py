"""`speed`: on the appendix's quadratic the mean of EWSG converges as fast as that of SGHMC (last appendix)."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from ... import recipes
from ...recipes import Method
from ...result.run import Run
from ...theory import contraction, fit_slope, mean_trajectory, quadratic_target
from ..panels import Curve, Panel, draw
from .claims import Claim, Interval, decide, ratio
from .experiment import Experiment, Outcome, Work

NUM_DATA, FRICTION, START, TIME = 50, 1.0, 10.0, 12.0
STEPS = (0.05, 0.1, 0.2)
_SPACING = 0.2
_GROUPS = 10
_SAME = 0.01 * START
_QUANTILE = float(stats.t.ppf(0.975, _GROUPS - 1))


def run(work: Work) -> Outcome:
    """E θ over many chains, against (I + Ah)^k x₀."""
    found = {name: {h: _means(work, name, h) for h in STEPS} for name in _methods(STEPS[0])}
    exact = {h: mean_trajectory((START, 0.0), h, FRICTION, round(TIME / h))[:: _every(h), 0][1:] for h in STEPS}
    middle = STEPS[1]
    time = _SPACING * (1 + np.arange(len(exact[middle])))
    means = {name: np.array(rows[middle]) for name, rows in found.items()}
    curves = {name: Curve(time, groups.mean(0)) for name, groups in means.items()}
    _figure(work, curves, time, exact[middle], {name: _distances(rows, exact) for name, rows in found.items()})
    return Outcome(
        numbers={
            "step_sizes": list(STEPS),
            "contraction_per_step": {f"{h:g}": contraction(h, FRICTION) for h in STEPS},
            "time": time.tolist(),
            "exact": {f"{h:g}": values.tolist() for h, values in exact.items()},
            "mean_of_each_group": {name: {f"{h:g}": rows[h] for h in STEPS} for name, rows in found.items()},
        },
        claims=_claims(found, exact),
        figures={
            "figure": f"Left: the mean of θ over {work['chains']:,} chains from θ = {START:g}, h = {middle:g}, γ = 1, "
            "and the theorem's (I + Ah)^k. Right: root mean square distance from it over time, against h."
        },
        reading=[
            f"The constants μ_i, n, γ, h are not given: {NUM_DATA} standard normal numbers shifted to sum 0, γ = 1.",
            "Only E θ is compared, not E r.",
        ],
        tuning={"step_sizes": list(STEPS), "rule": "none: the same steps for all"},
    )


def _methods(h: float) -> dict[str, Method]:
    return {
        "SGHMC": recipes.sghmc(1, h, FRICTION),
        "EWSG, M = 1": recipes.ewsg(1, h, FRICTION),
        "paired (ours)": recipes.paired(1, h, FRICTION),
    }


def _every(h: float) -> int:
    return round(_SPACING / h)


def _means(work: Work, name: str, h: float) -> list[list[float]]:
    """The mean of θ at each time, for each of ten groups of chains."""
    mu = np.random.default_rng(0).normal(size=NUM_DATA)

    def measure(run: Run) -> list[list[float]]:
        values = np.asarray(run.good_draws(), np.float64)
        return [group.mean(0).tolist() for group in np.array_split(values, _GROUPS)]

    options = {"num_chains": work["chains"], "num_steps": round(TIME / h), "discard": 0, "thin": _every(h)}
    method = _methods(h)[name]
    target = quadratic_target((mu - mu.mean()).astype(np.float32))
    return work.sample(
        f"{name}, h = {h:g}", target, method, measure, init=jnp.array(START), seed=STEPS.index(h), **options
    )["value"]


def _distances(rows: dict[float, Any], exact: dict[float, np.ndarray]) -> tuple[list[float], list[float]]:
    """Root mean square over time of E θ − exact for each h, free of Monte-Carlo bias, and its jackknife error.

    A distance below its error is replaced by the error.
    """
    values, errors = [], []
    for h in STEPS:
        deviations = np.asarray(rows[h], np.float64) - exact[h]
        without = np.array([_square(np.delete(deviations, k, axis=0)) for k in range(_GROUPS)])
        square = _square(deviations)
        error = np.sqrt((_GROUPS - 1) / _GROUPS * np.sum((without - np.mean(without)) ** 2))
        values.append(float(np.sqrt(max(square, error))))
        errors.append(float(error / (2 * values[-1])))
    return values, errors


def _square(deviations: np.ndarray) -> float:
    """The mean over time of (E deviation)², by products of different groups."""
    number = len(deviations)
    total = deviations.sum(0) ** 2 - np.sum(deviations**2, axis=0)
    return float(np.mean(total) / (number * (number - 1)))


def _claims(found: dict[str, Any], exact: dict[float, np.ndarray]) -> list[Claim]:
    claims = []
    for h, value, error in zip(STEPS, *_distances(found["SGHMC"], exact), strict=True):
        away = Interval(value, max(0.0, value - _QUANTILE * error), value + _QUANTILE * error)
        text = f"SGHMC: E θ is (I + Ah)^k x₀, h = {h:g} (within {_SAME:g}, 1 % of the way)"
        claims.append(Claim(text, "yes", f"root mean square distance {away}", decide(away, high=_SAME)))
    for name in ("EWSG, M = 1", "paired (ours)"):
        values, errors = _distances(found[name], exact)
        slope = fit_slope(STEPS, values, errors)
        text = f"{name}: E θ differs from it by O(h^p), p at least 1 (within 0.2)"
        paper = "yes, p = 1" if name.startswith("EWSG") else "-"
        claims.append(Claim(text, paper, f"p = {slope}; {values[-1]:.2g} at h = {STEPS[-1]:g}", decide(slope, low=0.8)))
    for name in ("EWSG, M = 1", "paired (ours)"):
        for h in STEPS:
            areas = {key: [float(np.sum(np.square(group))) for group in found[key][h]] for key in ("SGHMC", name)}
            compared = ratio(areas[name], areas["SGHMC"])
            text = f"{name} converges as fast as SGHMC, h = {h:g} (area below (E θ)² within a fifth)"
            paper = "comparable" if name.startswith("EWSG") else "-"
            claims.append(Claim(text, paper, f"ratio {compared}", decide(compared, 0.8, 1.25)))
    return claims


def _figure(work: Work, curves: dict[str, Curve], time: np.ndarray, exact: np.ndarray, distances: dict) -> None:
    shown = {name: values for name, (values, _) in distances.items() if name != "SGHMC"}
    right = {"SGHMC": Curve([], [])} | {name: Curve(STEPS, values) for name, values in shown.items()}
    draw(
        work.figure("figure"),
        [
            Panel(curves, "Mean of θ", "time k·h", "E θ", "linear", {"(I + Ah)^k (theorem)": (time, exact)}),
            Panel(right, "Distance from the theorem's mean", "step size h", "root mean square of E θ", "loglog"),
        ],
    )


EXPERIMENT = Experiment(
    "speed",
    "E θ of EWSG converges as fast as that of SGHMC",
    {"smoke": {"chains": 4000}, "laptop": {"chains": 40_000}, "paper": {"chains": 400_000}},
    run,
)
