"""The look of every figure: colours and settings of Matplotlib, for runs, the lab and the paper's experiments."""

from typing import Any

BLACK, GREY, GOLD = "#1b1b1b", "#7f7f7f", "#b8860b"
ORANGE, BLUE, GREEN, CYAN = "#d95f02", "#0072b2", "#009e73", "#2aa7c9"
PINK, BRICK, PURPLE, CRIMSON = "#cc79a7", "#a6361c", "#56308c", "#c2185b"

INK = BLACK
"""Axes, words and right values. A report replaces it by the colour of its text, be that dark or light."""
ON_BLACK = {
    BLUE: "#56b4e9",
    ORANGE: "#f2994a",
    GREEN: "#3ecf9f",
    PINK: "#e39ac4",
    GOLD: "#d9b03c",
    CYAN: "#7fd6ee",
    CRIMSON: "#f06595",
    GREY: "#a9a9a9",
}
"""What a report puts in the place of the colours of a figure where its page is dark."""
CHAINS = (BLUE, ORANGE, GREEN, PINK, GOLD, CYAN, CRIMSON, GREY)
"""One colour per chain."""

RC: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "figure.dpi": 130,
    "svg.hashsalt": "ewsg",
}
"""Settings of all figures."""

RUN_RC: Any = (
    RC
    | {
        "font.size": 9,
        "font.family": "sans-serif",
        "text.usetex": False,
        "axes.titlesize": 9.5,
        "axes.labelsize": 8.5,
        "figure.dpi": 100,
        "axes.facecolor": "white",
        "figure.facecolor": "white",
        "savefig.facecolor": "auto",
        "axes.prop_cycle": "cycler('color', " + repr(list(CHAINS)) + ")",
        "axes.grid": False,
        "legend.fontsize": 8.5,
        "svg.fonttype": "path",
    }
    | dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
)
"""Settings of the figures of a run, whatever style the user has chosen for their own."""
