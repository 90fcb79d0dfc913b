"""The paper's claims, our findings, and whether each claim holds: decided by intervals from independent repeats."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table
from scipy import stats

from ...theory import Interval

CONFIDENCE = 0.95
COLUMNS = ("claim", "paper", "ours", "holds")


class Claim(NamedTuple):
    """One row of the table.

    Attributes:
        claim: what is claimed, in words.
        paper: what the paper says or prints.
        ours: what we found, with its interval.
        holds: "yes", "no" or "undecided", by `decide`.
    """

    claim: str
    paper: str
    ours: str
    holds: str


def interval(repeats: Iterable[float | None]) -> Interval:
    """mean ± t·s/√k of k independent repeats; None is a repeat that diverged, and counts as infinite."""
    values = np.array([math.inf if value is None else value for value in repeats], np.float64)
    if not np.all(np.isfinite(values)):
        return Interval(math.inf, math.inf, math.inf)
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)


def difference(one: Sequence[float | None] | np.ndarray, other: Sequence[float | None] | np.ndarray) -> Interval:
    """The interval of one_k − other_k over repeats k; infinite where only the first diverged."""
    diverged = [None in one, None in other]
    if any(diverged):
        value = {(True, False): math.inf, (False, True): -math.inf}.get((diverged[0], diverged[1]), math.nan)
        return Interval(value, value, value)
    return interval(np.subtract(np.array(one, np.float64), np.array(other, np.float64)))


def apart(one: Interval, other: Interval) -> Interval:
    """one − other, of independent estimates: the halves of their intervals add up as √(a² + b²)."""
    value = one.value - other.value
    if not math.isfinite(value):
        return Interval(value, value, value)
    half = math.hypot(one.high - one.value, other.high - other.value)
    return Interval(value, value - half, value + half)


def ratio(one: Sequence[float | None] | np.ndarray, other: Sequence[float | None] | np.ndarray) -> Interval:
    """The interval of the geometric mean of one_k/other_k over repeats k, all positive."""

    def logs(values: Sequence[float | None] | np.ndarray) -> list[float | None]:
        return [None if value is None else math.log(value) for value in values]

    found = difference(logs(one), logs(other))
    with np.errstate(over="ignore"):
        return Interval(*(float(np.exp(number)) for number in found))


def decide(found: Interval, low: float = -math.inf, high: float = math.inf) -> str:
    """Whether the estimate lies in [low, high]: "yes" or "no" if all of its interval does or does not."""
    if math.isnan(found.value):
        return "undecided"
    if low <= found.low and found.high <= high:
        return "yes"
    return "no" if found.high < low or found.low > high else "undecided"


def smaller(
    text: str, paper: str, one: Sequence[float | None], other: Sequence[float | None], what: str = "ratio"
) -> Claim:
    """The claim that `one` is smaller than `other`, by the ratio of positive numbers over paired repeats."""
    found = ratio(one, other)
    return Claim(text, paper, f"{what} {found}; {summary(one)} against {summary(other)}", decide(found, high=1.0))


def summary(values: Sequence[float | None]) -> str:
    """The mean over repeats, in three digits."""
    finite = [value for value in values if value is not None]
    return f"{np.mean(finite):.3g}" if len(finite) == len(values) else f"diverged ({len(values) - len(finite)} times)"


def markdown(claims: Iterable[Claim]) -> str:
    """The table in Markdown."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([cell.replace("|", "\\|") for cell in claim] for claim in claims)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(title: str, claims: Iterable[Claim]) -> Table:
    """The table for a terminal."""
    shown = Table(title=f"\n{title}", title_justify="left", box=None, pad_edge=False, show_lines=False)
    for column, share in zip(COLUMNS, (4, 2, 4, 1), strict=True):
        shown.add_column(column, ratio=share, header_style="bold", overflow="fold")
    for claim in claims:
        style = {"yes": "green", "no": "red"}.get(claim.holds, "yellow")
        shown.add_row(*claim[:3], f"[{style}]{claim.holds}[/{style}]")
    return shown
