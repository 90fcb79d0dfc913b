"""What the benchmarks ask of the machine: cores to stay on, and the most memory a process has held.

Where the system has no way to say it (macOS has no affinity, Windows neither), a process stays where it is put.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path


def cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def stay_on(chosen: Iterable[int]) -> None:
    """Keep this process on these cores, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(chosen))


def peak_bytes() -> float:
    """The most memory that this process has held; not a number where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():  # of this process alone: getrusage inherits the peak of the one that started it
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1])  # pyright: ignore[reportOptionalSubscript]
    try:
        import resource
    except ImportError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
