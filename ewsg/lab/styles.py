"""One colour, marker and line for each method, in every figure of the project.

Methods of one family share a colour; a marker tells them apart, so that figures can be read in greyscale too.
"""

from typing import Any, NamedTuple


class Style(NamedTuple):
    """Colour, marker and line of one method."""

    color: str
    marker: str
    line: Any


_BLACK, _GREY, _GOLD = "#1b1b1b", "#7f7f7f", "#b8860b"
_ORANGE, _BLUE, _GREEN, _CYAN = "#d95f02", "#0072b2", "#009e73", "#2aa7c9"
_PINK, _BRICK, _PURPLE, _CRIMSON = "#cc79a7", "#a6361c", "#56308c", "#c2185b"
_DENSE, _DASH_DOTS = (0, (5, 1)), (0, (3, 1, 1, 1))

STYLES = {
    "full gradient": Style(_BLACK, "o", "-"),
    "best unbiased weights": Style(_BLACK, "D", ":"),
    "SGLD": Style(_GREY, "P", _DASH_DOTS),
    "SGBD": Style(_GREY, "v", "--"),
    "c-SGBD": Style(_GREY, "^", "-"),
    "SGLRW": Style(_GREY, "s", ":"),
    "pSGLD": Style(_GOLD, ">", ":"),
    "SGHMC": Style(_ORANGE, "s", "--"),
    "SGHMC, 10 data": Style(_ORANGE, "v", ":"),
    "SGHMC, BAOAB": Style(_ORANGE, "h", "-."),
    "CP-SGHMC": Style(_ORANGE, "X", _DASH_DOTS),
    "reshuffled, BAOAB": Style(_CYAN, "s", "--"),
    "SMS-UBU": Style(_CYAN, "d", _DENSE),
    "SGNHT": Style(_BRICK, "v", ":"),
    "SGNHT, per coordinate": Style(_BRICK, "^", "--"),
    "CCAdL": Style(_BRICK, "X", "-"),
    "covariance of the batch": Style(_GOLD, "X", "-."),
    "NOGIN": Style(_GOLD, "D", "-"),
    "EWSG": Style(_BLUE, "^", "-."),
    "EWSG, M = 9": Style(_BLUE, "v", "--"),
    "EWSG, M = 19": Style(_BLUE, "<", ":"),
    "EWSG, b = 200": Style(_BLUE, "D", "--"),
    "EWSG, b = 500": Style(_BLUE, "P", ":"),
    "EWSG, x = 0": Style(_CYAN, "v", "--"),
    "EWSG, x = 1": Style(_PURPLE, "<", ":"),
    "EWSG, next r = 0": Style(_GOLD, "h", _DENSE),
    "EWSG-VR as printed": Style(_PURPLE, "*", "--"),
    "EWSG-VR with bounded friction": Style(_PINK, "v", _DENSE),
    "paired": Style(_GREEN, "D", "-"),
    "paired, Euler": Style(_GREEN, "s", "-."),
    "paired, select": Style(_GREEN, "<", "--"),
    "paired, sequential": Style(_GREEN, "*", ":"),
    "plan": Style(_CRIMSON, "*", "-"),
    "control variate": Style(_PINK, "P", _DASH_DOTS),
    "control variate + paired": Style(_PINK, "D", "-"),
    "control variate + sequential": Style(_PINK, "*", ":"),
    "leverage": Style(_CRIMSON, "P", _DASH_DOTS),
    "leverage + sequential": Style(_CRIMSON, "D", "-"),
    "second order": Style(_BRICK, "P", _DASH_DOTS),
    "second order + sequential": Style(_BRICK, "D", "-"),
    "SVRG": Style(_PURPLE, "P", _DASH_DOTS),
    "SVRG + paired": Style(_PURPLE, "D", "-"),
    "SVRG-LD": Style(_PURPLE, "X", ":"),
    "FlyMC": Style(_CRIMSON, "o", "-"),
    "FlyMC from the mode": Style(_CRIMSON, "s", "--"),
    "FlyMC, bound by datum": Style(_CRIMSON, "v", ":"),
    "random-walk Metropolis": Style(_GREY, "*", _DENSE),
}
"""By method."""

SAME = {
    "SGHMC, 20 data": "SGHMC",
    "M = 0 (SGHMC)": "SGHMC",
    "uniform weights": "SGHMC",
    "EWSG, M = 1": "EWSG",
    "EWSG, 2 x 10 data": "EWSG",
    "EWSG, b = 100": "EWSG",
    "EWSG's weights": "EWSG",
    "EWSG's weights, mean and 95 % interval": "EWSG",
    "x = √h γ r/σ (recommended)": "EWSG",
    "x = 0": "EWSG, x = 0",
    "x = 1": "EWSG, x = 1",
    "x = (−1 + hγ) r/(σ√h)": "EWSG, next r = 0",
    "M = 1": "EWSG",
    "M = 9": "EWSG, M = 9",
    "M = 19": "EWSG, M = 19",
    "paired (ours)": "paired",
    "paired, 2 x 10 data": "paired",
}
"""Other names of a method, as used in legends."""

_OTHERS = (
    Style("#444444", "p", (0, (1, 1))),
    Style("#8c6d31", "8", (0, (4, 2))),
    Style("#637939", "p", (0, (6, 2))),
    Style("#ad494a", "8", (0, (2, 2))),
    Style("#5254a3", "p", (0, (3, 3))),
    Style("#17807e", "8", (0, (5, 3))),
)


def style(name: str, number: int = 0) -> Style:
    """The style of a method; of one that is not in the table, such as the user's own, the style `number`."""
    known = STYLES.get(SAME.get(name, name))
    return known or _OTHERS[number % len(_OTHERS)]


def is_known(name: str) -> bool:
    """Whether a label stands for a method of the table."""
    return SAME.get(name, name) in STYLES
