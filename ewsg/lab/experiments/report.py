"""reproduction.md: the findings of every experiment, from the results.json files of a folder."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..folder import RESULTS
from .catalogue import EXPERIMENTS
from .claims import Claim, markdown

REPORT = "reproduction.md"
_GAPS = (
    ('Alg. 1, "Evaluate Ṽ = n V_I"', "a gradient is meant", "g = (n/b) Σ ∇V_i over the minibatch"),
    (
        "Alg. 1 and the text on M = 1",
        "Alg. 1 restarts the index chain every step; the text argues as if it persisted",
        "restarted, as in Alg. 1",
    ),
    ("App. E, overdamped step", "prints ∇V_I", "n∇V_I"),
    (
        "Alg. 2 with L = 1",
        "would calibrate forever and never integrate",
        "calibrate, then integrate, in the same pass; the n gradients are counted",
    ),
    ("Alg. 2, covariance", "m₂ − m₁m₁ᵀ can lose positive semi-definiteness", "projected before use"),
    ("Logistic prior", "Σ = 10 I in the text, 5‖θ‖² (precision 10) in the potential", "the printed potential"),
    (
        "Covertype step sizes",
        "preprocessing is not given; with standardised or min-max features the printed steps are unstable",
        "rows scaled to length 1; every method also tuned by one grid and one rule",
    ),
    ("Gaussian centres, starts, SVRG-LD's period", "not given", "several draws of the centres; 0; n steps"),
    ("Theorem 2", "its proof treats the weights as independent of the gradients", "measured for EWSG's own weights"),
)


def write(folder: Path, to: Path | None = None, images: Path | None = None) -> Path:
    """Writes the report on the experiments of a folder, to reproduction.md in it or elsewhere.

    Args:
        folder: with a folder for each experiment, as `ewsg reproduce --all` leaves it.
        to: the file to write.
        images: where that file is to look for the figures, NAME/FIGURE.png; in `folder` by default.
    """
    found = {name: _read(folder / name) for name in EXPERIMENTS if (folder / name / RESULTS).is_file()}
    if not found:
        raise InputError(f"{folder} holds no results of experiments: run `ewsg reproduce --all --out {folder}` first")
    to = to or folder / REPORT
    images = images or Path(os.path.relpath(folder, to.absolute().parent))
    to.write_text(text(found, images), encoding="utf-8")
    return to


def _read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / RESULTS).read_text(encoding="utf-8"))


def text(found: dict[str, dict[str, Any]], images: Path) -> str:
    """The report in Markdown; figures are looked for in `images`/NAME."""
    parts = [
        "# The paper's experiments, reproduced",
        _introduction(found),
        "## What does not hold",
        _failures(found),
        "## How the paper was read",
        _gaps(),
    ]
    for name, results in found.items():
        parts += _section(name, results, images)
    return "\n\n".join(parts) + "\n"


def _introduction(found: dict[str, dict[str, Any]]) -> str:
    scales = ", ".join(sorted({results["scale"] for results in found.values()}))
    versions = ", ".join(f"{name} {number}" for name, number in _versions(found).items())
    counts = Counter(claim["holds"] for results in found.values() for claim in _of_the_paper(results))
    seconds = sum(_seconds(results) for results in found.values())
    return (
        "Written by `ewsg reproduce --all` from the results.json of each experiment: do not edit.\n\n"
        "R. Li, X. Wang, H. Zha and M. Tao, *Improving Sampling Accuracy of Stochastic Gradient MCMC Methods via "
        "Non-uniform Subsampling of Gradients* (arXiv 2002.08949). Scale: "
        f"{scales}; {seconds / 60:.0f} minutes of sampling and compiling; {versions}.\n\n"
        "Every comparison is at equal datum gradients, except FlyMC and Metropolis, which evaluate likelihoods and "
        "use the paper's own length. A claim holds, or does not, when the 95 % interval over independent "
        "repeats says so; otherwise it is undecided at this scale. Rows that say so rest on one run. Intervals are not "
        "corrected for the number of claims, so that a few will be wrong by chance; tolerances that a row names are "
        "ours. Of the paper's claims "
        f"{counts['yes']} hold, {counts['no']} do not, {counts['undecided']} are undecided. Rows that begin with "
        '"not in the paper" are ours.'
    )


def _versions(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """The versions of each package with which the experiments were run, oldest first."""
    numbers: dict[str, list[str]] = {}
    for results in found.values():
        for name, number in results["versions"].items():
            numbers.setdefault(name, []).extend(number.split(" and "))
    return {name: " and ".join(sorted(set(every))) for name, every in numbers.items()}


def _seconds(results: dict[str, Any]) -> float:
    """Seconds of sampling and compiling, whether or not the experiment was interrupted in between."""
    return results["cost"]["seconds"] + results["cost"]["compile_seconds"]


def _of_the_paper(results: dict[str, Any]) -> list[dict[str, str]]:
    return [claim for claim in results["claims"] if claim["paper"] != "-"]


def _failures(found: dict[str, dict[str, Any]]) -> str:
    lines = [
        f"- `{name}`: {claim['claim']}. Paper: {claim['paper']}; ours: {claim['ours']}."
        for name, results in found.items()
        for claim in _of_the_paper(results)
        if claim["holds"] == "no"
    ]
    return "\n".join(lines) or "Nothing, at this scale."


def _gaps() -> str:
    rows = [("place", "problem", "our reading"), ("---", "---", "---"), *_GAPS]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _section(name: str, results: dict[str, Any], images: Path) -> list[str]:
    settings = ", ".join(f"{key} {_short(value)}" for key, value in results["settings"].items())
    cost = results["cost"]
    facts = (
        f"Settings ({results['scale']}): {settings}. {cost['runs']} runs, {cost['datum_gradients']:.3g} datum "
        f"gradients, {_seconds(results):.0f} s. Step sizes: {results['tuning']['rule']}."
    )
    shown = [
        f"![{caption}]({(images / name / figure).as_posix()}.png)\n\n*{caption}*"
        for figure, caption in results["figures"].items()
    ]
    return [
        f"## `{name}`: {results['shows']}",
        facts,
        markdown(Claim(**claim) for claim in results["claims"]),
        *shown,
        "Our reading:\n\n" + "\n".join(f"- {sentence}" for sentence in results["reading"]),
    ]


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:,}" if isinstance(value, int) else str(value)
