"""The figures of `blr-covertype`."""

from pathlib import Path
from typing import Any

import numpy as np

from ... import figures
from ...panels import Curve, Panel, draw, plain
from ...styles import style
from ..claims import interval

_LOWEST, _HIGHEST = -1.0, -0.5
_PUBLISHED = -0.525
_FACES = {"printed": "white", "tuned": None}
"""The inside of a marker: hollow for printed steps, in the method's colour for tuned ones."""

Repeats = list[dict[str, Any]]


def curves(path: Path, rows: dict[str, Repeats]) -> None:
    """Accuracy and log likelihood against data passes."""
    panels = []
    for key, title, unit in (
        ("accuracy", "Test accuracy", "correct predictions (%)"),
        ("log_likelihood", "Test log likelihood", "log likelihood per test datum (nats)"),
    ):
        shown = {}
        for name, repeats in rows.items():
            kept = [row["value"]["curve"] for row in repeats if row["value"]]
            found = np.array([curve[key] for curve in kept])
            if len(kept) == len(repeats):
                shown[name] = Curve(kept[0]["passes"], found.mean(0), found.min(0), found.max(0))
            else:
                shown[name] = Curve([], [])
        panels.append(Panel(shown, title, "data passes", unit, "semilogx"))
    draw(path, panels)


def errors(path: Path, numbers: dict[str, Any]) -> None:
    """Error of posterior mean and sd, printed and tuned steps side by side."""
    names = list(numbers["tuned"])
    with figures.drawing(path, columns=2, width=4.8) as (figure, axes):
        for axis, key, label, right in (
            (axes[0], "mean_error", "error of the mean (posterior sd)", None),
            (axes[1], "sd_ratio", "posterior sd / reference sd", 1.0),
        ):
            for number, kind in enumerate(_FACES):
                for place, name in enumerate(names):
                    _point(axis, place + 0.2 * number - 0.1, name, kind, _values(numbers[kind][name], key))
            if right is not None:
                axis.axhline(right, color="0.6", linewidth=1, label="right")
            axis.set_xticks(range(len(names)), [name.replace(" (ours)", "\n(ours)") for name in names])
            axis.set(ylabel=label, title="Mean" if right is None else "Standard deviation", yscale="log")
            plain(axis)
        for kind, face in _FACES.items():
            axes[1].plot([], [], "o", color="0.3", markerfacecolor=face, label=f"{kind} step")
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)


def _values(repeats: Repeats, key: str) -> list[float]:
    """A number of each repeat; none at all if chains diverged."""
    found = [row["value"][key] for row in repeats if row["value"]]
    return found if len(found) == len(repeats) else []


def _point(axis: Any, place: float, method: str, kind: str, values: list[float]) -> None:
    """The mean over repeats, with an interval that stays positive on a logarithmic axis; nothing without values."""
    if not values:
        return
    found = interval(values)
    low, high = (bound if np.isfinite(bound) else found.value for bound in (found.low, found.high))
    bars = [[min(found.value - low, 0.9 * found.value)], [high - found.value]]
    color, marker, _ = style(method)
    look = {"fmt": marker, "color": color, "markerfacecolor": _FACES[kind], "capsize": 3, "markersize": 5}
    axis.errorbar([place], [found.value], yerr=bars, **look)


def scalings(path: Path, rows: list[dict[str, Any]]) -> None:
    """Log likelihood at the printed steps, by preparation and units."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    preparations = list(dict.fromkeys(row["preparation"] for row in rows))
    with figures.drawing(path, columns=2, width=4.8) as (figure, axes):
        for axis, units in zip(axes, ("sum", "mean"), strict=True):
            for number, method in enumerate(methods):
                color, marker, line = style(method)
                found = [row for row in rows if (row["method"], row["units"]) == (method, units)]
                heights = [max(_LOWEST, row["value"]["log_likelihood"]) if row["value"] else _LOWEST for row in found]
                places = [preparations.index(row["preparation"]) + 0.1 * (number - 1.5) for row in found]
                look = {"color": color, "marker": marker, "linestyle": line, "linewidth": 0.8, "label": method}
                axis.plot(places, heights, **look)
            axis.axhline(_PUBLISHED, color="0.6", linewidth=1, label="Table 1 (−0.523 to −0.526)")
            axis.set_xticks(range(len(preparations)), preparations)
            axis.set(title=f"Step sizes in {units} units", ylabel="log likelihood per test datum (nats)")
            axis.set_ylim(_LOWEST - 0.02, _HIGHEST)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)
