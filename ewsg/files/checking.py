"""A data file looked through without sampling: kinds of columns, and rows with missing or infinite values."""

import dataclasses
import datetime
import functools
import operator
import os

from .._core.optional import require
from .columns import Column, look
from .selection import useless
from .source import open_source

_ROWS_LISTED = 10
_EPOCH = datetime.date(1970, 1, 1)


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a data file holds: print it.

    Attributes:
        path: the file.
        rows: the number of rows.
        columns: the columns, by name.
        bad_rows: the numbers, from 1, of the first rows with a missing or infinite value.
        num_bad_rows: the number of all of them.
    """

    path: str
    rows: int
    columns: dict[str, Column]
    bad_rows: list[int]
    num_bad_rows: int

    @property
    def ok(self) -> bool:
        """Whether every row can be used as it is, and at least two columns can."""
        return not self._advice()

    def __str__(self) -> str:
        width = max(len(name) for name in self.columns) + 2
        lines = [f"{self.path}: {self.rows:,} rows, {len(self.columns)} columns"]
        lines += [f"  {name:{width}}{column.kind:10}{self._about(column)}" for name, column in self.columns.items()]
        if self.num_bad_rows:
            shown = ", ".join(map(str, self.bad_rows)) + (", ..." if self.num_bad_rows > len(self.bad_rows) else "")
            lines.append(f"{self.num_bad_rows:,} rows with missing or infinite values: {shown}")
        lines += self._advice() or ["Every row can be sampled as it is."]
        return "\n".join(lines)

    def _advice(self) -> list[str]:
        """A sentence for everything that keeps rows from being used as they are."""
        usable = [column for column in self.columns.values() if not useless(column, self.rows)]
        sentences = {
            "Infinite values have to be corrected, or their columns dropped.": any(c.infinite for c in usable),
            "ewsg sample leaves out rows with missing values, or fills them in with --missing indicator.": any(
                c.missing for c in usable
            ),
            "There are not two columns that can be used, one of them to explain the other.": len(usable) < 2,
        }
        return [f"! {sentence}" for sentence, applies in sentences.items() if applies]

    def _about(self, column: Column) -> str:
        parts = [
            f"{count:,} {word}" for count, word in ((column.missing, "missing"), (column.infinite, "infinite")) if count
        ]
        if reason := useless(column, self.rows):
            parts.append(reason)
        elif column.kind == "category":
            parts.append(", ".join(f"{level} ({count:,})" for level, count in column.levels[:5]))
            parts += [f"{column.num_levels} levels in all"] if column.num_levels > 5 else []
        elif column.kind == "boolean":
            parts.append(f"{column.mean:.1%} true")
        elif column.kind == "date":
            first, last = (
                datetime.date(1970, 1, 1) + datetime.timedelta(days=day) for day in (column.low, column.high)
            )
            parts.append(f"from {first} to {last}")
        elif not column.infinite:
            parts.append(f"mean {column.mean:.4g}, sd {column.sd:.4g}, from {column.low:.4g} to {column.high:.4g}")
        return "; ".join(parts)


def check(path: str | os.PathLike) -> Findings:
    """Look through a data file in a stream: kinds of columns, and rows with missing, NaN or infinite values.

    Columns that cannot be used anyway, such as those missing in every row, are named, but do not make rows bad.
    """
    polars = require("polars", extra="files")
    source, rows, columns = look(open_source(path))
    suspects = [c for c in columns.values() if (c.missing or c.infinite) and not useless(c, rows)]
    if not suspects:
        return Findings(str(path), rows, columns, [], 0)
    signs = [polars.col(column.name).is_null() for column in suspects]
    signs += [polars.col(column.name).is_infinite().fill_null(False) for column in suspects if column.infinite]
    is_bad = functools.reduce(operator.or_, signs)
    number = source.collect(is_bad.sum().alias("bad")).item()
    return Findings(str(path), rows, columns, source.rows_where(is_bad, _ROWS_LISTED), number)
