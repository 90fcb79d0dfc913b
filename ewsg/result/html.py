"""How a notebook shows a run and its summary: HTML in the colours of the notebook, be it light or dark."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .columns import MEANINGS, diagnostic, formatted

if TYPE_CHECKING:
    from .run import Run
    from .summary import Summary

WARNING_COLOUR, GOOD_COLOUR = "#d95f02", "#009e73"
"""Of the lines beside sentences, seen on white and on black."""

_STYLE = f"""<style>
.ewsg-run {{ color: inherit; line-height: 1.5; max-width: 100%; overflow-x: auto; }}
.ewsg-run p {{ margin: 0.3em 0; max-width: 60em; }}
.ewsg-run .ewsg-warning, .ewsg-run .ewsg-good {{ border-left: 4px solid {WARNING_COLOUR}; padding-left: 0.6em; }}
.ewsg-run .ewsg-good {{ border-color: {GOOD_COLOUR}; }}
.ewsg-run table {{ border-collapse: collapse; margin: 0.5em 0; color: inherit; font-variant-numeric: tabular-nums; }}
.ewsg-run th, .ewsg-run td {{ padding: 0.1em 0.8em 0.1em 0; border: 0; text-align: right; white-space: nowrap; }}
.ewsg-run thead tr {{ border-bottom: 1px solid currentColor; }}
.ewsg-run tr > :first-child {{ text-align: left; }}
.ewsg-run tbody th {{ font-weight: inherit; }}
</style>"""


def summary_html(summary: "Summary") -> str:
    """The summary as its text has it: title, verdict, table, diagnostics, warnings."""
    parts = [f"<p><strong>{escape(summary.title)}</strong></p>"]
    if summary.verdict:
        parts.append(_sentence(summary.verdict, summary.verdict in summary.warnings))
    if summary.parameters:
        parts.append(parameter_table(summary.parameters))
    if summary.hidden:
        parts.append(f"<p>... and {summary.hidden} more parameters</p>")
    if summary.extreme:
        parts.append(f"<p>{escape(summary.extreme)}</p>")
    numbers = ", ".join(diagnostic(name, value) for name, value in summary.diagnostics.items())
    parts.append(f"<p>{escape(numbers)}</p>")
    parts += [_sentence(sentence, True) for sentence in summary.warnings if sentence != summary.verdict]
    return _boxed(parts)


def run_html(run: "Run") -> str:
    """A few lines on a run that take no time: its draws are not looked at."""
    parts = [f"<p><strong>{escape(repr(run))}</strong></p>"]
    if run.verdict is not None:
        parts.append(_sentence(str(run.verdict), not run.verdict.fine))
    failed = int((~run.ok).sum())
    if failed:
        parts.append(_sentence(f"{failed} of {run.status.size} chains failed and are left out of all results.", True))
    ways = ("run.summary()", "run.plot()", "run.draws", "run.stats")
    parts.append(f"<p>{' · '.join(f'<code>{way}</code>' for way in ways)}</p>")
    return _boxed(parts)


def parameter_table(parameters: Mapping[str, np.ndarray]) -> str:
    """The table of the parameters, each column with what it is as a tooltip."""
    columns = list(parameters)
    head = (f'<th scope="col" title="{escape(MEANINGS.get(name, ""))}">{escape(name)}</th>' for name in columns)
    rows = (
        _row(formatted(column, value) for column, value in zip(columns, row, strict=True))
        for row in zip(*parameters.values(), strict=True)
    )
    return f"<table><thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(cells: Iterable[str]) -> str:
    first, *others = (escape(cell) for cell in cells)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


def _sentence(text: str, is_warning: bool) -> str:
    return f'<p class="{"ewsg-warning" if is_warning else "ewsg-good"}">{escape(text)}</p>'


def _boxed(parts: list[str]) -> str:
    return f'<div class="ewsg-run">{_STYLE}{"".join(parts)}</div>'
