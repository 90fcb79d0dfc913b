"""From a file to a table: columns chosen, missing values dealt with, outcome coded, everything standardised."""

import dataclasses
import difflib
import os
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from .._core.optional import require
from ..errors import InputError, UnknownOption, unknown
from .columns import Column, Kind, look, prepared, survey
from .encoding import Encoding, Missing, features_of
from .outcome import choose
from .selection import refuse, select
from .source import Source, open_source
from .table import Table

_NAMES_SHOWN = 10


def read(
    path: str | os.PathLike,
    outcome: str,
    *,
    model: str = "auto",
    missing: Missing = "drop",
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> Table:
    """Read a data file as a regression of one column on all others.

    Numbers and dates are standardised, categories become ones and zeros against their most frequent level. Columns that
    are constant, empty, or text of more than 50 levels are left out; printing the table says which.

    Args:
        path: CSV, TSV, Parquet, Feather (Arrow IPC), NPZ or LIBSVM, by its suffix. Arrays of two axes in an NPZ file
            are columns `name[0]`, `name[1]`, ...; LIBSVM has `label`, `x1`, `x2`, ...
        outcome: the column to explain.
        model: "logistic", "linear", "poisson", "softmax", "negative-binomial"; "auto" is logistic for two values,
            softmax for text of more, else linear, and asks where whole numbers may be counts or classes.
        missing: "drop" leaves out rows with a missing value in any used column; "indicator" fills numbers with the
            median and adds a column that is 1 where one was missing (of a category, missing is a level of its own);
            "error" refuses. Rows without an outcome are always left out, unless "error".
        drop: columns not to use.
        categories: columns of numbers that are names of categories.
    """
    if missing not in get_args(Missing):
        raise unknown("treatment of missing values", missing, get_args(Missing))
    source = open_source(path, tuple(categories))
    known = source.frame.collect_schema().names()
    for name in (outcome, *drop, *categories):
        _check_name(source, name, known)
    if outcome in drop:
        raise InputError(f"{outcome} is the outcome and cannot be dropped: choose another one, or leave it out of drop")
    source = dataclasses.replace(source, frame=source.frame.drop(list(drop)))
    source, rows, columns = look(source, tuple(name for name in categories if name not in drop))
    _check_outcome(source, columns[outcome], rows)
    chosen = select(source, rows, columns, outcome, missing)
    coded, classes = choose(source, chosen.columns[outcome], model, chosen.where)
    others = {name: column for name, column in chosen.columns.items() if name != outcome}
    medians = _medians(source, others, chosen.where) if missing == "indicator" else {}
    found = [features_of(column, chosen.rows, missing, medians.get(name)) for name, column in others.items()]
    encoding = Encoding(
        coded,
        tuple(feature for features, _ in found for feature in features),
        {name: column.kind for name, column in chosen.columns.items()},
        {name: reference for name, (_, reference) in zip(others, found, strict=True) if reference},
        missing,
    )
    filled = [("filled in", _about_filled(column, medians)) for column in others.values() if column.missing]
    return Table(source, encoding, chosen.rows, chosen.columns, classes, (*chosen.notes, *filled))


def encode(path: str | os.PathLike, encoding: Encoding) -> Float[np.ndarray, "n d"]:
    """The rows of another file with the same columns, encoded as those of a run were: a matrix for its draws.

    The linear predictor of draw θ is `encode(path, encoding) @ θ`; `Encoding.of(run.settings["table"])` is the encoding
    of a run. The outcome need not be there. A row with missing values, unless the run filled them in, has NaN. Raises
    InputError for levels that the run has not seen.
    """
    polars = require("polars", extra="files")
    kinds: dict[str, Kind] = {name: kind for name, kind in encoding.kinds.items() if name != encoding.outcome.column}
    source = open_source(path, tuple(name for name, kind in kinds.items() if kind == "category"))
    known = source.frame.collect_schema().names()
    for name in kinds:
        _check_name(source, name, known)
    source = prepared(source, kinds)
    rows, columns = survey(source, kinds)
    refuse(source, columns, encoding.missing)
    for name, reference in encoding.references.items():
        levels = [feature.level for feature in encoding.features if feature.column == name and feature.part == "level"]
        strange = source.rows_where(~polars.col(name).is_in([reference, *levels]), 1)
        if strange:
            raise InputError(f"{source.path}: row {strange[0]} has a level of {name} that the run has not seen")
    return encoding.matrix(source, rows)


def _check_name(source: Source, name: str, known: list[str]) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    more = f", ... {len(known) - _NAMES_SHOWN} more" if len(known) > _NAMES_SHOWN else ""
    raise UnknownOption(
        f"{source.path} has no column {name!r}{hint} (columns: {', '.join(known[:_NAMES_SHOWN])}{more})"
    )


def _check_outcome(source: Source, column: Column, rows: int) -> None:
    if column.kind == "other":
        raise InputError(
            f"the outcome {column.name} of {source.path} holds neither numbers nor text: choose another one"
        )
    if column.missing == rows:
        raise InputError(f"the outcome {column.name} of {source.path} is missing in every row: choose another one")


def _about_filled(column: Column, medians: dict[str, float]) -> str:
    by = f"the median {medians[column.name]:.4g}" if column.name in medians else "a level of their own"
    return f"{column.name}: {column.missing:,} missing by {by}, marked by {column.name}[missing]"


def _medians(source: Source, columns: dict[str, Column], where: Any) -> dict[str, float]:
    """The medians of the columns of numbers that have missing values."""
    polars = require("polars", extra="files")
    names = [name for name, column in columns.items() if column.missing and column.kind != "category"]
    if not names:
        return {}
    return source.collect(*(polars.col(name).median() for name in names), where=where).row(0, named=True)
