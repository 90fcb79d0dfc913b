"""The benchmarks' view of the machine: the cores of a process, and its peak memory.

Where the system has no affinity (macOS, Windows), a process is not pinned.
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
    """The peak memory of this process, in bytes; NaN where the system does not report it."""
    status = Path("/proc/self/status")
    if status.exists():  # of this process alone: getrusage inherits the peak of the one that started it
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1])  # pyright: ignore[reportOptionalSubscript]
    try:
        import resource
    except ImportError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
