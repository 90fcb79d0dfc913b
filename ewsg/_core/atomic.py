"""Atomic writes: a file appears whole or not at all, and the next write removes what killed processes left behind."""

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import InputError, SaveError

try:
    import fcntl
except ImportError:  # Windows, where an open file can be neither renamed nor removed
    fcntl = None

_SUFFIX = ".part"


def write(path: str | os.PathLike, fill: Callable[[BinaryIO], object]) -> None:
    """Calls `fill` with a new file, which replaces `path` once it is complete.

    Of a symbolic link the target is replaced. The new file has the permissions of the old one, or those of `open`. If
    anything fails, the old file is left as it was; errors of the system are raised as `SaveError`.
    """
    final = destination(path)
    try:
        _sweep(final)
        _replace(final, fill)
    except OSError as error:
        raise SaveError(
            f"cannot write {path}: {error.strerror or error}; free some space or choose another place"
        ) from error


def destination(path: Any) -> Path:
    """The file that a write to `path` creates or replaces, links followed; raises unless it is, or can be, a file."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise InputError(f"cannot write to {path!r}: give the name of a file, a string or a pathlib.Path")
    try:
        final = Path(os.path.realpath(path))
        mode = _mode(final)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SaveError(f"cannot write {path!s}: {reason}; choose another name") from error
    folder = final.parent
    if mode is not None and stat.S_ISDIR(mode):
        raise SaveError(f"{path} is a folder: give the name of a file in it")
    if mode is not None and not stat.S_ISREG(mode):
        raise SaveError(f"{path} is not a regular file but a device, a pipe or a socket: choose another name")
    shown = folder if os.path.islink(path) else Path(path).parent
    if not folder.is_dir():
        raise SaveError(f"cannot write {path}: the folder {shown} does not exist; create it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SaveError(f"cannot write {path}: no permission in the folder {shown}; choose another place")
    return final


def _mode(final: Path) -> int | None:
    """The kind and the permissions of a file; None if there is none."""
    try:
        return os.stat(final).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace(final: Path, fill: Callable[[BinaryIO], object]) -> None:
    handle, temporary = _open_beside(final)
    try:
        with os.fdopen(handle, "wb") as file:
            mode = _mode(final)
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            fill(file)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # still locked, so that no other writer sweeps it
                os.replace(temporary, final)
        if fcntl is None:
            os.replace(temporary, final)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync(final.parent)


def _open_beside(final: Path) -> tuple[int, Path]:
    """A new temporary file of `final`, open and locked; its name is short, however long that of `final` is."""
    while True:
        temporary = final.parent / f"{_prefix(final)}{secrets.token_hex(8)}{_SUFFIX}"
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0), 0o666)
        if fcntl is None:
            return handle, temporary
        with contextlib.suppress(OSError):  # a file system without locks: nothing is ever swept there
            fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(temporary)):
                return handle, temporary
        os.close(handle)  # swept by another writer before it was locked


def _sweep(final: Path) -> None:
    """Removes the temporary files of `final` whose writers were killed: those of live writers are locked."""
    for leftover in final.parent.glob(f"{_prefix(final)}*{_SUFFIX}"):
        with contextlib.suppress(OSError):
            if fcntl is None:
                os.unlink(leftover)
                continue
            handle = os.open(leftover, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(leftover)
            finally:
                os.close(handle)


def _prefix(final: Path) -> str:
    return f".ewsg-{hashlib.sha256(os.fsencode(final.name)).hexdigest()[:16]}-"


def _sync(folder: Path) -> None:
    """Makes the new name survive a power failure, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
