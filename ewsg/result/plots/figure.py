"""`run.plot()`: all panels of a run on one figure; and each panel as a drawing of its own, for reports."""

import functools
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._core.optional import require
from ...errors import InputError
from ..estimates import Estimates, estimates
from . import panels
from .look import RUN_RC
from .shown import reason_for_none, shown, worst_pair

if TYPE_CHECKING:
    from ..run import Run

_WIDTH, _HEIGHT = 4.2, 2.6
"""Of a panel, in inches."""
_FEW_PANELS, _FEW_COLUMNS, _MANY_COLUMNS = 6, 2, 4


class Drawing(NamedTuple):
    """A panel that has not been drawn yet.

    Attributes:
        kind: "marginal", "trace", "time" or "pair".
        says: what it shows, for those who cannot see it.
        draw: draws it on Matplotlib's axes.
    """

    kind: str
    says: str
    draw: Callable[[Any], None]

    def svg(self) -> str:
        """The panel as an SVG document with a transparent background."""
        matplotlib, canvas = (require(name, extra="report") for name in ("matplotlib", "matplotlib.figure"))
        with matplotlib.rc_context(RUN_RC):
            figure = canvas.Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
            self.draw(figure.add_subplot())
            file = io.StringIO()
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        return file.getvalue()


def plot(run: "Run", parameters: Sequence[str] | None = None) -> Any:
    """One figure of a run; raises InputError if it has no draws to show.

    Args:
        run: the run.
        parameters: the names of the parameters to show; None shows all of a few, and of many the first and those that
            mix worst.
    """
    matplotlib, canvas = (require(name, extra="report") for name in ("matplotlib", "matplotlib.figure"))
    reason = reason_for_none(run)
    if reason is not None:
        raise InputError(reason)
    found = drawings(run, estimates(run), parameters)
    columns = _FEW_COLUMNS if len(found) <= _FEW_PANELS else _MANY_COLUMNS
    rows = -(-len(found) // columns)
    with matplotlib.rc_context(RUN_RC):
        figure = canvas.Figure(figsize=(_WIDTH * columns, _HEIGHT * rows), layout="constrained")
        for place, drawing in enumerate(found, start=1):
            axes = figure.add_subplot(rows, columns, place)
            axes.set_label(drawing.kind)
            drawing.draw(axes)
    figure._repr_png_ = functools.partial(_png, figure)
    return figure


def _png(figure: Any) -> bytes:
    """For notebooks, which display a figure without pyplot only if it says how."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def drawings(run: "Run", found: Estimates, parameters: Sequence[str] | None = None) -> list[Drawing]:
    """The panels of a run: a marginal and a trace per parameter, the worst pair, the diagnostics over time."""
    if not run.ok.any():
        return []
    chosen = shown(run, found, parameters) if reason_for_none(run) is None else []
    made = []
    for one in chosen:
        name = one.mixed.name
        made.append(Drawing("marginal", f"Marginal of {name}", lambda axes, one=one: panels.marginal(axes, one)))
        made.append(Drawing("trace", f"Traces of {name}", lambda axes, one=one: panels.trace(axes, one)))
    if any(panels.has(run, name) for name in panels.TEMPERATURES):
        made.append(Drawing("time", "Temperatures over time", lambda axes: panels.temperatures(axes, run)))
    if panels.has(run, "noise_ratio"):
        made.append(Drawing("time", "Noise ratio over time", lambda axes: panels.noise(axes, run)))
    pair = worst_pair(run, found) if chosen else []
    if pair:
        names = " and ".join(one.mixed.name for one in pair)
        made.append(Drawing("pair", f"Draws of {names}", lambda axes: panels.pair(axes, *pair)))
    return made
