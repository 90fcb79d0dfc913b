"""`ewsg reproduce`: one experiment, or all of them, with tables, figures and numbers in a folder each."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ...errors import unknown
from ..folder import Folder, check_writable, holds_parts
from . import claims, report
from .catalogue import EXPERIMENTS
from .experiment import SCALES, Experiment, Work

CLAIMS = "claims.md"
_WIDTH = 160


def find(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def reproduce(name: str, scale: str = "laptop", out: str | Path | None = None, redraw: bool = False) -> dict[str, Any]:
    """Runs an experiment, or the rest of it; writes results.json, claims.md and figures to `out`.

    Args:
        name: one of `EXPERIMENTS`.
        scale: "smoke" (seconds), "laptop" (minutes on two cores) or "paper" (the paper's budget).
        out: folder for the files, `ewsg-NAME` by default; InputError if it holds something else.
        redraw: whether to judge and draw again from the parts in `out`, whatever the code that made them.
    """
    experiment = find(name)
    _check_scale(scale)
    folder = Folder(out or f"ewsg-{name}", f"reproduce {name}", stored=redraw)
    console = Console(width=_WIDTH)
    console.print(f"{name}: {experiment.shows} ({scale})", style="bold", highlight=False)
    work = Work(folder, experiment.scales[scale], console)
    began = time.perf_counter()
    outcome = experiment.run(work)
    results = {
        "shows": experiment.shows,
        "scale": scale,
        "settings": work.settings,
        "seeds": sorted(work.seeds),
        "tuning": outcome.tuning,
        "claims": [claim._asdict() for claim in outcome.claims],
        "reading": outcome.reading,
        "figures": outcome.figures,
        "caption": " ".join(outcome.figures.values()),
        "cost": work.cost,
        "seconds": time.perf_counter() - began,
        "numbers": outcome.numbers,
    }
    folder.finish(_plain(results))
    text = f"# {name}\n\n{experiment.shows}; scale `{scale}`.\n\n{claims.markdown(outcome.claims)}\n"
    (folder.path / CLAIMS).write_text(text, encoding="utf-8")
    console.print(claims.table(f"{name}, {scale}", outcome.claims))
    names = ", ".join(f"{figure}.png, {figure}.svg" for figure in outcome.figures)
    console.print(f"\nWrote results.json, {CLAIMS}, {names} to {folder.path} in {results['seconds']:.0f} s.")
    return results


def reproduce_all(scale: str = "laptop", out: str | Path = "ewsg-reproduction", redraw: bool = False) -> Path:
    """Runs every experiment into a folder of its own below `out`, and writes reproduction.md there.

    Experiments that take hours are left out; the report has them if they were run, by name, into this folder. With
    `redraw` nothing is run: every folder that holds parts is judged and drawn again.
    """
    _check_scale(scale)
    out = Path(out)
    check_writable(out)
    out.mkdir(exist_ok=True)
    names = [name for name, experiment in EXPERIMENTS.items() if not experiment.heavy]
    if redraw:
        names = [name for name in EXPERIMENTS if holds_parts(out / name)]
    else:
        _say_heavy(scale, out)
    for name in names:
        Folder(out / name, f"reproduce {name}")
    for name in names:
        reproduce(name, scale, out / name, redraw)
    return report.write(out)


def _say_heavy(scale: str, out: Path) -> None:
    heavy = [name for name, experiment in EXPERIMENTS.items() if experiment.heavy]
    if heavy:
        Console(width=_WIDTH).print(
            f"Left out: {', '.join(heavy)} take hours; run each by name, `ewsg reproduce {heavy[0]} --scale {scale} "
            f"--out {out / heavy[0]}`.",
            highlight=False,
            soft_wrap=True,
        )


def _check_scale(scale: str) -> None:
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)


def _plain(value: Any) -> Any:
    """The same with None for numbers that are not finite, such as an end of an open interval: JSON has none."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
