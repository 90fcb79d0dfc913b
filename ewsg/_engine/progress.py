"""A progress bar, on a terminal, for runs that take more than two seconds."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_QUIET_SECONDS = 2.0


@contextlib.contextmanager
def bar(total: int, enabled: bool | None, label: str = "sampling") -> Iterator[Callable[[int, str], None]]:
    """Yield `update(done, text)`. `enabled=None` shows the bar on a terminal only; True shows it anywhere."""
    if enabled is False or (enabled is None and not sys.stderr.isatty()):
        yield lambda done, text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
        console=Console(stderr=True),
        transient=False,
    )
    task = progress.add_task(label, total=total, text="")
    began = time.perf_counter()
    shown = False

    def update(done: int, text: str) -> None:
        nonlocal shown
        if not shown and time.perf_counter() - began > _QUIET_SECONDS:
            progress.start()
            shown = True
        progress.update(task, completed=done, text=text)

    try:
        yield update
    finally:
        if shown:
            progress.stop()
