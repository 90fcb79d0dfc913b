"""One colour, marker and line for each method, in every figure of the project.

Methods of one family share a colour; a marker tells them apart, so that figures can be read in greyscale too.
"""

from typing import Any, NamedTuple

from ..result.plots.look import BLACK, BLUE, BRICK, CRIMSON, CYAN, GOLD, GREEN, GREY, ORANGE, PINK, PURPLE


class Style(NamedTuple):
    """Colour, marker and line of one method."""

    color: str
    marker: str
    line: Any


_DENSE, _DASH_DOTS = (0, (5, 1)), (0, (3, 1, 1, 1))

STYLES = {
    "full gradient": Style(BLACK, "o", "-"),
    "best unbiased weights": Style(BLACK, "D", ":"),
    "SGLD": Style(GREY, "P", _DASH_DOTS),
    "SGBD": Style(GREY, "v", "--"),
    "c-SGBD": Style(GREY, "^", "-"),
    "SGLRW": Style(GREY, "s", ":"),
    "pSGLD": Style(GOLD, ">", ":"),
    "SGHMC": Style(ORANGE, "s", "--"),
    "SGHMC, 10 data": Style(ORANGE, "v", ":"),
    "SGHMC, BAOAB": Style(ORANGE, "h", "-."),
    "CP-SGHMC": Style(ORANGE, "X", _DASH_DOTS),
    "reshuffled, BAOAB": Style(CYAN, "s", "--"),
    "SMS-UBU": Style(CYAN, "d", _DENSE),
    "SGNHT": Style(BRICK, "v", ":"),
    "SGNHT, per coordinate": Style(BRICK, "^", "--"),
    "CCAdL": Style(BRICK, "X", "-"),
    "covariance of the batch": Style(GOLD, "X", "-."),
    "NOGIN": Style(GOLD, "D", "-"),
    "EWSG": Style(BLUE, "^", "-."),
    "EWSG, M = 9": Style(BLUE, "v", "--"),
    "EWSG, M = 19": Style(BLUE, "<", ":"),
    "EWSG, b = 200": Style(BLUE, "D", "--"),
    "EWSG, b = 500": Style(BLUE, "P", ":"),
    "EWSG, x = 0": Style(CYAN, "v", "--"),
    "EWSG, x = 1": Style(PURPLE, "<", ":"),
    "EWSG, next r = 0": Style(GOLD, "h", _DENSE),
    "EWSG-VR as printed": Style(PURPLE, "*", "--"),
    "EWSG-VR with bounded friction": Style(PINK, "v", _DENSE),
    "paired": Style(GREEN, "D", "-"),
    "paired, Euler": Style(GREEN, "s", "-."),
    "paired, select": Style(GREEN, "<", "--"),
    "paired, sequential": Style(GREEN, "*", ":"),
    "plan": Style(CRIMSON, "*", "-"),
    "control variate": Style(PINK, "P", _DASH_DOTS),
    "control variate + paired": Style(PINK, "D", "-"),
    "control variate + sequential": Style(PINK, "*", ":"),
    "leverage": Style(CRIMSON, "P", _DASH_DOTS),
    "leverage + sequential": Style(CRIMSON, "D", "-"),
    "second order": Style(BRICK, "P", _DASH_DOTS),
    "second order + sequential": Style(BRICK, "D", "-"),
    "SVRG": Style(PURPLE, "P", _DASH_DOTS),
    "SVRG + paired": Style(PURPLE, "D", "-"),
    "SVRG-LD": Style(PURPLE, "X", ":"),
    "FlyMC": Style(CRIMSON, "o", "-"),
    "FlyMC from the mode": Style(CRIMSON, "s", "--"),
    "FlyMC, bound by datum": Style(CRIMSON, "v", ":"),
    "random-walk Metropolis": Style(GREY, "*", _DENSE),
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
