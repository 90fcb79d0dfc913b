"""Processes on chosen cores, where the system can do that; on others (macOS, Windows) it decides."""

import os
from collections.abc import Collection


def cores() -> list[int]:
    """The cores this process may use, in order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin(places: Collection[int]) -> None:
    """Keeps this process on the given cores, if that is possible."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, places)
