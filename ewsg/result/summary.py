"""The summary of a run: a table of parameters, diagnostics, and warnings."""

import dataclasses
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.optional import require
from . import paired
from .advice import advice, no_draws
from .columns import diagnostic, formatted
from .estimates import Estimates, estimates
from .html import summary_html

if TYPE_CHECKING:
    from .run import Run


@dataclasses.dataclass(frozen=True)
class Summary:
    """Estimates by parameter, diagnostics of the run, and warnings.

    Attributes:
        parameters: column name -> values, one entry per parameter (the first 20): parameter, mean, sd, 5%, 95% (the
            quantiles of the draws), mcse, ess, ess_per_million (effective draws per 10^6 datum gradients), rhat. For a
            run that kept moments in place of draws: parameter, mean, sd, rhat. Empty if nothing was kept.
        diagnostics: numbers about the whole run, by name.
        warnings: sentences; empty when all is well. Those on mixing take all parameters into account, not only those
            in the table.
        hidden: the number of parameters that the table leaves out.
        title: the first line.
        extreme: a line on the largest R-hat of all parameters, if the table leaves some out.
        verdict: the verdict on a planned run in words (`run.verdict`); also a warning if the accuracy was not reached.
    """

    parameters: dict[str, np.ndarray]
    diagnostics: dict[str, float]
    warnings: list[str]
    hidden: int
    title: str
    extreme: str = ""
    verdict: str = ""

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        columns = list(self.parameters)
        for column in columns:
            table.add_column(column, justify="left" if column == "parameter" else "right")
        for row in zip(*self.parameters.values(), strict=True):
            table.add_row(*(formatted(column, value) for column, value in zip(columns, row, strict=True)))
        # Names may contain brackets. In a notebook Rich would display every print by itself, whatever its file.
        console = Console(
            width=110, record=True, file=io.StringIO(), highlight=False, markup=False, emoji=False, force_jupyter=False
        )
        console.print(self.title, soft_wrap=True)
        if self.verdict:
            console.print(f"{'! ' if self.verdict in self.warnings else ''}{self.verdict}", soft_wrap=True)
        if columns:
            console.print(table)
        if self.hidden:
            console.print(f"... and {self.hidden} more parameters")
        if self.extreme:
            console.print(self.extreme, soft_wrap=True)
        numbers = (diagnostic(name, value) for name, value in self.diagnostics.items())
        console.print(", ".join(numbers), soft_wrap=True)
        for sentence in self.warnings:
            if sentence != self.verdict:
                console.print(f"! {sentence}", soft_wrap=True)
        return console.export_text().rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return summary_html(self)

    def to_pandas(self) -> Any:
        """The table of the parameters as a `pandas.DataFrame`, with their names as index."""
        frame = require("pandas").DataFrame(self.parameters)
        return frame.set_index("parameter") if self.parameters else frame


def summarize(run: "Run", found: Estimates | None = None) -> Summary:
    """The summary of the good chains of a run, from their `estimates` if these are known already."""
    if run.ok.any() and num_kept(run) == 0:
        return Summary({}, _cost(run), [no_draws(run)], 0, repr(run))
    diagnostics = _diagnostics(run)
    found = estimates(run) if found is None else found
    hidden = found.total - len(found.table["parameter"]) if found.table else 0
    verdict = "" if run.verdict is None else str(run.verdict)
    warnings = advice(run, diagnostics, found)
    return Summary(found.table, diagnostics, warnings, hidden, repr(run), _extreme(found), verdict)


def num_kept(run: "Run") -> int | None:
    """Draws per chain; None if there are no stats to tell."""
    return next((values.shape[1] for values in run.stats.values()), None)


def _extreme(found: Estimates) -> str:
    """If the table does not show everything, a line on the parameter with the largest R-hat."""
    if found.worst is None or found.total <= len(found.table.get("parameter", ())):
        return ""
    ess = "" if np.isnan(found.worst.ess) else f" (ess {found.worst.ess:,.0f})"
    return f"Of all parameters, the largest R-hat is {found.worst.rhat:.2f} at {found.worst.name}{ess}"


def _diagnostics(run: "Run") -> dict[str, float]:
    """Means of the stats over draws and good chains, the error that `Paired` predicts from them, and the cost."""
    means = {}
    for name, values in run.stats.items():
        if values.ndim > 2:  # one number per parameter, for `heat`
            continue
        numbers = values[run.ok]
        numbers = numbers[~np.isnan(numbers)]
        if numbers.size:
            means[name] = float(numbers.mean())
    return paired.diagnose(means, run.settings.get("estimator")) | _cost(run)


def _cost(run: "Run") -> dict[str, float]:
    cost = {
        "data_passes": run.cost.data_passes,
        "seconds": run.cost.seconds,
        "compile_seconds": run.cost.compile_seconds,
    }
    return cost | ({"planning_seconds": run.cost.planning_seconds} if run.cost.planning_seconds else {})
