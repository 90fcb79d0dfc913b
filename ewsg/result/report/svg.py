"""Matplotlib's SVG as part of a page: no addresses, no names that clash, and colours that follow those of the page."""

import re
from html import escape

from ..plots.look import INK, ON_BLACK

_LEFT_OUT = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r"<style.*?</style>", re.DOTALL),  # it would apply to the whole page, which has the same
    re.compile(r'\sxmlns(?::xlink)?="[^"]*"'),
)


def inline(document: str, name: str, says: str) -> str:
    """An `<svg>` element for a page.

    Args:
        document: an SVG document of Matplotlib.
        name: of this figure, unlike that of any other of the page.
        says: what the figure shows, for those who cannot see it.
    """
    svg = document[document.index("<svg") :]
    for pattern in _LEFT_OUT:
        svg = pattern.sub("", svg)
    svg = svg.replace("xlink:href", "href").replace(INK, "currentColor")
    for colour in ON_BLACK:
        svg = svg.replace(colour, f"var({variable(colour)})")
    svg = re.sub(r' d="[^"]*"', _rounded, svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(r'\sid="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
    view = re.search(r'viewBox="[^"]*"', svg)
    assert view is not None
    body = svg[svg.index(">") + 1 :].strip()
    return f'<svg {view[0]} role="img" aria-label="{escape(says)}">{body}'


def variable(colour: str) -> str:
    """The name of the colour in the style of the page, which has two values for it."""
    return f"--ink-{colour[1:]}"


def _rounded(path: re.Match[str]) -> str:
    """Coordinates to a hundredth of a point, in one line."""
    return " " + " ".join(re.sub(r"(\.\d\d)\d+", r"\1", path[0]).split())
