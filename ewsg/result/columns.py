"""The columns of the summary's table: how their values are written, and what they are."""

from typing import Any

MEANINGS = {
    "parameter": "name, with its index",
    "mean": "posterior mean",
    "sd": "posterior standard deviation",
    "5%": "5 % of the draws are below",
    "95%": "5 % of the draws are above",
    "mcse": "Monte-Carlo standard error of the mean: sd/√ess",
    "ess": "effective sample size: the number of independent draws that are worth as much for the mean",
    "ess_per_million": "effective sample size per million datum gradients",
    "rhat": "R-hat: 1 where all chains agree; above 1.05 they have not mixed",
}


def formatted(column: str, value: Any) -> str:
    """One entry of the table."""
    if column == "parameter":
        return str(value)
    if column == "ess":
        return f"{value:,.0f}"
    return f"{value:.2f}" if column == "rhat" else f"{value:.3g}"


def diagnostic(name: str, value: float) -> str:
    """A diagnostic of the run and its value, in words."""
    return f"{name.replace('_', ' ')} {value:.3g}"
