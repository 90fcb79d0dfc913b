"""A data file as a regression: what was understood of it, and the posterior it gives."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import models
from ..result.run import Run
from ..sampling import sample
from ..target.target import Target
from .coefficients import TABLE, Coefficients, coefficients
from .columns import Column
from .encoding import INTERCEPT, Encoding
from .outcome import COUNTS
from .source import Source

_MODELS: dict[str, Callable[..., Target]] = {
    "logistic": models.logistic,
    "linear": models.linear,
    "poisson": models.poisson,
    "softmax": models.softmax,
    "negative-binomial": models.negative_binomial,
}
_KINDS = {"number": "numbers", "boolean": "true/false", "date": "dates, in days"}
_NAMES_SHOWN = 8


@dataclasses.dataclass(frozen=True)
class Table:
    """A data file, read by `ewsg.files.read`: print it to see what was understood.

    Attributes:
        source: the file; its frame has numbers and text, null where missing.
        encoding: how its rows become numbers.
        rows: the number of rows that are used.
        columns: the columns that are used, over these rows, the outcome included.
        classes: how often each class of the outcome occurs.
        notes: sentences about what was left out or filled in, by subject.
    """

    source: Source
    encoding: Encoding
    rows: int
    columns: dict[str, Column]
    classes: dict[str, int]
    notes: tuple[tuple[str, str], ...]

    def target(self) -> Target:
        """The posterior of the coefficients of the standardised columns; every call reads the file again.

        Coefficients have the prior N(0, 2.5²) on the scale of the standardised columns (a linear outcome is
        standardised too), and the intercept N(0, 10²) where all columns have their means.
        """
        features, outcomes = self.encoding.data(self.source, self.rows, self.encoding.complete())
        outcome = self.encoding.outcome
        options = {"num_classes": len(outcome.classes)} if outcome.model == "softmax" else {}
        return _MODELS[outcome.model](features, outcomes, **options)

    def sample(self, *, accuracy: float | None = None, seed: int = 0, **options: Any) -> Run:
        """`ewsg.sample(table.target())`, and the encoding in the run, for `ewsg.files.coefficients` to undo.

        Args:
            accuracy: as in `ewsg.sample`.
            seed: as in `ewsg.sample`.
            **options: further ones of `ewsg.sample`.
        """
        target = self.target()
        run = sample(target, init=self._start(target), accuracy=accuracy, seed=seed, **options)
        return dataclasses.replace(run, settings=run.settings | {TABLE: self.encoding.to_json()})

    def coefficients(self, run: Run) -> Coefficients:
        """The coefficients on the scale of the file's own columns."""
        return coefficients(run)

    def _start(self, target: Target) -> Any:
        """The target's own start, for counts with the intercept at the log of their mean."""
        outcome, start = self.encoding.outcome, target.init
        if outcome.model not in COUNTS:
            return start
        first = np.log(self.columns[outcome.column].mean) / INTERCEPT
        inner = start["coefficients"] if isinstance(start, dict) else start
        moved = np.asarray(inner).copy()
        moved[0] = first
        return start | {"coefficients": moved} if isinstance(start, dict) else moved

    def __str__(self) -> str:
        outcome = self.encoding.outcome
        used = [column for name, column in self.columns.items() if name != outcome.column]
        lines = [("outcome", f"{outcome.column}: {self._about_outcome()}")]
        for kind, title in _KINDS.items():
            names = [column.name for column in used if column.kind == kind]
            if names:
                lines.append((title, _listed(names)))
        for column in used:
            if column.kind == "category":
                levels = sorted(level for level, _ in column.levels[1:])
                lines.append(("category", f"{column.name}: {_listed(levels)}, against {column.levels[0][0]}"))
        lines += self.notes
        width = max(len(subject) for subject, _ in lines) + 2
        title = f"{self.source.path}: {self.rows:,} rows, {len(used)} columns and the outcome"
        return "\n".join([title, *(f"  {subject:{width}}{text}" for subject, text in lines)])

    def _about_outcome(self) -> str:
        outcome, column = self.encoding.outcome, self.columns[self.encoding.outcome.column]
        counts = ", ".join(f"{name} ({count:,})" for name, count in self.classes.items())
        if outcome.model == "logistic":
            return f"{counts}; logistic regression, log odds of {outcome.classes[1]}"
        if outcome.model == "softmax":
            return f"{counts}; softmax regression, log odds against {outcome.reference}"
        text = f"mean {column.mean:.4g}, sd {column.sd:.4g}, from {column.low:.4g} to {column.high:.4g}; "
        if outcome.model == "linear":
            return text + "linear regression, sd of the noise unknown"
        return text + f"{outcome.model} regression, log of the mean"


def _listed(names: list[str]) -> str:
    """Names, the middle of a long list left out."""
    if len(names) <= _NAMES_SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMES_SHOWN - 2])}, ..., {names[-1]} ({len(names)})"
