"""Saving a run while it is under way."""

import os
import time
import warnings
from collections.abc import Callable

from ..errors import InputError
from .run import Run

_SECONDS_BETWEEN_SAVES = 60.0
_LEAST_RATIO_OF_RUNNING_TO_SAVING = 20


class Autosave:
    """Writes a run to `path`, unless that is None. If that fails, a warning is given and the run continues."""

    def __init__(self, path: str | os.PathLike | None) -> None:
        self._path = path
        self._due = time.perf_counter() + _SECONDS_BETWEEN_SAVES

    def if_due(self, make_run: Callable[[], Run]) -> None:
        """Save every minute, or less often if saving would take more than a twentieth of the time."""
        began = time.perf_counter()
        if self._path is None or began < self._due:
            return
        self.save(make_run())
        now = time.perf_counter()
        self._due = now + max(_SECONDS_BETWEEN_SAVES, _LEAST_RATIO_OF_RUNNING_TO_SAVING * (now - began))

    def save(self, run: Run) -> None:
        """Save the run now."""
        if self._path is None:
            return
        try:
            run.save(self._path)
        except (OSError, InputError) as error:
            warnings.warn(
                f"the run could not be saved to {self._path} ({error}); it continues in memory: save the returned run "
                "elsewhere with run.save(path)",
                RuntimeWarning,
                stacklevel=4,
            )
