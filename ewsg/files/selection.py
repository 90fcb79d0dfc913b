"""Which columns and which rows of a file are used, and why others are not."""

from typing import Any, NamedTuple

from .._core.optional import require
from ..errors import InputError
from .columns import MOST_LEVELS, Column, survey
from .encoding import Missing
from .source import Source

_MANY = 0.5
"""The share of rows lost to missing values that is worth a remark."""


class Selection(NamedTuple):
    """What is used of a file.

    Attributes:
        rows: the number of rows.
        where: the polars condition of these rows; None for all of them.
        columns: the columns over these rows, the outcome among them.
        notes: what was left out, by subject.
    """

    rows: int
    where: Any
    columns: dict[str, Column]
    notes: list[tuple[str, str]]


def select(source: Source, rows: int, columns: dict[str, Column], outcome: str, missing: Missing) -> Selection:
    """Columns that vary and can be encoded, and the rows that are complete in them (with "drop"), or have an outcome.

    A column that is constant over these rows is left out, and its missing values with it, until there is none.
    """
    used, notes = _useful(columns, outcome, rows)
    refuse(source, used, missing)
    while True:
        if len(used) < 2:
            reasons = "; ".join(text for _, text in notes) or "it has no other"
            raise InputError(f"{source.path} has no column to explain {outcome} with ({reasons})")
        lacking = [name for name in (used if missing == "drop" else (outcome,)) if used[name].missing]
        if not lacking:
            return Selection(rows, None, used, notes)
        polars = require("polars", extra="files")
        where = polars.all_horizontal(polars.col(name).is_not_null() for name in lacking)
        kept, found = survey(source, {name: column.kind for name, column in used.items()}, where)
        if kept < 2:
            worst = max(used.values(), key=lambda column: column.missing)
            raise InputError(
                f"only {kept} of {rows:,} rows of {source.path} are complete ({worst.name} is missing in "
                f"{worst.missing:,}): drop such columns, or fill them in with --missing indicator"
            )
        varying, more = _useful(found, outcome, kept)
        notes += more
        if not more:
            return Selection(kept, where, found, [*notes, _lost(rows, kept, [used[name] for name in lacking])])
        used = {name: used[name] for name in varying}


def _useful(columns: dict[str, Column], outcome: str, rows: int) -> tuple[dict[str, Column], list[tuple[str, str]]]:
    """The columns that can be used, the outcome among them, and notes on the others."""
    reasons = {name: useless(column, rows) for name, column in columns.items() if name != outcome}
    notes = [("left out", f"{name}: {reason}") for name, reason in reasons.items() if reason]
    return {name: column for name, column in columns.items() if not reasons.get(name)}, notes


def useless(column: Column, rows: int) -> str:
    """Why a column cannot be used; "" if it can."""
    present = rows - column.missing
    if column.kind == "other":
        return "neither numbers nor text"
    if not present:
        return "missing in every row"
    if column.is_constant:
        return f"always {column.levels[0][0] if column.levels else format(column.low, 'g')}"
    if column.kind != "category" and not column.infinite and not column.has_scale:
        return f"its sd is {column.sd:.3g}, too close to the ends of floating-point numbers: rescale it"
    if column.num_levels > min(MOST_LEVELS, max(2, present // 2)):
        return f"text with {column.num_levels:,} different values in {present:,} rows (an identifier?)"
    return ""


def refuse(source: Source, columns: dict[str, Column], missing: Missing) -> None:
    """Raise InputError for infinite values, and for missing ones if these are an error."""
    polars = require("polars", extra="files")
    for name, column in columns.items():
        if column.infinite:
            row = source.rows_where(polars.col(name).is_infinite(), 1)[0]
            raise InputError(
                f"{source.path}: {column.infinite:,} infinite values in {name} (first in row {row}): correct them, or "
                "drop the column"
            )
        if column.missing and missing == "error":
            row = source.rows_where(polars.col(name).is_null(), 1)[0]
            raise InputError(
                f"{source.path}: {column.missing:,} missing values in {name} (first in row {row}): fill them in, drop "
                "the column, or use --missing drop"
            )


def _lost(rows: int, kept: int, lacking: list[Column]) -> tuple[str, str]:
    """A note on the rows that are left out."""
    columns = ", ".join(f"{column.name} in {column.missing:,}" for column in lacking)
    advice = ": drop a column, or use --missing indicator" if kept < (1 - _MANY) * rows else ""
    return "left out", f"{rows - kept:,} of {rows:,} rows, for want of {columns}{advice}"
