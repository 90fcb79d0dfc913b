"""The paper's Gaussian in the plane, for several draws of its centres: KL divergence against data passes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ....diagnostics import gaussian_kl
from ....problems.gaussian import centres, log_likelihood
from ....recipes import Method
from ....result.run import Run
from ....target.target import Target
from ...panels import Curve
from ..budget import snapshots
from ..claims import interval
from ..experiment import Work, column

NUM_DATA = 50
FRICTION = 10.0
FIRST_DRAW = 42
_SETTLED, _NOISE = 0.5, 3.0
READING = [
    "The centres c_i ~ N(0, I) are not given and change the numbers, even the order of methods: every comparison is "
    "repeated over draws of the centres, and intervals are over these.",
    "The start is not given: chains start at 0.",
    "KL is that of the target from the Gaussian with the mean and covariance of the chains' positions.",
]


def target(draw: int) -> Target:
    """V(θ) = Σ ½‖θ − c_i‖² with the centres of a draw."""
    return Target(log_likelihood, None, centres(draw))


def floor(num_chains: int) -> float:
    """The KL that as many exact draws would have, d(d + 3)/(4m)."""
    return 10 / (4 * num_chains)


def kl_curves(work: Work, methods: Mapping[str, Method], draws: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
    """KL after each data pass, for each method and each draw of the centres."""
    return {name: [kl_curve(work, name, method, draw) for draw in draws] for name, method in methods.items()}


def kl_curve(work: Work, name: str, method: Method, draw: int) -> dict[str, Any]:
    """One method on one draw: `value` is None if chains diverged, else `passes`, `kl`, and `settled`."""
    posterior, passes = target(draw), work["data_passes"]
    thin, paid = snapshots(posterior, method, range(1, passes + 1))
    return work.sample(
        f"{name}, centres {draw}",
        posterior,
        method,
        _measure(centres(draw), paid),
        init=jnp.zeros(2),
        seed=draw,
        num_chains=work["chains"],
        data_passes=passes,
        discard=0,
        thin=thin,
    )


def _measure(data: np.ndarray, paid: Mapping[float, int]) -> Callable[[Run], dict[str, Any]]:
    mean, cov = data.astype(np.float64).mean(0), np.eye(data.shape[1]) / len(data)

    def measure(run: Run) -> dict[str, Any]:
        draws = np.asarray(run.good_draws())
        kl = [gaussian_kl(mean, cov, draws[:, k - 1 : k]) for k in paid.values()]
        passes = list(paid)
        return {"passes": passes, "kl": kl, "settled": settled(passes, kl, floor(len(draws)))}

    return measure


def settled(passes: Sequence[float], kl: Sequence[float], noise: float) -> int:
    """The data pass after which KL differs from its last value by at most half of that, plus three times its noise."""
    off = np.flatnonzero(np.abs(np.array(kl) - kl[-1]) > _SETTLED * kl[-1] + _NOISE * noise)
    return int(passes[off[-1] + 1] if len(off) else passes[0])


def final_kl(rows: Sequence[dict[str, Any]]) -> list[float | None]:
    """KL at the full budget, one number per draw of the centres; None where chains diverged."""
    return column(rows, lambda value: value["kl"][-1])


def settling(rows: Sequence[dict[str, Any]]) -> list[float | None]:
    """Data passes until KL has settled, one number per draw of the centres; None where chains diverged."""
    return column(rows, lambda value: value["settled"])


def as_curve(rows: Sequence[dict[str, Any]]) -> Curve:
    """The geometric mean over draws and the range over them; empty if any diverged."""
    if any(row["value"] is None for row in rows):
        return Curve([], [])
    kl = np.array([row["value"]["kl"] for row in rows])
    return Curve(
        rows[0]["value"]["passes"], np.exp(np.log(kl).mean(0)).tolist(), kl.min(0).tolist(), kl.max(0).tolist()
    )


def numbers(curves: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """The numbers of results.json: KL at the end with its interval over draws, and the curves."""
    return {
        name: {
            "kl": interval(final_kl(rows))._asdict(),
            "kl_of_each_draw": final_kl(rows),
            "settled_after_passes": settling(rows),
            "failed_chains": [row["failed"] for row in rows],
            "steps": rows[0]["steps"],
            "curves": [row["value"] for row in rows],
        }
        for name, rows in curves.items()
    }
