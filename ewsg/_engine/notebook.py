"""A progress bar in a notebook: one output of the cell, updated through IPython itself, without widgets."""

import html
import importlib
import sys
import time
from typing import Any

_SECONDS_BETWEEN_UPDATES = 0.25


def has_kernel() -> bool:
    """Whether this process is the kernel of a notebook. IPython is not imported: in a kernel it already is."""
    ipython = sys.modules.get("IPython")
    return hasattr(ipython.get_ipython() if ipython is not None else None, "kernel")


class NotebookBar:
    """The bar, an object that a notebook displays as HTML, and as text where it cannot.

    How far a search has come nobody knows: as long as `done` is 0, the bar only shows that something happens.

    Args:
        label: the word before the bar.
        total: the value of `done` at the end.
    """

    def __init__(self, label: str, total: int) -> None:
        self._label, self._total = label, total
        self._done, self._text, self._stopped = 0, "", False
        self._began = self._updated = time.perf_counter()
        self._first: tuple[float, int] | None = None
        self._handle: Any = None

    def start(self) -> None:
        """Display the bar as an output of the current cell."""
        self._handle = importlib.import_module("IPython.display").display(self, display_id=True)

    def update(self, done: int, text: str) -> None:
        """Change the bar, which is shown at most four times per second."""
        self._done, self._text = done, text
        if self._first is None and done:
            self._first = time.perf_counter(), done
        if time.perf_counter() - self._updated > _SECONDS_BETWEEN_UPDATES:
            self._show()

    def stop(self) -> None:
        """Show the last state, at rest."""
        self._stopped = True
        self._show()

    def _show(self) -> None:
        if self._handle is not None:
            self._updated = time.perf_counter()
            self._handle.update(self)

    @property
    def _share(self) -> float | None:
        """The share that is done, if it is known."""
        return min(1.0, self._done / self._total) if self._done else None

    def _words(self) -> list[str]:
        """Percentage, time, and the latest diagnostics."""
        words = [] if self._share is None else [f"{self._share:.0%}"]
        left = self._seconds_left()
        if self._stopped or left is None:
            words.append(f"{_clock(time.perf_counter() - self._began)} elapsed")
        else:
            words.append(f"{_clock(left)} left")
        return [*words, self._text] if self._text else words

    def _seconds_left(self) -> float | None:
        """From the speed since the first update, before which the loop was compiled; None if it is not known yet."""
        if self._first is None or self._done == self._first[1]:
            return None
        seconds_per_step = (time.perf_counter() - self._first[0]) / (self._done - self._first[1])
        return seconds_per_step * max(0, self._total - self._done)

    def __repr__(self) -> str:
        return "  ".join([self._label, *self._words()])

    def _repr_html_(self) -> str:
        share = self._share
        bar = "" if share is None else f' value="{share:.4f}"'
        shown = "" if self._stopped and share is None else f'<progress style="width:16em"{bar}></progress>'
        words = " · ".join(html.escape(word) for word in self._words())
        return f'<div style="font-family:monospace">{html.escape(self._label)} {shown} {words}</div>'


def _clock(seconds: float) -> str:
    """Hours, minutes and seconds: 0:01:05."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
