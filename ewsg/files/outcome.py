"""The outcome of a regression: which model fits its values, and how they are coded for it."""

import dataclasses
from typing import Any, Literal

from .._core.optional import require
from ..errors import InputError, unknown
from .columns import COUNT, MOST_LEVELS, Column
from .source import Source

Model = Literal["logistic", "linear", "poisson", "softmax", "negative-binomial"]
MODELS: tuple[Model, ...] = ("logistic", "linear", "poisson", "softmax", "negative-binomial")
_BOOLEANS = ("false", "true")
COUNTS = ("poisson", "negative-binomial")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How the outcome is coded.

    Attributes:
        column: its name.
        kind: its kind, as in `Column`.
        model: the regression.
        classes: of logistic and softmax regression, in order; logistic gives the log odds of the second.
        reference: the class that those of softmax are compared with, the most frequent one.
        centre: subtracted from a linear outcome.
        scale: a linear outcome is divided by it.
    """

    column: str
    kind: str
    model: Model
    classes: tuple[str, ...] = ()
    reference: str = ""
    centre: float = 0.0
    scale: float = 1.0

    def expression(self) -> Any:
        """The polars expression of the coded outcome."""
        polars = require("polars", extra="files")
        column = polars.col(self.column)
        if self.classes:
            numbers = {_as_value(name, self.kind): float(i) for i, name in enumerate(self.classes)}
            return column.replace_strict(
                list(numbers), list(numbers.values()), default=None, return_dtype=polars.Float64
            )
        return (column - self.centre) / self.scale


@dataclasses.dataclass(frozen=True)
class _Values:
    """The different values of an outcome, most frequent first: up to `MOST_LEVELS` + 1 of them, and their number."""

    counts: dict[str, int]
    number: int
    whole: bool


def choose(source: Source, column: Column, model: str, where: Any) -> tuple[Outcome, dict[str, int]]:
    """The outcome coded for a model, "auto" for the one that its values suggest; and how often each class occurs.

    Raises InputError if the values do not suit the model, or suggest none.
    """
    if model not in (*MODELS, "auto"):
        raise unknown("model", model, ("auto", *MODELS))
    values = _values(source, column, where)
    if values.number < 2:
        raise InputError(
            f"the outcome {column.name} is always {next(iter(values.counts))}: there is nothing to explain"
        )
    chosen = _suggested(column, values) if model == "auto" else _checked(model, column, values)
    if chosen == "linear" and not column.has_scale:
        raise InputError(
            f"the outcome {column.name} has an sd of {column.sd:.3g}: rescale it to numbers of moderate size"
        )
    if chosen == "linear":
        centre, scale = column.standard()
        return Outcome(column.name, column.kind, chosen, centre=centre, scale=scale), {}
    if chosen in COUNTS:
        return Outcome(column.name, column.kind, chosen), {}
    order = sorted(values.counts, key=lambda name: _as_value(name, column.kind))
    classes = {name: values.counts[name] for name in order}
    return Outcome(column.name, column.kind, chosen, tuple(order), max(classes, key=lambda c: classes[c])), classes


def _values(source: Source, column: Column, where: Any) -> _Values:
    if column.kind == "category":
        return _Values(dict(column.levels), column.num_levels, False)
    polars = require("polars", extra="files")
    values = polars.col(column.name).drop_nulls()
    found = source.collect(
        values.n_unique().alias("number"),
        (values == values.floor()).all().alias("whole"),
        values.value_counts(sort=True, name=COUNT).head(MOST_LEVELS + 1).implode().alias("levels"),
        where=where,
    ).row(0, named=True)
    entries = sorted(found["levels"], key=lambda entry: (-entry[COUNT], entry[column.name]))
    counts = {_as_name(entry[column.name], column.kind): entry[COUNT] for entry in entries}
    return _Values(counts, found["number"], found["whole"])


def _suggested(column: Column, values: _Values) -> Model:
    if column.kind == "category" and values.number > MOST_LEVELS:
        raise InputError(
            f"the outcome {column.name} is text with {values.number:,} different values: softmax regression takes at "
            f"most {MOST_LEVELS} classes"
        )
    if values.number == 2:
        return "logistic"
    if column.kind == "category":
        return "softmax"
    if column.kind == "number" and values.whole and column.low >= 0 and values.number <= MOST_LEVELS:
        raise InputError(
            f"the outcome {column.name} has {values.number} different whole numbers, {_as_name(column.low)} to "
            f"{_as_name(column.high)}, which may be counts, classes or amounts: say --model poisson (or "
            "negative-binomial), softmax or linear"
        )
    return "linear"


def _checked(model: Any, column: Column, values: _Values) -> Model:
    """The model, if the values suit it."""
    name = f"the outcome {column.name}"
    if model in ("logistic", "softmax"):
        most = 2 if model == "logistic" else MOST_LEVELS
        if values.number > most:
            raise InputError(
                f"{name} has {values.number:,} different values, and {model} regression takes {most} at most: choose "
                "another --model"
            )
        return model
    if column.kind in ("category", "boolean"):
        shown = ", ".join(list(values.counts)[:3]) + (", ..." if values.number > 3 else "")
        kind = "text" if column.kind == "category" else "true or false"
        raise InputError(
            f"{name} is {kind} ({shown}), and {model} regression needs numbers: choose --model logistic or softmax"
        )
    if model in COUNTS and (column.low < 0 or not values.whole):
        wrong = f"numbers below 0 (such as {_as_name(column.low)})" if column.low < 0 else "numbers that are not whole"
        raise InputError(f"{name} has {wrong}, and {model} regression needs counts 0, 1, 2, ...: choose --model linear")
    return model


def _as_name(value: float, kind: str = "number") -> str:
    """A number as the name of a class: 1 and 0.5, of booleans false and true."""
    if kind == "boolean":
        return _BOOLEANS[int(value)]
    return str(int(value)) if value == int(value) else repr(value)


def _as_value(name: str, kind: str) -> Any:
    """The value in the prepared frame that a class stands for."""
    if kind == "boolean":
        return float(_BOOLEANS.index(name))
    return name if kind == "category" else float(name)
