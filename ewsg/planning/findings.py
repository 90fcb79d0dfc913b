"""The verdict on a run: how well its means and sds are known, and what speaks against them."""

import dataclasses
from statistics import NormalDist
from typing import Any

import numpy as np
from jaxtyping import Float

from .._core import pytree
from ..result.paired import sd_error_of_stats
from ..result.run import Run

_MOST_REFUSED = 1e-4
_FEWEST_REFUSALS = 5
_SLOPE_LIMIT = 3.5
_FALSE_ALARMS = 0.02


@dataclasses.dataclass(frozen=True)
class Findings:
    """What the draws and the diagnostics of a run say about it.

    Attributes:
        error: the largest Monte-Carlo standard error of a mean or an sd, in posterior sd.
        mean_error: of the mean of each number that is kept, as the user sees it: with constraints, constrained.
        sd_error: of each sd, likewise.
        bias: relative error of the sd that the tilts of the run predict.
        virial: −E[z_k F_k] of each coordinate: 1 where the chain has the right temperature.
        virial_error: its standard errors.
        slope: largest score |S_k|/se of the virial's slope along a coordinate.
        refused: share of steps refused at the wall.
        objections: what speaks against the run, in words; empty if nothing does.
    """

    error: float
    mean_error: Float[np.ndarray, " p"]
    sd_error: Float[np.ndarray, " p"]
    bias: float
    virial: Float[np.ndarray, " d"]
    virial_error: Float[np.ndarray, " d"]
    slope: float
    refused: float
    objections: tuple[str, ...]


def judge(run: Run, accuracy: float, rule: str | None) -> Findings:
    """The findings on the good chains of a run in coordinates, judged against an accuracy.

    Args:
        run: whose draws are the user's parameters, constrained where they are, and whose stats are in coordinates z.
        accuracy: in posterior standard deviations.
        rule: of `Paired`; None if every step takes all data.
    """
    draws = pytree.host_rows(run.good_draws(), 2)
    mean_error, sd_error = errors(draws)
    error = float(max(mean_error.max(), sd_error.max()))
    stats = {name: np.asarray(values[run.ok], np.float64) for name, values in run.stats.items()}
    virial, virial_error = _over_chains(stats["virial"].mean(1))
    overall, overall_error = _over_chains(stats["virial"].mean((1, 2)))
    slope, slope_error = _over_chains(stats["virial_slope"].mean(1))
    refused = float(stats["refused"].mean()) if "refused" in stats else 0.0
    bias = 0.0 if rule is None else sd_error_of_stats(stats, rule)
    # Long runs see biases far below the accuracy: scores are those of a run that is just long enough.
    enough = max(1.0, accuracy / 2 / error) if error > 0 else 1.0
    score = float(np.max(np.abs(slope) / np.maximum(slope_error, 1e-300)))
    objections = []
    steps = run.settings["num_steps"] - run.settings["discard"]
    if refused > _MOST_REFUSED and refused * steps * len(draws) >= _FEWEST_REFUSALS:
        objections.append("refused")
    # A short run is judged by what is far off; a run that is long enough, by what its errors allow.
    long_enough = error <= accuracy / 2
    largest = NormalDist().inv_cdf(1 - _FALSE_ALARMS / (2 * len(virial)))  # of d standard normal numbers
    allowed = accuracy + 2 * virial_error if long_enough else 2 * accuracy + 4 * virial_error
    each = np.abs(virial - 1) > np.maximum(allowed, largest * virial_error)
    if each.any() or abs(overall - 1) > accuracy + 2 * overall_error:
        objections.append("virial")
    if long_enough and score > max(_SLOPE_LIMIT, largest) * enough:
        objections.append("slope")
    if 2 * bias > accuracy:
        objections.append("tilts")
    return Findings(error, mean_error, sd_error, bias, virial, virial_error, score, refused, tuple(objections))


def errors(draws: Float[np.ndarray, "chain draw d"]) -> tuple[np.ndarray, np.ndarray]:
    """Monte-Carlo standard errors of means and sds, in posterior sd, from the spread of the chains' averages."""
    mean, sd = draws.mean((0, 1)), draws.std((0, 1))
    sd = np.where(sd > 0, sd, 1.0)
    _, mean_error = _over_chains(draws.mean(1))
    _, square_error = _over_chains(((draws - mean) ** 2).mean(1))
    return mean_error / sd, square_error / (2 * sd**2)


def _over_chains(values: np.ndarray) -> tuple[Any, Any]:
    """Mean over chains, and its standard error."""
    return values.mean(0), values.std(0, ddof=1) / np.sqrt(len(values))
