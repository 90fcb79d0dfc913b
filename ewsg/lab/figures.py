"""The look of every figure: one style a method, readable in greyscale, saved as PNG and SVG."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .._core.optional import require

_RC: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.dpi": 130,
    "svg.hashsalt": "ewsg",
}


class Style(NamedTuple):
    """Colour, marker and line of one method; each alone tells it apart."""

    color: str
    marker: str
    line: Any


_STYLES = (
    Style("#1b1b1b", "o", "-"),
    Style("#d95f02", "s", "--"),
    Style("#0072b2", "^", "-."),
    Style("#009e73", "D", ":"),
    Style("#cc79a7", "v", (0, (5, 1))),
    Style("#7f7f7f", "P", (0, (3, 1, 1, 1))),
    Style("#a6361c", "X", "-"),
    Style("#56308c", "*", "--"),
    Style("#3a7d0a", "<", "-."),
    Style("#b8860b", ">", ":"),
)


def style(index: int) -> Style:
    """The style of the `index`-th method of a figure."""
    return _STYLES[index % len(_STYLES)]


def plain_numbers(axis: Any) -> None:
    """Labels of a logarithmic axis at 1, 2 and 5, as numbers."""
    ticker = require("matplotlib.ticker", extra="lab")
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


@contextlib.contextmanager
def drawing(path: Path, columns: int = 1, rows: int = 1, width: float = 4.3, height: float = 3.4) -> Iterator[Any]:
    """Yields (figure, axes), drawn without a screen; writes `path` as PNG and as SVG when the block ends."""
    matplotlib, canvas = (require(name, extra="lab") for name in ("matplotlib", "matplotlib.figure"))
    with matplotlib.rc_context(_RC):
        figure = canvas.Figure(figsize=(width * columns, height * rows), layout="constrained")
        yield figure, figure.subplots(rows, columns)
        figure.savefig(path.with_suffix(".png"))
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
