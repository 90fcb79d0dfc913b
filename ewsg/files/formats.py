"""One function per format, from a path to a lazy frame of polars."""

import csv
import glob
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._core import memory
from .._core.optional import require
from ..errors import InputError

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")
"""What stands for a missing value in CSV and TSV."""
SEPARATORS = {"CSV": ",", "TSV": "\t"}
_ROWS_FOR_TYPES = 10_000


def scan_text(path: Path, kind: str, *, text: tuple[str, ...] = (), typed: bool = True) -> Any:
    """CSV or TSV; whole numbers are read as floating-point numbers, since later rows may have a fraction."""
    polars = require("polars", extra="files")
    names = _header(path, kind)
    options = {"separator": SEPARATORS[kind], "null_values": list(MISSING), "glob": False}
    options |= {"with_column_names": lambda _: names}
    if not typed:
        return polars.scan_csv(path, infer_schema=False, **options)
    options |= {"infer_schema_length": _ROWS_FOR_TYPES, "try_parse_dates": True}
    types = polars.scan_csv(path, **options).collect_schema()
    numbers = {name: polars.Float64 for name, dtype in types.items() if dtype.is_integer()}
    words = {name: polars.String for name in text if name in types}
    return polars.scan_csv(path, schema_overrides=numbers | words, **options)


def _header(path: Path, kind: str) -> list[str]:
    """The names in the first line, without blanks around them; a column without a name gets one."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = [name.strip() for name in next(csv.reader(file, delimiter=SEPARATORS[kind]))]
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8: convert it, e.g. with iconv -f latin1 -t utf-8") from None
    except (csv.Error, StopIteration) as error:
        raise InputError(f"{path} cannot be read as {kind}: {error or 'it has no first line'}") from None
    if len(names) == 1:
        others = {"commas": ",", "semicolons": ";", "tabs": "\t"}
        seen = [f"{names[0].count(sign)} {name}" for name, sign in others.items() if sign in names[0]]
        if seen:
            raise InputError(
                f"{path} is not {kind}: its first line has one name with {seen[0]}; separate columns by commas (.csv) "
                "or tabs (.tsv)"
            )
    names = [name or f"column_{number}" for number, name in enumerate(names, 1)]
    if all(_is_number(name) for name in names):
        raise InputError(f"the first line of {path} has numbers and no names: put a line of column names above it")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{path} has more than one column named {twice[0]!r}: give each a name of its own")
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _scan_parquet(path: Path) -> Any:
    return require("polars", extra="files").scan_parquet(path, glob=False)


def _scan_feather(path: Path) -> Any:
    return require("polars", extra="files").scan_ipc(glob.escape(str(path)))


def _scan_npz(path: Path) -> Any:
    """One column per array of one axis, `name[j]` for each column of an array `name` of two."""
    columns: dict[str, np.ndarray] = {}
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        for name in archive.files:
            array = archive[name]
            if array.ndim not in (1, 2):
                raise InputError(f"{path}: the array {name} has shape {array.shape}: give arrays of one or two axes")
            if array.ndim == 1:
                columns[name] = array
            else:
                columns |= {f"{name}[{j}]": array[:, j] for j in range(array.shape[1])}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"{path} has arrays of {min(lengths)} and of {max(lengths)} rows: all need the same number")
    return _in_memory(columns)


def _scan_libsvm(path: Path) -> Any:
    """`label`, and `x1`, `x2`, ... of LIBSVM's sparse text, made dense."""
    datasets = require("sklearn.datasets", extra="files")
    sparse, labels = datasets.load_svmlight_file(str(path), zero_based=False)
    memory.check(8 * sparse.shape[0] * sparse.shape[1], f"{path} as a dense table", "use fewer rows or columns")
    columns = sparse.tocsc()
    return _in_memory(
        {"label": labels} | {f"x{j + 1}": columns[:, [j]].toarray()[:, 0] for j in range(sparse.shape[1])}
    )


def _in_memory(columns: dict[str, np.ndarray]) -> Any:
    """Text may be Python's or NumPy's; floating-point numbers keep their type."""
    polars = require("polars", extra="files")
    wanted = {name: list(map(str, array)) if array.dtype.kind in "US" else array for name, array in columns.items()}
    return polars.DataFrame(wanted).lazy()


SCANS: dict[str, Callable[[Path], Any]] = {
    "Parquet": _scan_parquet,
    "Feather": _scan_feather,
    "NPZ": _scan_npz,
    "LIBSVM": _scan_libsvm,
}
"""The formats other than CSV and TSV."""
