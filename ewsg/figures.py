"""The look of every figure: one style a method, readable in greyscale, saved as PNG and SVG."""

from pathlib import Path
from typing import Any, NamedTuple

_RC = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.dpi": 130,
    "savefig.bbox": "tight",
    "svg.hashsalt": "ewsg",
}


class Style(NamedTuple):
    """Colour, marker and line of one method; each alone tells it apart."""

    color: str
    marker: str
    line: str


_STYLES = (
    Style("#1b1b1b", "o", "-"),
    Style("#d95f02", "s", "--"),
    Style("#0072b2", "^", "-."),
    Style("#009e73", "D", ":"),
    Style("#cc79a7", "v", (0, (5, 1))),  # type: ignore[arg-type]
    Style("#7f7f7f", "P", (0, (3, 1, 1, 1))),  # type: ignore[arg-type]
)


def style(index: int) -> Style:
    """The style of the `index`-th method of a figure."""
    return _STYLES[index % len(_STYLES)]


def new(columns: int = 1, rows: int = 1, width: float = 4.2, height: float = 3.3) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a screen."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns)


def save(figure: Any, path: Path) -> list[Path]:
    """Writes `path` as PNG and as SVG; returns both."""
    import matplotlib

    paths = [path.with_suffix(".png"), path.with_suffix(".svg")]
    with matplotlib.rc_context(_RC):
        for target in paths:
            figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    return paths
