"""A progress bar, on a terminal or in a notebook, for runs that take more than two seconds."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from .notebook import NotebookBar, has_kernel

_QUIET_SECONDS = 2.0


@contextlib.contextmanager
def bar(total: int, enabled: bool | None, label: str = "sampling") -> Iterator[Callable[[int, str], None]]:
    """Yield `update(done, text)`. `enabled=None` shows the bar on a terminal and in a notebook; True shows it anywhere.

    Rich's own bar in a notebook needs ipywidgets; `NotebookBar` needs nothing.
    """
    in_notebook = has_kernel()
    if enabled is False or (enabled is None and not in_notebook and not sys.stderr.isatty()):
        yield lambda done, text: None
        return
    shown_by = NotebookBar(label, total) if in_notebook else _TerminalBar(label, total)
    began = time.perf_counter()
    shown = False

    def update(done: int, text: str) -> None:
        nonlocal shown
        shown_by.update(done, text)
        if not shown and time.perf_counter() - began > _QUIET_SECONDS:
            shown_by.start()
            shown = True

    try:
        yield update
    finally:
        if shown:
            shown_by.stop()


class _TerminalBar:
    """Rich's bar, on stderr."""

    def __init__(self, label: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress: Any = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}"),
            console=Console(stderr=True),
            transient=False,
        )
        self._task = self._progress.add_task(label, total=total, text="")
        self.start, self.stop = self._progress.start, self._progress.stop

    def update(self, done: int, text: str) -> None:
        self._progress.update(self._task, completed=done, text=text)
