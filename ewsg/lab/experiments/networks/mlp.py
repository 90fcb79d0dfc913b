"""`bnn-mlp`: a network with one hidden layer on MNIST (left column of the table of test errors, learning curve).

The paper's predictions average 100 independent samples. Ours average the last samples of fewer independent chains, and
their errors are extrapolated to 100. Chains are kept, a few in each file, and more can be added at any time.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ... import figures
from ...styles import style
from ..claims import Claim, Interval, apart, decide, interval
from ..experiment import MOST_FAILED, Experiment, Outcome, Work
from . import ensembles, shared
from .chains import Chains, part
from .report import COLD_METHODS, METHODS, RULE, Architecture, draw_curves, percent, training

MLP = Architecture(
    name="MLP",
    friction=0.1,
    steps={"SGLD": 6e-3, "pSGLD": 1e-4, "SGHMC": 2e-3, "CP-SGHMC": 2e-3, "EWSG": 4e-3, "paired (ours)": 4e-3},
    printed={"SGLD": 1.976, "pSGLD": 1.821, "SGHMC": 1.833, "CP-SGHMC": 1.835, "EWSG": 1.793},
    near=0.2,
)
PRINTED_SAMPLES = 100
"""Independent samples that the paper's predictions average."""
_WARM = "T = 1"


class Row(NamedTuple):
    """A method at one temperature; errors in percent.

    Attributes:
        chains: how many.
        by_size: test error by ensemble size.
        error: test error of ensembles of 100, extrapolated.
        brier: Brier score of ensembles of 100.
        single: test error of a chain's last sample.
        training: training error of single samples in the second half of a chain.
    """

    chains: int
    by_size: dict[int, float]
    error: Interval
    brier: Interval
    single: Interval
    training: Interval


def run(work: Work) -> Outcome:
    """Every method at the printed steps."""
    here = shared.problem(work)
    chains = _chains(work, here)
    found = {
        temperature: {name: _row(row, here.test_labels, work["sizes"]) for name, row in rows.items()}
        for temperature, rows in chains.items()
    }
    printed = MLP.printed if work["images"] == "mnist" else {}
    repeats = {t: {name: {"repeats": _repeats(row)} for name, row in rows.items()} for t, rows in chains.items()}
    draw_curves(work.figure("curves"), repeats)
    _draw_errors(work.figure("errors"), printed, found)
    return Outcome(
        numbers={
            "printed": dict(printed),
            "table": {t: {name: _plain(row) for name, row in rows.items()} for t, rows in found.items()},
        },
        claims=[*_published(printed, found[_WARM]), *_order(found[_WARM]), *_beyond(found)],
        figures={
            "curves": f"MLP: error of single samples on {work['curve_rows']:,} training images against data passes, "
            "mean and one standard deviation over chains.",
            "errors": "MLP: error on the test images of ensembles of independent chains, against their size; at 100, "
            "hollow, a + b/k fitted to the smaller ones, with its 95 % interval, and as a cross what the paper prints.",
        },
        reading=_reading(work, found),
        tuning={"rule": RULE, "printed": dict(MLP.steps), "step_factor": work["step_factor"]},
    )


def _chains(work: Work, here: shared.NetworkProblem) -> dict[str, dict[str, Chains]]:
    """All chains by temperature and method, computed in turns, so that all methods grow evenly."""
    wanted = {(1.0, name): work["chains" if name in COLD_METHODS else "other_chains"] for name in work["methods"]}
    wanted |= {(work["cold"], name): work["cold_chains"] for name in COLD_METHODS}
    parts: dict[tuple[float, str], list[Any]] = {key: [] for key in wanted}
    size = work["chains_per_part"]
    for number in range(math.ceil(max(wanted.values()) / size)):
        for (temperature, name), chains in wanted.items():
            if number * size < chains:
                parts[temperature, name].append(part(work, here, MLP, name, temperature, number))
    found: dict[str, dict[str, Chains]] = {f"T = {temperature:g}": {} for temperature, _ in wanted}
    for (temperature, name), stored in parts.items():
        if any(one is not None for one in stored):
            found[f"T = {temperature:g}"][name] = Chains.of_parts([one for one in stored if one is not None])
    return found


def _row(chains: Chains, labels: Any, sizes: Sequence[int]) -> Row:
    number = len(chains.errors)
    if chains.diverged > MOST_FAILED * (number + chains.diverged):
        lost = Interval(math.inf, math.inf, math.inf)
        return Row(number, {}, lost, lost, lost, lost)
    return Row(
        number,
        ensembles.errors(chains.probabilities, labels, sizes),
        ensembles.error_at(PRINTED_SAMPLES, chains.probabilities, labels, sizes),
        ensembles.brier_at(PRINTED_SAMPLES, chains.probabilities, labels),
        interval((100 * chains.errors).tolist()),
        interval(training(_repeats(chains))),
    )


def _repeats(chains: Chains) -> list[dict[str, Any] | None]:
    return [{"curve": curve, "passes": chains.passes} for curve in chains.curves]


def _plain(row: Row) -> dict[str, Any]:
    return {key: value._asdict() if isinstance(value, Interval) else value for key, value in row._asdict().items()}


def _published(printed: Mapping[str, float], rows: Mapping[str, Row]) -> list[Claim]:
    claims = []
    for name, error in printed.items():
        if name in rows:
            row = rows[name]
            text = f"{name}: test error of the table (within {MLP.near:g} points; T = 1)"
            ours = f"{percent(row.error)} by {PRINTED_SAMPLES} samples, from {row.chains} chains; one: {row.single} %"
            claims.append(Claim(text, f"{error} %", ours, decide(row.error, error - MLP.near, error + MLP.near)))
    return claims


def _smaller(text: str, paper: str, one: Interval, other: Interval, unit: str = "points") -> Claim:
    ours = apart(one, other)
    return Claim(text, paper, f"difference {ours} {unit}".rstrip(), decide(ours, high=0.0))


def _order(rows: Mapping[str, Row]) -> list[Claim]:
    others = [name for name in METHODS[:4] if name in rows and "EWSG" in rows]
    claims = []
    for what, key in (("test error", "error"), ("training error", "training")):
        for other in others:
            text = f"EWSG has a smaller {what} than {other} (T = 1)"
            claims.append(_smaller(text, "yes", getattr(rows["EWSG"], key), getattr(rows[other], key)))
    return claims


def _beyond(found: Mapping[str, Mapping[str, Row]]) -> list[Claim]:
    """Ours: paired selection, the Brier score, and what the temperature does."""
    claims, rows = [], found[_WARM]
    for one, other in (("paired (ours)", "EWSG"), ("paired (ours)", "SGHMC"), ("EWSG", "SGHMC")):
        if one in rows and other in rows:
            text = f"not in the paper: {one} has a smaller {{}} than {other} (T = 1)"
            if one != "EWSG":
                claims.append(_smaller(text.format("test error"), "-", rows[one].error, rows[other].error))
            claims.append(_smaller(text.format("Brier score"), "-", rows[one].brier, rows[other].brier, ""))
    for temperature, colder in list(found.items())[1:]:
        for name, row in colder.items():
            text = f"not in the paper: {name} has a smaller test error at {temperature} than at T = 1"
            claims.append(_smaller(text, "-", row.error, rows[name].error))
        if len(colder) == len(COLD_METHODS):
            text = f"not in the paper: EWSG has a smaller test error than SGHMC at {temperature}"
            claims.append(_smaller(text, "-", colder["EWSG"].error, colder["SGHMC"].error))
    return claims


def _reading(work: Work, found: Mapping[str, Mapping[str, Row]]) -> list[str]:
    numbers = [f"{row.chains} of {name} at {t}" for t, rows in found.items() for name, row in rows.items()]
    return [
        "Step sizes and frictions are in mean units (for the mean of the gradients, at temperature T/n), in which the "
        "printed ones are stable; SGLD's printed step moves the chain only if it is for the sum.",
        f"{work['epochs']} epochs are {work['epochs']} n datum gradients per chain, n the training images: SGLD, "
        f"pSGLD, SGHMC and CP-SGHMC take {work['batch']} per step; EWSG (M = 1: two minibatches) and paired (whose "
        "directional derivatives come on top) take twice as many per step and half as many steps.",
        "Pixels are divided by their largest value; all weights and biases have the prior N(0, 1); chains start from "
        "Equinox's default initialisation, a different one each.",
        f'"{PRINTED_SAMPLES} independent samples" are the last samples of {PRINTED_SAMPLES} chains, whose class '
        f"probabilities are averaged. Ours are fewer ({', '.join(numbers)}): the mean error of all ensembles of k "
        f"chains, k up to {max(work['sizes'])}, is fitted by a + b/k; intervals are by halves of the chains.",
        "The training error is that of single samples, averaged over the second half of a chain.",
        "Temperatures are compared with each other, but methods only at equal temperature.",
    ]


def _draw_errors(path: Path, printed: Mapping[str, float], found: Mapping[str, Mapping[str, Row]]) -> None:
    with figures.drawing(path, columns=len(found), width=4.6, height=3.8) as (figure, axes):
        labels: dict[str, Any] = {}
        for axis, (temperature, rows) in zip(axes, found.items(), strict=True):
            for place, name in enumerate(METHODS):
                row = rows.get(name)
                if row is None or not row.by_size:
                    continue
                color, marker, line = style(name)
                look = {"color": color, "marker": marker, "markersize": 4}
                at = PRINTED_SAMPLES * 1.12 ** (place - len(METHODS) / 2)
                handle = axis.plot(list(row.by_size), list(row.by_size.values()), linestyle=line, **look)[0]
                labels.setdefault(name, handle)
                if math.isfinite(row.error.low):
                    half = row.error.high - row.error.value
                    axis.errorbar(at, row.error.value, half, capsize=2, markerfacecolor="white", **look)
                if temperature == _WARM and name in printed:
                    axis.plot(at, printed[name], "x", color=color, markersize=7)
            axis.set(xscale="log", title=f"Test error, {temperature}", xlabel="chains in an ensemble")
            axis.set_ylabel("wrong predictions (%)")
            figures.plain_numbers(axis.xaxis)
        figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3, fontsize=8.5)


_MNIST = {
    "images": "mnist",
    "hidden": [100],
    "batch": 100,
    "epochs": 200,
    "step_factor": 1.0,
    "methods": list(METHODS),
    "curve_rows": 10_000,
    "snapshots": 40,
    "cold": 0.01,
    "chains_per_part": 2,
}
EXPERIMENT = Experiment(
    "bnn-mlp",
    "training and test error of a Bayesian network with one hidden layer on MNIST, six methods",
    {
        "smoke": {
            "images": "digits",
            "hidden": [16],
            "batch": 20,
            "epochs": 20,
            "step_factor": 10.0,
            "methods": ["SGLD", "SGHMC", "EWSG", "paired (ours)"],
            "curve_rows": 500,
            "snapshots": 5,
            "cold": 0.01,
            "chains_per_part": 4,
            "chains": 4,
            "other_chains": 4,
            "cold_chains": 4,
            "sizes": [1, 2, 4],
        },
        "laptop": _MNIST | {"chains": 40, "other_chains": 20, "cold_chains": 20, "sizes": [1, 2, 3, 5, 10, 20, 40]},
        "paper": _MNIST | {"chains": 1_000, "other_chains": 1_000, "cold_chains": 1_000, "sizes": [1, 3, 10, 30, 100]},
    },
    run,
    heavy=True,
)
