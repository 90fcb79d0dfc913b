"""Line plots with error bands, one style per method; used by all experiments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import figures
from .styles import is_known, style

_LABEL_ROOM = 0.08
_MOST_TICKS = 8


class Curve(NamedTuple):
    """A line, with the band that the repeats span."""

    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None


class Panel(NamedTuple):
    """One pair of axes.

    Attributes:
        curves: by their labels in the legend, which determine the style (`styles.py`).
        title: of the panel.
        xlabel: with the unit.
        ylabel: with the unit.
        scale: "loglog", "semilogy", "semilogx" or "linear".
        lines: further lines by label: constants, or (x, y) pairs; "METHOD (exact)" has the colour of the method.
        limits: of the vertical axis.
    """

    curves: Mapping[str, Curve]
    title: str
    xlabel: str
    ylabel: str
    scale: str = "semilogy"
    lines: Mapping[str, Any] | None = None
    limits: tuple[float | None, float | None] | None = None


def draw(path: Path, panels: Sequence[Panel], width: float = 4.6, height: float = 3.6) -> None:
    """Writes the panels side by side, with one legend for all, as PNG and SVG."""
    with figures.drawing(path, columns=len(panels), width=width, height=height) as (figure, axes):
        for axis, panel in zip(np.atleast_1d(axes), panels, strict=True):
            _fill(axis, panel)
        labels: dict[str, Any] = {}
        for axis in np.atleast_1d(axes):
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                labels.setdefault(label, handle)
        columns = 3 if len(panels) > 1 else 2
        figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=columns, fontsize=8.5)


def _fill(axis: Any, panel: Panel) -> None:
    for number, (label, curve) in enumerate(panel.curves.items()):
        color, marker, line = style(label, number)
        if np.size(curve.x) == 0:
            continue
        every = max(1, np.size(curve.x) // 10)
        look = {"color": color, "marker": marker, "linestyle": line, "markersize": 4, "linewidth": 1.4}
        axis.plot(curve.x, curve.y, markevery=(number % every, every), label=label, **look)
        if curve.low is not None and curve.high is not None:
            axis.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.15, linewidth=0)
    for k, (label, value) in enumerate((panel.lines or {}).items()):
        name = label.removesuffix(" (exact)")
        color = style(name).color if is_known(name) else "0.55"
        look = {"color": color, "linewidth": 1.0, "linestyle": ("-", "--", ":")[k % 3], "label": label}
        axis.axhline(value, **look) if np.ndim(value) == 0 else axis.plot(*value, **look)
    axis.set_xscale("log" if panel.scale in ("loglog", "semilogx") else "linear")
    axis.set_yscale("log" if panel.scale in ("loglog", "semilogy") else "linear")
    places = np.unique(np.concatenate([np.ravel(curve.x) for curve in panel.curves.values()]))
    if axis.get_xscale() == "log" and 0 < len(places) <= _MOST_TICKS:
        axis.set_xticks(places, _labels(places))
        axis.minorticks_off()
    plain(axis)
    axis.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    if panel.limits is not None:
        axis.set_ylim(*panel.limits)


def _labels(places: np.ndarray) -> list[str]:
    """Tick labels of a logarithmic axis, without those that would touch the previous one."""
    room = _LABEL_ROOM * np.log(places[-1] / places[0])
    labels, last = [], -np.inf
    for value in places:
        labels.append(f"{value:g}" if np.log(value) - last > room else "")
        last = np.log(value) if labels[-1] else last
    return labels


def plain(axis: Any) -> None:
    """Ordinary numbers on a logarithmic vertical axis of less than two decades."""
    low, high = axis.get_ylim()
    if axis.get_yscale() == "log" and high < 100 * low:
        shown = "23456789" if high < 3 * low else "2346" if high < 10 * low else "25"
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in shown else "")
