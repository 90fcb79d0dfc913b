"""How far the draws of a run are from the reference answer, and what they cost."""

from typing import Any

import jax
import numpy as np

from ... import diagnostics
from ..._core import ess as _ess
from ...problems import Answer, Problem
from ...result.run import Run

_KSD_DRAWS = 600
_CURVE_POINTS = 12
MOST_FAILED = 0.01


def measure(problem: Problem, answer: Answer, run: Run) -> dict[str, Any]:
    """One run against the reference: bias of the pooled chains, and the error of one chain at its cost.

    Attributes of the result:
        failed: fraction of chains that diverged; above 1 % there are no further numbers.
        kl, kl_floor: of the pooled second halves, and of exact draws with the same effective sample size.
        mean_rms, mean_max, sd_ratio_worst, sd_ratio_median: as in `diagnostics.moment_errors`.
        ksd: kernel Stein discrepancy of some of the pooled draws.
        ess_per_million: smallest effective sample size per 10^6 datum gradients.
        cost, error: datum gradients of one chain, and the error that it has then: see `error_curve`.
    """
    gradients = run.cost.data_passes * problem.target.num_data
    steps = run.settings["num_steps"]
    result: dict[str, Any] = {
        "failed": float(1 - run.ok.mean()),
        "steps": steps,
        "gradients_per_chain": gradients,
        "microseconds_per_step": 1e6 * run.cost.seconds / max(steps, 1) / len(run.ok),
    }
    if result["failed"] > MOST_FAILED:
        return result
    draws = run.good_draws()
    seen = diagnostics.flatten(problem.seen(draws))
    late = seen[:, seen.shape[1] // 2 :]
    ess = _ess.ess(late)
    dimension = seen.shape[2]
    curve = error_curve(seen, answer)
    kinetic = run.stats.get("kinetic_temperature")
    return result | {
        "kl": diagnostics.gaussian_kl(answer.mean, answer.cov, late),
        "kl_floor": dimension * (dimension + 3) / (4 * float(np.mean(ess))),
        **diagnostics.moment_errors(late, answer.mean, answer.sd)._asdict(),
        "ksd": _ksd(problem, draws),
        "ess_per_million": float(ess.min()) / (gradients / 2 * len(seen)) * 1e6,
        "kinetic_temperature": None if kinetic is None else float(np.mean(kinetic[run.ok])),
        "cost": [_cost(run, gradients, k / seen.shape[1]) for k, _ in curve],
        "error": [error for _, error in curve],
    }


def _cost(run: Run, gradients: float, share: float) -> float:
    """Datum gradients of one chain until a share of its draws is there; those of a plan come first."""
    steps, discard = run.settings["num_steps"], run.settings["discard"]
    planning = run.cost.planning_gradients / len(run.ok)
    return float(planning + (gradients - planning) * (discard + (steps - discard) * share) / max(steps, 1))


def error_curve(draws: np.ndarray, answer: Answer) -> list[tuple[int, float]]:
    """(draws of a chain, the error of that chain's own estimates), at logarithmically spaced lengths.

    error² = mean over chains and coordinates of ((m − μ)/σ)² + (s/σ − 1)², with m and s the mean and sd of the second
    half of one chain, μ and σ those of the posterior: bias and variance together, as a user of one chain sees them.
    """
    total = draws.shape[1]
    lengths = np.unique(np.geomspace(4, total, _CURVE_POINTS).round().astype(int))
    curve = []
    for length in lengths:
        half = draws[:, length // 2 : length]
        means = (half.mean(1) - answer.mean) / answer.sd
        sds = half.std(1, ddof=1) / answer.sd - 1
        curve.append((int(length), float(np.sqrt(np.mean(means**2 + sds**2)))))
    return curve


def _ksd(problem: Problem, draws: Any) -> float:
    """KSD of evenly spaced draws of the second half."""

    def few(leaf: np.ndarray) -> np.ndarray:
        late = leaf[:, leaf.shape[1] // 2 :]
        flat = late.reshape(1, -1, *late.shape[2:])
        return flat[:, :: max(1, flat.shape[1] // _KSD_DRAWS)][:, :_KSD_DRAWS]

    return diagnostics.ksd(jax.tree.map(few, draws), problem.target)
