"""From a path to a lazy frame of polars: the file must exist, and its content must be what its suffix says."""

import dataclasses
import difflib
import os
import zipfile
from pathlib import Path
from typing import Any

from .._core.optional import require
from ..errors import InputError, first_line
from .formats import SCANS, SEPARATORS, scan_text

_ROW_NUMBER = "number of the row"
_SUFFIXES = {
    "CSV": (".csv",),
    "TSV": (".tsv", ".tab"),
    "Parquet": (".parquet", ".pq"),
    "Feather": (".feather", ".arrow", ".ipc"),
    "NPZ": (".npz",),
    "LIBSVM": (".libsvm", ".svm", ".svmlight"),
}
_BEGINNINGS = {
    b"PAR1": "Parquet",
    b"ARROW1": "Feather",
    b"FEA1": "Feather of version 1",
    b"PK\x03\x04": "NPZ",
    b"\x1f\x8b": "gzip",
}
"""The first bytes of formats that are not text."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A file, and a lazy frame of its columns.

    Attributes:
        path: the file.
        format: its format, one of those of `_SUFFIXES`.
        frame: a polars LazyFrame.
    """

    path: Path
    format: str
    frame: Any

    def collect(self, *expressions: Any, where: Any = None) -> Any:
        """The DataFrame of these expressions, over the rows where a condition holds, computed in a stream."""
        polars = require("polars", extra="files")
        frame = self.frame if where is None else self.frame.filter(where)
        try:
            return frame.select(*expressions).collect(engine="streaming")
        except polars.exceptions.PolarsError as error:
            raise InputError(f"{self.path} cannot be read as {self.format}: {first_line(error)}") from error

    def rows_where(self, condition: Any, most: int) -> list[int]:
        """The numbers, from 1, of the first rows where a condition holds."""
        numbered = self.frame.with_row_index(_ROW_NUMBER, 1).filter(condition)
        return dataclasses.replace(self, frame=numbered.head(most)).collect(_ROW_NUMBER)[_ROW_NUMBER].to_list()

    def as_text(self) -> "Source":
        """The same file with no type guessed from its first rows: every column is text."""
        return dataclasses.replace(self, frame=scan_text(self.path, self.format, typed=False))


def open_source(path: str | os.PathLike, text: tuple[str, ...] = ()) -> Source:
    """Open a data file; raises InputError if it is not there, empty, or not what its suffix says.

    Args:
        path: a file with one of the suffixes of CSV, TSV, Parquet, Feather (Arrow IPC), NPZ or LIBSVM.
        text: columns of CSV and TSV that are text even if they look like numbers.
    """
    path = Path(path)
    kind = _format(path)
    polars = require("polars", extra="files")
    try:
        frame = scan_text(path, kind, text=text) if kind in SEPARATORS else SCANS[kind](path)
        names = frame.collect_schema().names()
    except InputError:
        raise
    except (polars.exceptions.PolarsError, zipfile.BadZipFile, ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read as {kind}: {first_line(error)}") from error
    if not names:
        raise InputError(f"{path} has no columns: give a table with one row per datum")
    return Source(path, kind, frame)


def _format(path: Path) -> str:
    """The format that a file's suffix names, if the file is there and its first bytes agree."""
    if not path.exists():
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1) if path.parent.is_dir() else []
        raise InputError(f"no such file: {path}" + (f"; did you mean {path.parent / near[0]}?" if near else ""))
    if path.is_dir():
        raise InputError(f"{path} is a folder: give a file of data in it")
    kind = next((kind for kind, suffixes in _SUFFIXES.items() if path.suffix.lower() in suffixes), None)
    if kind is None:
        known = ", ".join(suffixes[0] for suffixes in _SUFFIXES.values())
        raise InputError(f"{path} has no suffix of a known format ({known}): rename it, or convert it")
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if not start:
        raise InputError(f"{path} is empty: give a file with a row of names and one row per datum")
    found = next((name for magic, name in _BEGINNINGS.items() if start.startswith(magic)), None)
    found = found or ("another binary format" if b"\0" in start else "text")
    if found != (kind if kind in _BEGINNINGS.values() else "text"):
        raise InputError(f"{path} is not {kind} but {found}: give it the suffix of what it is, or convert it")
    return kind
