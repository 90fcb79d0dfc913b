"""What speaks against the run of a network: temperatures, tilts, chains that failed; and how well it predicts."""

from typing import NamedTuple

import numpy as np

from ...result.heat import is_hot
from ...result.paired import rule_of, sd_error_of_stats
from ...result.run import Run
from ...target.target import Target
from .predictions import Agreement, agreement, predictions

MOST_HEAT = 0.05
"""Relative deviation of a temperature, over and above three standard errors."""
_MOST_BIAS = 0.05
_STANDARD_ERRORS = 3.0


class Watched(NamedTuple):
    """What the diagnostics of a run say about it.

    Attributes:
        kinetic: temperature of the momentum.
        configurational: temperature of the position: of where it has forgotten its start.
        bias: relative error of the sd that the tilts of the run predict.
        failed: the share of chains that became infinite.
        objections: what speaks against the run.
    """

    kinetic: float
    configurational: float
    bias: float
    failed: float
    objections: tuple[str, ...]


def watch(run: Run, settled: bool) -> Watched:
    """The temperatures of a run, and what speaks against it.

    Too hot is a kinetic temperature, or a configurational one, above 1 by more than 5 % and three standard errors; too
    cold, a kinetic one below. The configurational temperature is below 1 until a chain has forgotten where it began,
    and the kinetic one while the chain still climbs from the optimum to the posterior: `settled` is whether it is
    there.
    """
    failed = float(1 - run.ok.mean())
    if not run.ok.any():
        return Watched(float("inf"), float("inf"), 0.0, failed, ("failed",))
    stats = {name: np.asarray(values[run.ok], np.float64) for name, values in run.stats.items()}
    kinetics, configurationals = (stats[f"{name}_temperature"].mean(1) for name in ("kinetic", "configurational"))
    kinetic = float(kinetics.mean())
    bias = sd_error_of_stats(stats, rule_of(run.settings["estimator"])) if "tilt_second" in stats else 0.0
    hot = any(is_hot(each, MOST_HEAT, _STANDARD_ERRORS) for each in (kinetics, configurationals))
    cold = settled and 1 - kinetic > MOST_HEAT + _STANDARD_ERRORS * _standard_error(kinetics)
    found = {"failed": failed > 0, "hot": hot, "cold": cold, "tilts": bias > _MOST_BIAS}
    configurational = float(configurationals.mean())
    return Watched(kinetic, configurational, bias, failed, tuple(name for name, holds in found.items() if holds))


def known(run: Run, target: Target) -> Agreement:
    """How well the good chains of a run know their predictions."""
    if run.ok.sum() < 2:
        return Agreement(float("inf"), float("inf"))
    found = agreement(predictions(target, target.positions_of(run.good_draws())))
    return Agreement(*(number if np.isfinite(number) else float("inf") for number in found))


def _standard_error(by_chain: np.ndarray) -> float:
    """Of the mean over chains; infinite for a single chain."""
    return float(by_chain.std(ddof=1) / np.sqrt(len(by_chain))) if len(by_chain) > 1 else float("inf")
