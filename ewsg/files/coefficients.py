"""Coefficients of standardised columns, turned draw by draw into those of the file's own columns."""

import dataclasses
import io
import math

import numpy as np
from jaxtyping import Float

from ..result.mixing import mixing
from ..result.run import Run
from .encoding import INTERCEPT, Encoding

TABLE = "table"
"""The entry of `run.settings` that holds the encoding."""
_QUANTILES = (0.05, 0.95)
Draws = Float[np.ndarray, "chain draw p"]


@dataclasses.dataclass(frozen=True)
class Coefficients:
    """Coefficients on the scale of the file's own columns: print them as a table.

    Attributes:
        names: "(intercept)", columns, `column[level]`; of softmax regression, with the class in front.
        draws: of each, from the chains that are ok, in float64.
    """

    names: tuple[str, ...]
    draws: Draws

    @property
    def table(self) -> dict[str, np.ndarray]:
        """Mean, sd, 5 % and 95 % quantiles, Monte-Carlo standard error of the mean, ess and R-hat, by name."""
        ess, rhat = mixing(np.moveaxis(self.draws, 2, 0))
        flat = self.draws.reshape(-1, len(self.names))
        low, high = np.quantile(flat, _QUANTILES, axis=0)
        sd = flat.std(0, ddof=1)
        columns = {"mean": flat.mean(0), "sd": sd, "5%": low, "95%": high, "mcse": sd / np.sqrt(ess)}
        return {"coefficient": np.array(self.names)} | columns | {"ess": ess, "rhat": rhat}

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        grid = Table(box=None, header_style="bold", pad_edge=False)
        columns = self.table
        del columns["mcse"]
        for name in columns:
            grid.add_column(name, justify="left" if name == "coefficient" else "right", no_wrap=True)
        for name, mean, sd, low, high, ess, rhat in zip(*columns.values(), strict=True):
            numbers = (_rounded(value, sd) for value in (mean, sd, low, high))
            grid.add_row(str(name), *numbers, f"{ess:,.0f}", f"{rhat:.2f}")
        width = max(map(len, self.names)) + 90
        console = Console(width=width, file=io.StringIO(), record=True, highlight=False, markup=False, emoji=False)
        console.print(grid)
        return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def coefficients(run: Run) -> Coefficients:
    """The coefficients of a run of `Table.sample`, also of one that was saved and loaded.

    β = θ/s for a column of mean m and sd s, and the intercept a = 4 θ₀ − Σ β m; for a linear outcome of mean M and sd S
    all are multiplied by S, and M is added to the intercept. The scalar of the model is shown as sd of the noise or
    dispersion; coefficients of softmax regression are differences from those of the most frequent class.
    """
    encoding = Encoding.of(run.settings.get(TABLE))
    outcome, draws = encoding.outcome, run.good_draws()
    names = ("(intercept)", *(feature.name for feature in encoding.features))
    if outcome.model == "softmax":
        theta = _double(draws)
        against = outcome.classes.index(outcome.reference)
        others = [k for k in range(len(outcome.classes)) if k != against]
        parts = [_original(theta[..., k] - theta[..., against], encoding) for k in others]
        named = tuple(f"{outcome.classes[k]}: {name}" for k in others for name in names)
        return Coefficients(named, np.concatenate(parts, axis=-1))
    if not isinstance(draws, dict):
        return Coefficients(names, _original(_double(draws), encoding))
    found = _original(_double(draws["coefficients"]), encoding)
    scalar = next(name for name in draws if name != "coefficients")
    value = np.exp(_double(draws[scalar])) * (outcome.scale if scalar == "log_scale" else 1.0)
    label = "(sd of the noise)" if scalar == "log_scale" else "(dispersion)"
    return Coefficients((*names, label), np.concatenate([found, value[..., None]], axis=-1))


def _double(draws: np.ndarray) -> np.ndarray:
    return np.asarray(draws, np.float64)


def _original(theta: Draws, encoding: Encoding) -> Draws:
    """Coefficients of the columns themselves, the intercept first."""
    centres = np.array([feature.centre for feature in encoding.features])
    scales = np.array([feature.scale for feature in encoding.features])
    outcome = encoding.outcome
    slopes = outcome.scale * theta[..., 1:] / scales
    intercept = outcome.centre + outcome.scale * INTERCEPT * theta[..., 0] - slopes @ centres
    return np.concatenate([intercept[..., None], slopes], axis=-1)


def _rounded(value: float, sd: float) -> str:
    """A number to two digits of its sd: 0.513 with an sd of 0.021, 1,234 with one of 56."""
    if not (math.isfinite(sd) and sd > 0):
        return f"{value:.3g}"
    digits = 1 - math.floor(math.log10(sd))
    if digits > 7 or digits < -6:
        return f"{value:.3e}"
    return f"{round(value, digits):,.{max(0, digits)}f}"
