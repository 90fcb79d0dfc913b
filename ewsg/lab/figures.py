"""The look of every figure, saved as PNG and SVG; `styles.py` has the colour and marker of each method."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._core.optional import require
from ..result.plots.look import RC


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
    with matplotlib.rc_context(RC):
        figure = canvas.Figure(figsize=(width * columns, height * rows), layout="constrained")
        yield figure, figure.subplots(rows, columns)
        figure.savefig(path.with_suffix(".png"))
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
