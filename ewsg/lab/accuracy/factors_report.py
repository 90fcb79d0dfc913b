"""The tables and the figures of `ewsg bench factors`."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from .. import figures
from ..styles import style
from .report import show

FACTORS = (
    ("planned coordinates", ("own", "SGHMC, BAOAB"), ("planned", "SGHMC, BAOAB")),
    ("pairs", ("planned", "SGHMC, BAOAB"), ("planned", "paired, sequential")),
    ("a control variate", ("planned", "SGHMC, BAOAB"), ("planned", "control variate")),
    ("pairs, with a control variate", ("planned", "control variate"), ("planned", "control variate + sequential")),
    ("leverage, with a control variate", ("planned", "control variate"), ("planned", "leverage")),
    ("pairs, with control variate and leverage", ("planned", "leverage"), ("planned", "leverage + sequential")),
    ("second order in place of leverage", ("planned", "leverage"), ("planned", "second order")),
    ("pairs, with the second order", ("planned", "second order"), ("planned", "second order + sequential")),
    ("all but second order, over SGHMC", ("own", "SGHMC, BAOAB"), ("planned", "leverage + sequential")),
)
"""What is added, without it, with it: each (coordinates, method)."""
SHOWN = (
    ("own", "SGHMC, BAOAB"),
    ("planned", "full gradient"),
    ("planned", "SGHMC"),
    ("planned", "EWSG"),
    ("planned", "paired, sequential"),
    ("planned", "control variate"),
    ("planned", "control variate + sequential"),
    ("planned", "leverage"),
    ("planned", "leverage + sequential"),
)
"""(coordinates, method) in the figures; the tables have all of them."""
Rows = Sequence[dict[str, Any]]


def error(rows: Rows, problem: str, coordinates: str, method: str) -> float:
    """Error of one chain after the whole budget, mean over seeds; NaN without a number."""
    row = _row(rows, problem, coordinates, method)
    return math.nan if row is None else float(np.mean([seed["error"][-1] for seed in row["seeds"]]))


def _row(rows: Rows, problem: str, coordinates: str, method: str) -> dict[str, Any] | None:
    """The row, if every seed has numbers."""
    wanted = {"problem": problem, "coordinates": coordinates, "method": method}
    for row in rows:
        if wanted.items() <= row.items() and row["seeds"] and all("error" in seed for seed in row["seeds"]):
            return row
    return None


def tables(rows: Rows, console: Console) -> str:
    """Prints the errors in either kind of coordinates, and what each factor buys; returns them as Markdown."""
    names = list(dict.fromkeys(row["problem"] for row in rows))
    text = []
    for coordinates in ("own", "planned"):
        methods = dict.fromkeys(row["method"] for row in rows if row["coordinates"] == coordinates)
        lines = [
            [method, *(_form(error(rows, name, coordinates, method), "{:.3f}") for name in names)] for method in methods
        ]
        title = f"Error of one chain, every method at its best step and friction, {coordinates} coordinates"
        text += show(title, ["method", *names], lines, console)
    lines = []
    for factor, without, added in FACTORS:
        ratios = [error(rows, name, *without) / error(rows, name, *added) for name in names]
        known = [ratio for ratio in ratios if not math.isnan(ratio)]
        if known:
            overall = math.exp(float(np.mean(np.log(known))))
            lines.append([factor, *(_form(ratio, "{:.2f}") for ratio in ratios), f"{overall:.2f}"])
    title = "What each factor buys: error without it over error with it"
    return "\n".join(text + show(title, ["method", *names, "geometric mean"], lines, console))


def _form(number: float, form: str) -> str:
    return "-" if math.isnan(number) else form.format(number)


def draw(rows: Rows, path: Path) -> None:
    """Error against datum gradients, and against seconds of one core, one panel per problem."""
    _panels(rows, path, "datum gradients / n (data passes)", lambda row, seed: 1 / row["num_data"])
    seconds = path.with_name(f"{path.name}-seconds")
    _panels(rows, seconds, "seconds per chain", lambda row, seed: _seconds_per_gradient(seed))


def _seconds_per_gradient(seed: dict[str, Any]) -> float:
    return seed["microseconds_per_step"] * seed["steps"] / 1e6 / seed["gradients_per_chain"]


def _panels(rows: Rows, path: Path, label: str, unit: Callable[[dict[str, Any], dict[str, Any]], float]) -> None:
    names = list(dict.fromkeys(row["problem"] for row in rows))
    columns = min(3, len(names))
    with figures.drawing(path, columns, math.ceil(len(names) / columns), height=3.0) as (figure, axes):
        panels, labels = np.atleast_1d(axes).ravel(), {}
        for panel, name in zip(panels, names, strict=False):
            for coordinates, method in SHOWN:
                row = _row(rows, name, coordinates, method)
                if row is None:
                    continue
                color, marker, line = style(method)
                cost = np.mean([np.array(seed["cost"]) * unit(row, seed) for seed in row["seeds"]], axis=0)
                curve = np.mean([seed["error"] for seed in row["seeds"]], axis=0)
                look = {"color": color, "marker": marker, "linestyle": line, "markersize": 3.5, "linewidth": 1.2}
                handle = panel.loglog(cost, curve, **look)[0]
                labels.setdefault(f"{method}{', own coordinates' if coordinates == 'own' else ''}", handle)
            panel.set(title=name, xlabel=label)
            for axis in (panel.xaxis, panel.yaxis):
                figures.plain_numbers(axis)
        for panel in panels[::columns]:
            panel.set_ylabel("error of one chain (posterior sd)")
        for panel in panels[len(names) :]:
            panel.set_axis_off()
        figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3, fontsize=8.5)
