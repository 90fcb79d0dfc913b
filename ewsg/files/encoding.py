"""Columns as a matrix of numbers: standardised, levels against a reference, and back again."""

import dataclasses
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._core import memory
from .._core.optional import require
from ..errors import FileFormatError
from ..target import arrays
from .columns import Column, Kind
from .outcome import Outcome
from .source import Source

Missing = Literal["drop", "indicator", "error"]
INTERCEPT = 4.0
"""The constant column: with a prior N(0, 2.5²) of its coefficient, the intercept has N(0, 10²)."""
_ROWS_PER_BLOCK = 2**16
_OUTCOME = "outcome"  # features are numbered


@dataclasses.dataclass(frozen=True)
class Feature:
    """One column of the matrix: (value − centre)/scale.

    Attributes:
        name: the name of its coefficient: `age`, `colour[red]`, `age[missing]`.
        column: the column of the file.
        part: "value" of a number, boolean or date; "level": 1 where a category has this level; "missing": 1 where the
            value is missing.
        level: the level.
        centre: the mean of the value, or of the ones and zeros.
        scale: the sd of a number or date, else 1.
        fill: stands for missing values; None leaves them missing.
    """

    name: str
    column: str
    part: Literal["value", "level", "missing"]
    level: str = ""
    centre: float = 0.0
    scale: float = 1.0
    fill: float | None = None

    def expression(self) -> Any:
        """The polars expression of the encoded column, of a prepared frame."""
        polars = require("polars", extra="files")
        column = polars.col(self.column)
        if self.part == "level":
            value = (column == self.level).cast(polars.Float64)
            value = value if self.fill is None else value.fill_null(self.fill)
        elif self.part == "missing":
            value = column.is_null().cast(polars.Float64)
        else:
            value = column if self.fill is None else column.fill_null(self.fill)
        return (value - self.centre) / self.scale


@dataclasses.dataclass(frozen=True)
class Encoding:
    """How the rows of a file become rows of a matrix and outcomes: all that is needed to do it again.

    Attributes:
        outcome: the coding of the outcome.
        features: the columns of the matrix after the first, which is constant.
        kinds: the kind of every column of the file that is used.
        references: the level of each category that the others are compared with.
        missing: what is done with missing values.
    """

    outcome: Outcome
    features: tuple[Feature, ...]
    kinds: dict[str, Kind]
    references: dict[str, str]
    missing: Missing

    def complete(self) -> Any:
        """The polars condition of the rows that are used."""
        polars = require("polars", extra="files")
        names = list(self.kinds) if self.missing == "drop" else [self.outcome.column]
        return polars.all_horizontal(polars.col(name).is_not_null() for name in names)

    def matrix(self, source: Source, rows: int, where: Any = None) -> Float[np.ndarray, "n d"]:
        """The encoded rows of a prepared source, the constant column first, in the dtype that JAX will use."""
        return self._matrix_and(source, rows, where, ())[0]

    def data(self, source: Source, rows: int, where: Any = None) -> tuple[Float[np.ndarray, "n d"], np.ndarray]:
        """The encoded rows and the coded outcomes, in one pass."""
        return self._matrix_and(source, rows, where, (self.outcome.expression().alias(_OUTCOME),))

    def _matrix_and(self, source: Source, rows: int, where: Any, outcome: tuple[Any, ...]) -> tuple[Any, Any]:
        """The matrix, and the values of the expression of an outcome (None without one)."""
        polars = require("polars", extra="files")
        dtype, width = np.dtype(jnp.result_type(float)), len(self.features) + 1
        memory.check(2 * rows * width * dtype.itemsize, "the encoded table", "use fewer rows or columns")
        narrow = polars.Float32 if dtype == np.float32 else polars.Float64
        wanted = [feature.expression().cast(narrow).alias(str(i)) for i, feature in enumerate(self.features)]
        frame = source.collect(*wanted, *outcome, where=where)
        values = frame.drop_in_place(_OUTCOME).to_numpy() if outcome else None
        matrix = arrays.empty((rows, width), dtype)
        matrix[:, 0] = INTERCEPT
        for start in range(0, rows, _ROWS_PER_BLOCK):
            matrix[start : start + _ROWS_PER_BLOCK, 1:] = frame.slice(start, _ROWS_PER_BLOCK).to_numpy()
        return matrix, values

    def to_json(self) -> dict[str, Any]:
        """The encoding as a dict for `run.settings`."""
        return dataclasses.asdict(self)

    @staticmethod
    def of(saved: Any) -> "Encoding":
        """The encoding from the dict of `to_json`."""
        try:
            outcome = saved["outcome"] | {"classes": tuple(saved["outcome"]["classes"])}
            features = tuple(Feature(**feature) for feature in saved["features"])
            return Encoding(**(saved | {"outcome": Outcome(**outcome), "features": features}))
        except (AttributeError, KeyError, TypeError) as error:
            raise FileFormatError("this run was not made from a file: it holds no encoding of columns") from error


def features_of(column: Column, rows: int, missing: Missing, median: float | None) -> tuple[tuple[Feature, ...], str]:
    """The features of a column, and the level that the others are compared with ("" if it is not a category)."""
    indicator = ()
    if missing == "indicator" and column.missing:
        indicator = (Feature(f"{column.name}[missing]", column.name, "missing", centre=column.missing / rows),)
    if column.kind == "category":
        (reference, _), *others = column.levels
        zero = 0.0 if indicator else None
        levels = (
            Feature(f"{column.name}[{level}]", column.name, "level", level, centre=count / rows, fill=zero)
            for level, count in sorted(others)
        )
        return (*levels, *indicator), reference
    fill = median if indicator else None
    centre, scale = column.standard()
    scale = 1.0 if column.kind == "boolean" else scale
    value = Feature(column.name, column.name, "value", centre=centre, scale=scale, fill=fill)
    return (value, *indicator), ""
