"""How much memory a process may still use: what the machine has free, or what its container allows."""

import os
from pathlib import Path

from ..errors import InputError

_SHARE = 0.8
_UNLIMITED = 2**60
_MEMINFO = Path("/proc/meminfo")
_CGROUP_OF_PROCESS = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Free physical memory or the rest of the control group's limit, whichever is less; None if neither is known."""
    known = [size for size in (_physical(), _control_group()) if size is not None]
    return min(known) if known else None


def check(needed: int, what: str, remedy: str) -> None:
    """Raise InputError if `needed` bytes are more than 80 % of the available memory.

    Args:
        needed: bytes.
        what: the subject of the sentence, such as "data" or "keeping 10 draws".
        remedy: what to do instead.
    """
    available = available_bytes()
    if available is not None and needed > _SHARE * available:
        raise InputError(f"{what} needs {_gib(needed)} and {_gib(available)} of memory is available: {remedy}")


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g} GiB"


def _physical() -> int | None:
    """MemAvailable on Linux; elsewhere all physical memory, if the system reports it."""
    for line in _lines(_MEMINFO):
        name, _, value = line.partition(":")
        if name == "MemAvailable" and value.split() and value.split()[0].isdigit():
            return int(value.split()[0]) * 1024
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf, other systems lack these names
        return None
    return size if size > 0 else None


def _control_group() -> int | None:
    """The rest of the tightest limit on this process's control groups (versions 2 and 1); None without a limit."""
    left = []
    for folder, limit_name, used_name in _limit_files():
        limit, used = _number(folder / limit_name), _number(folder / used_name)
        if limit is not None and limit < _UNLIMITED:
            left.append(max(0, limit - (used or 0) + _reclaimable(folder)))
    return min(left) if left else None


def _limit_files() -> list[tuple[Path, str, str]]:
    """The folders that may hold a limit: the process's own group and its ancestors, up to the mounted root."""
    found = []
    for line in _lines(_CGROUP_OF_PROCESS) or ["0::/"]:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            root, names = _CGROUPS, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = _CGROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        own = root / path.strip().lstrip("/")
        found += [(folder, *names) for folder in (own, *own.parents) if folder == root or root in folder.parents]
    return found


def _reclaimable(folder: Path) -> int:
    """Bytes of the group's file cache that the kernel frees before an allocation fails."""
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.strip().isdigit():
            return int(value)
    return 0


def _number(path: Path) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []
