"""The columns of a file: the kind of each, its missing values, and its moments or levels, in one streaming pass."""

import dataclasses
import math
from typing import Any, Literal

from .._core.optional import require
from ..errors import InputError
from .source import Source

Kind = Literal["number", "boolean", "category", "date", "other"]
MOST_LEVELS = 50
"""A category of more levels is not encoded: it is an identifier, or needs fewer levels."""
_LARGEST_SD = 1e150
_MICROSECONDS_PER_DAY = 86_400_000_000
_ROWS = "rows"  # the one name of a statistic without a blank
COUNT = "count of a level"
"""The name of the counts of values, beside the name of their column."""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column, as it was found.

    Attributes:
        name: its name.
        kind: "number", "boolean", "category" (text), "date" (a number of days since 1970-01-01), or "other".
        missing: the number of missing values, NaN included.
        infinite: the number of infinite values.
        low: the smallest finite number (of booleans 0 or 1); NaN if there is none, as of text.
        high: the largest.
        mean: the mean of the values that are not missing.
        sd: their standard deviation.
        levels: the most frequent values of a category and how often each occurs, ties in alphabetical order.
        num_levels: the number of different values of a category.
    """

    name: str
    kind: Kind
    missing: int
    infinite: int = 0
    low: float = float("nan")
    high: float = float("nan")
    mean: float = float("nan")
    sd: float = float("nan")
    levels: tuple[tuple[str, int], ...] = ()
    num_levels: int = 0

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        return self.num_levels == 1 if self.kind == "category" else self.low == self.high

    @property
    def has_scale(self) -> bool:
        """Whether numbers can be divided by their sd: it is neither 0 or infinite nor close to either."""
        return 1 / _LARGEST_SD < self.sd < _LARGEST_SD

    def standard(self) -> tuple[float, float]:
        """Mean and sd, rounded to six digits of the sd: they do not depend on the order in which values were summed."""
        scale = float(f"{self.sd:.6g}")
        return round(self.mean, 6 - math.floor(math.log10(scale))), scale


def look(source: Source, categories: tuple[str, ...] = ()) -> tuple[Source, int, dict[str, Column]]:
    """The source whose frame holds columns as `prepared` does, the number of rows, and the columns by name.

    Where the first rows of CSV or TSV misled about the type of a column, it is read again, without a guess.
    """
    try:
        return _look(source, categories)
    except InputError:
        if source.format not in ("CSV", "TSV"):
            raise
        return _look(source.as_text(), categories)


def prepared(source: Source, kinds: dict[str, Kind]) -> Source:
    """The source with numbers, booleans and dates as floating-point numbers, categories as text, null where missing.

    Dates become days since 1970-01-01. Text that is to be numbers must be numbers.
    """
    polars = require("polars", extra="files")
    schema = source.frame.collect_schema()

    def prepare(name: str, kind: Kind) -> Any:
        column, dtype = polars.col(name), schema[name]
        if kind == "category":
            text = column.cast(polars.String).str.strip_chars()
            return text.str.strip_suffix(".0") if dtype.is_numeric() else text
        if kind == "date":
            return column.cast(polars.Datetime("us")).cast(polars.Int64) / _MICROSECONDS_PER_DAY
        column = column.str.strip_chars() if dtype == polars.String else column
        return column.cast(polars.Float64).fill_nan(None)

    wanted = [prepare(name, kind).alias(name) for name, kind in kinds.items() if kind != "other"]
    return dataclasses.replace(source, frame=source.frame.with_columns(wanted))


def survey(source: Source, kinds: dict[str, Kind], where: Any = None) -> tuple[int, dict[str, Column]]:
    """The number of rows where a condition holds, and the columns over these rows, in one pass."""
    polars = require("polars", extra="files")
    wanted = [polars.len().alias(_ROWS)]
    for name, kind in kinds.items():
        column = polars.col(name)
        wanted.append(column.null_count().alias(f"missing {name}"))
        if kind == "category":
            counts = column.drop_nulls().value_counts(sort=True, name=COUNT)
            wanted.append(column.drop_nulls().n_unique().alias(f"num_levels {name}"))
            wanted.append(counts.head(MOST_LEVELS + 1).implode().alias(f"levels {name}"))
        elif kind != "other":
            wanted.append(column.is_infinite().sum().alias(f"infinite {name}"))
            for statistic in ("min", "max", "mean", "std"):
                wanted.append(getattr(column, statistic)().alias(f"{statistic} {name}"))
    found = source.collect(*wanted, where=where).row(0, named=True)
    return found[_ROWS], {name: _column(name, kind, found) for name, kind in kinds.items()}


def _column(name: str, kind: Kind, found: dict[str, Any]) -> Column:
    missing = found[f"missing {name}"]
    if kind == "other":
        return Column(name, kind, missing)
    if kind == "category":
        levels = [(entry[name], entry[COUNT]) for entry in found[f"levels {name}"]]
        levels.sort(key=lambda level: (-level[1], level[0]))
        return Column(name, kind, missing, levels=tuple(levels), num_levels=found[f"num_levels {name}"])
    infinite = found[f"infinite {name}"]
    low, high, mean, sd = (found[f"{statistic} {name}"] for statistic in ("min", "max", "mean", "std"))
    if mean is None:  # nothing but missing values
        return Column(name, kind, missing)
    return Column(name, kind, missing, infinite, low, high, mean, 0.0 if sd is None else sd)


def _look(source: Source, categories: tuple[str, ...]) -> tuple[Source, int, dict[str, Column]]:
    kinds: dict[str, Kind] = {
        name: "category" if name in categories else _kind(dtype)
        for name, dtype in source.frame.collect_schema().items()
    }
    kinds |= _numbers_in_text(source, [name for name in kinds if kinds[name] == "category" and name not in categories])
    source = prepared(source, kinds)
    rows, columns = survey(source, kinds)
    if not rows:
        raise InputError(f"{source.path} has names but no rows: give one row per datum")
    return source, rows, columns


def _kind(dtype: Any) -> Kind:
    polars = require("polars", extra="files")
    if dtype == polars.Boolean:
        return "boolean"
    if dtype.is_numeric() or dtype == polars.Null:
        return "number"
    if dtype in (polars.Date, polars.Datetime):
        return "date"
    return "category" if dtype in (polars.String, polars.Categorical, polars.Enum) else "other"


def _numbers_in_text(source: Source, names: list[str]) -> dict[str, Kind]:
    """The columns of text of which every value is a number."""
    polars = require("polars", extra="files")
    if not names:
        return {}
    text = {name: polars.col(name).cast(polars.String).str.strip_chars() for name in names}
    numbers = {name: column.cast(polars.Float64, strict=False) for name, column in text.items()}
    counts = source.collect(
        *(column.count().alias(f"text {name}") for name, column in text.items()),
        *(column.count().alias(f"numbers {name}") for name, column in numbers.items()),
    ).row(0, named=True)
    return {name: "number" for name in names if counts[f"text {name}"] == counts[f"numbers {name}"] > 0}
