"""The report of `blr-covertype`: predictions, errors against the reference, claims and figures."""

from typing import Any

import numpy as np
from scipy.special import expit

from ..claims import Claim, Interval, decide, difference, interval, ratio, smaller
from ..experiment import Outcome, Work, column
from . import figures

ACCURACY = {"SGLD": 75.283, "pSGLD": 75.126, "SGHMC": 75.268, "EWSG": 75.306, "FlyMC": 75.199}
LOG_LIKELIHOOD = {"SGLD": -0.525, "pSGLD": -0.526, "SGHMC": -0.525, "EWSG": -0.523, "FlyMC": -0.523}
SECONDS = {"SGLD": 3.085, "pSGLD": 4.312, "SGHMC": 3.145, "EWSG": 3.755, "FlyMC": 291.295}
_NEAR = {"accuracy": 0.2, "log_likelihood": 0.003}
_TINY = 1e-30
_UNITS = {"accuracy": "points", "log_likelihood": "nats"}

Repeats = list[dict[str, Any]]


def predict(draws: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """Accuracy (%) and log likelihood, of the draws' averaged prediction and of single draws."""
    scores = rows @ draws.T.astype(np.float32)
    together = expit(scores.astype(np.float64)).mean(1)
    return {
        "accuracy": float(100 * np.mean(together > 0.5)),
        "log_likelihood": float(-np.logaddexp(0, -scores).mean(dtype=np.float64)),
        "accuracy_of_single_draws": float(100 * np.mean(scores > 0)),
        "log_likelihood_of_average": float(np.log(np.maximum(together, _TINY)).mean()),
    }


def judged(repeats: Repeats, truth: dict[str, Any]) -> Repeats:
    """Each repeat with its error of posterior mean and sd, in units of the reference's sd."""
    mean, sd = np.array(truth["mean"]), np.array(truth["sd"])
    for row in repeats:
        value = row["value"]
        if value is not None:
            value["mean_error"] = float(np.sqrt(np.mean(((np.array(value["mean"]) - mean) / sd) ** 2)))
            value["sd_ratio"] = float(np.median(np.array(value["sd"]) / sd))
            value["sd_error"] = float(np.sqrt(np.mean(np.log(np.array(value["sd"]) / sd) ** 2)))
    return repeats


def values(repeats: Repeats, key: str) -> list[float | None]:
    """A number of each repeat; None where chains diverged."""
    return column(repeats, lambda value: value[key])


def seconds(repeats: Repeats) -> list[float]:
    """Wall time of one chain: that of the run, shared among its chains."""
    return [row["cost"]["seconds"] / row["chains"] for row in repeats]


def outcome(work: Work, numbers: dict[str, Any], tuning: dict[str, Any]) -> Outcome:
    """Claims, figures and how the paper was read."""
    figures.curves(work.figure("curves"), numbers["tuned"])
    figures.errors(work.figure("errors"), numbers)
    figures.scalings(work.figure("scalings"), numbers["scalings"])
    numbers["table"] = {
        kind: {name: _row(rows) for name, rows in numbers[kind].items()} for kind in ("printed", "tuned")
    }
    claims = [*_scalings(numbers["scalings"]), *_published(numbers)]
    for kind in ("printed", "tuned"):
        claims += _order(numbers[kind], kind)
    claims += _times(numbers) + _beyond(numbers["tuned"])
    return Outcome(
        numbers=numbers,
        claims=claims,
        figures={
            "curves": "Test accuracy of the averaged prediction and test log likelihood of single samples against data "
            f"passes, mean and range over {work['repeats']} repeats of {work['chains']} chains from 0; every method at "
            "its tuned step.",
            "errors": "Error of the posterior after one data pass against a long full-gradient run: root mean square "
            "error of the mean, in posterior sd, and ratio of the sd (median over coefficients); 0 and 1 are right.",
            "scalings": "Test log likelihood after one data pass at the printed step sizes, read for the sum of the "
            "gradients (left) and for their mean (right), under three preparations of the data. At the bottom: −1 or "
            "worse, or diverged.",
        },
        reading=[
            "Preprocessing is not given: class 2 against the rest, no intercept, ten continuous columns standardised, "
            "then every row scaled to length 1; other preparations are compared at the printed steps.",
            "The text has prior covariance 10 I, the printed potential 5‖θ‖² precision 10: the potential is used.",
            "Accuracy is that of the averaged prediction of all chains of a repeat, log likelihood the mean over "
            "single samples.",
            "FlyMC's data pass is read as n/50 iterations, counting only the data whose state is resampled; its true "
            "cost in likelihoods is in the numbers. It starts at the mode, the others at 0.",
            "EWSG and paired take 100 data per step, the others 50: half as many steps at equal datum gradients.",
            "Wall time is that of a chain when the chains of a run share the machine.",
        ],
        tuning=tuning,
    )


def _row(repeats: Repeats) -> dict[str, Any]:
    keys = [
        key for key in ("accuracy", "log_likelihood", "mean_error", "sd_ratio") if key in (repeats[0]["value"] or {})
    ]
    found = {key: interval(values(repeats, key))._asdict() for key in keys}
    passes = float(np.mean([row["cost"]["data_passes"] for row in repeats]))
    return found | {"seconds_per_chain": interval(seconds(repeats))._asdict(), "data_passes": passes}


def _scalings(rows: list[dict[str, Any]]) -> list[Claim]:
    """One claim per method: its printed step gives the log likelihood of Table 1 in sum units, or else in mean units.

    The paper does not say which it means, and it can mean at most one, so that the two readings are one claim.
    """
    readings: dict[str, list[dict[str, Any]]] = {}
    for row in (row for row in rows if row["preparation"] == "unit rows"):
        readings.setdefault(row["method"], []).append(row)
    claims = []
    for method, tried in readings.items():
        paper = LOG_LIKELIHOOD[method]
        found = [row["value"]["log_likelihood"] if row["value"] else -np.inf for row in tried]
        text = f"{method} at its printed step: log likelihood of Table 1 (unit rows, in either reading of its units)"
        ours = "; ".join(f"{row['units']} units {_reading(row)}" for row in tried)
        near = any(abs(value - paper) < _NEAR["log_likelihood"] for value in found)
        claims.append(Claim(text, f"{paper}", f"{ours}; one run each", "yes" if near else "no"))
    return claims


def _reading(row: dict[str, Any]) -> str:
    return f"{row['value']['log_likelihood']:.3f}" if row["value"] else f"{row['failed']:.0%} of chains diverged"


def _published(numbers: dict[str, Any]) -> list[Claim]:
    claims = []
    for kind, key in ((kind, key) for kind in ("printed", "tuned") for key in _NEAR):
        published = ACCURACY if key == "accuracy" else LOG_LIKELIHOOD
        for name in published.keys() & numbers[kind].keys():
            found = interval(values(numbers[kind][name], key))
            text = f"{name}, {kind} step: {key.replace('_', ' ')} of Table 1 (within {_NEAR[key]:g})"
            limits = published[name] - _NEAR[key], published[name] + _NEAR[key]
            claims.append(Claim(text, f"{published[name]}", _digits(found), decide(found, *limits)))
    return sorted(claims)


def _digits(found: Interval) -> str:
    return f"{found.value:.5g} ({found.low:.5g} to {found.high:.5g})" if np.isfinite(found.value) else str(found)


def _order(rows: dict[str, Repeats], kind: str) -> list[Claim]:
    claims = []
    for key, unit in _UNITS.items():
        for other in ("SGLD", "pSGLD", "SGHMC"):
            found = difference(values(rows["EWSG"], key), values(rows[other], key))
            text = f"EWSG has a higher {key.replace('_', ' ')} than {other} ({kind} steps)"
            claims.append(Claim(text, "yes (Table 1)", f"difference {found} {unit}", decide(found, low=0.0)))
    return claims


def _times(numbers: dict[str, Any]) -> list[Claim]:
    time = {name: seconds(rows) for name, rows in numbers["printed"].items()}
    claims = []
    for other, most in (("SGHMC", 1.3), ("pSGLD", 1.0), ("FlyMC", 0.1)):
        number = min(len(time["EWSG"]), len(time[other]))
        found = ratio(time["EWSG"][:number], time[other][:number])
        text = f"EWSG's wall time is at most {most:g} times that of {other}"
        paper = f"{SECONDS['EWSG'] / SECONDS[other]:.2g}"
        claims.append(Claim(text, paper, f"ratio {found}", decide(found, high=most)))
    return claims


def _beyond(rows: dict[str, Repeats]) -> list[Claim]:
    claims = []
    for key, words in (("mean_error", "mean"), ("sd_error", "sd")):
        for one, other in (("EWSG", "SGHMC"), ("paired (ours)", "EWSG"), ("paired (ours)", "SGHMC")):
            text = f"not in the paper: {one} errs less than {other} in the posterior {words} (tuned steps)"
            claims.append(smaller(text, "-", values(rows[one], key), values(rows[other], key)))
    return claims
