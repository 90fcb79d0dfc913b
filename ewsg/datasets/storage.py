"""Data files on this machine: the search path, the verification of what is found, and the user's cache."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .._core import atomic
from .._core.optional import require
from ..errors import DataNotFound, InputError
from .registry import File

_GZIP_MAGIC = b"\x1f\x8b"


def data_folder() -> Path | None:
    """The folder that `$EWSG_DATA` names, which need not exist; None if the variable is unset or empty."""
    value = os.environ.get("EWSG_DATA")
    return Path(value).expanduser().absolute() if value else None


def cache_folder() -> Path:
    """The user's cache: `data` below it has the layout of `$EWSG_DATA`, `parsed` holds binary copies."""
    return Path(require("platformdirs", extra="data").user_cache_dir("ewsg"))


def search_path() -> list[Path]:
    """The folders in the order in which they are searched; a folder need not exist."""
    cache = cache_folder() / "data"
    folder = data_folder()
    return [cache] if folder is None else [folder, cache]


def check_data_folder() -> None:
    """Raise DataNotFound if `$EWSG_DATA` is not a folder: silently looking elsewhere would hide a misspelling."""
    folder = data_folder()
    if folder is not None and not folder.is_dir():
        raise DataNotFound(
            f"the environment variable EWSG_DATA names {str(folder)!r}, which is not a folder: correct it, "
            f"or unset it to use {str(cache_folder() / 'data')!r} and downloads"
        )


def find(file: File) -> Path | None:
    """The first copy on the search path, compressed or not (`name.gz` or `name`); None if there is none."""
    for folder in search_path():
        for candidate in (folder / file.path, folder / file.path.removesuffix(".gz")):
            if os.path.isfile(candidate):  # unlike `Path.is_file`, never an error
                return candidate
    return None


def read(path: Path) -> bytes:
    """The bytes of a file, as they are stored."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"the data file {str(path)!r} cannot be read: {error.strerror}") from error


def is_gzip(stored: bytes) -> bool:
    """Whether these bytes are those of a gzip file."""
    return stored.startswith(_GZIP_MAGIC)


def unpack(file: File, stored: bytes, origin: str) -> bytes:
    """The uncompressed content, verified.

    Args:
        file: What the content has to be.
        stored: The bytes of a gzip file, or the content itself.
        origin: The path or the address of these bytes, for messages.
    """
    try:
        content = gzip.decompress(stored) if is_gzip(stored) else stored
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"the data file {origin!r} is damaged or cut short ({error}): replace it") from error
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise InputError(
            f"the data file {origin!r} is not the published one and has to be replaced: "
            f"the sha256 of its uncompressed content should be {file.sha256}, not {found}"
        )
    return content


def keep(file: File, stored: bytes) -> None:
    """Put verified bytes into the user's cache; a cache that cannot be written to is not an error."""
    with suppress(OSError):
        _write_atomically(cache_folder() / "data" / file.path, lambda stream: stream.write(stored))


def parsed_path(name: str, stored: bytes) -> Path:
    """Where the arrays parsed from these very bytes are kept; increase the version when parsing changes."""
    return cache_folder() / "parsed" / f"{name}-v1-{hashlib.sha256(stored).hexdigest()[:32]}.npz"


def read_arrays(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray] | None:
    """The arrays kept at `path`; None if there are none or if they are damaged (the format has checksums)."""
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except Exception:  # a damaged archive fails in many ways, and all mean the same: parse again
        return None


def keep_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Keep arrays at `path`; a cache that cannot be written to is not an error."""
    with suppress(OSError):
        _write_atomically(path, lambda stream: np.savez(stream, **arrays))  # pyright: ignore[reportArgumentType]


def _write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Another process sees all of the file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, write)
