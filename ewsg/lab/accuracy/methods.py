"""The methods that are compared: each takes the same number of data per step, the same step size and friction."""

from collections.abc import Callable
from typing import Any

from ..._core import pytree
from ...estimators import (
    SMS,
    SVRG,
    ControlVariate,
    CovarianceFriction,
    Exponential,
    Full,
    MidpointFriction,
    Paired,
    Reshuffled,
    Uniform,
)
from ...integrators import ABOBA, BAOAB, UBU, Barker, Lattice, Overdamped, Thermostat, Underdamped
from ...kernels import CorrectedBarker
from ...problems import Problem
from ...recipes import Method
from ...sampler import AbstractKernel

_LARGE = 50
Builder = Callable[[Problem, Any, float], Method | AbstractKernel]


def _euler(estimator: Callable[[int], Any]) -> Builder:
    return lambda problem, start, h: Method(estimator(problem.data_per_step), Underdamped(h, problem.friction))


def _baoab(estimator: Callable[[int], Any]) -> Builder:
    return lambda problem, start, h: Method(estimator(problem.data_per_step), BAOAB(h, problem.friction))


def _overdamped(move: Callable[[float], Any]) -> Builder:
    return lambda problem, start, h: Method(Uniform(problem.data_per_step), move(h / problem.friction))


def _anchored(inner: Callable[[int], Any]) -> Builder:
    """A control variate at the starting point; half the data, each evaluated at the position and at the anchor."""
    return lambda problem, start, h: Method(
        ControlVariate(inner(problem.data_per_step // 2), anchor=start), BAOAB(h, problem.friction)
    )


def _refreshed(inner: Callable[[int], Any]) -> Builder:
    """Likewise with an anchor that is refreshed every two passes over the data."""

    def build(problem: Problem, start: Any, h: float) -> Method:
        half = problem.data_per_step // 2
        return Method(SVRG(inner(half), 2 * problem.target.num_data // half), BAOAB(h, problem.friction))

    return build


def _inertia(problem: Problem, h: float) -> float:
    """The inertia with which a thermostat settles within about 1,000 steps, a quarter of a run."""
    return 1000 * h / problem.friction


def _covariance(problem: Problem, mode: str) -> CovarianceFriction:
    """Friction from the covariance of the forces; only from its diagonal where the matrix would be large."""
    form = "full" if pytree.size(problem.init) <= _LARGE else "diagonal"
    return CovarianceFriction(Uniform(problem.data_per_step), mode=mode, form=form)


METHODS: dict[str, Builder] = {
    "SGLD": _overdamped(Overdamped),
    "SGBD": _overdamped(Barker),
    "c-SGBD": lambda problem, start, h: CorrectedBarker(problem.data_per_step, h / problem.friction),
    "SGLRW": _overdamped(Lattice),
    "SGHMC": _euler(Uniform),
    "SGHMC, BAOAB": _baoab(Uniform),
    "reshuffled, BAOAB": _baoab(Reshuffled),
    "SMS-UBU": lambda problem, start, h: Method(SMS(problem.data_per_step), UBU(h, problem.friction)),
    "SGNHT": lambda problem, start, h: Method(
        Uniform(problem.data_per_step), Thermostat(h, problem.friction, inertia=_inertia(problem, h))
    ),
    "SGNHT, per coordinate": lambda problem, start, h: Method(
        Uniform(problem.data_per_step),
        Thermostat(h, problem.friction, per_coordinate=True, inertia=_inertia(problem, h)),
    ),
    "CCAdL": lambda problem, start, h: Method(
        _covariance(problem, "running"), Thermostat(h, problem.friction, inertia=_inertia(problem, h))
    ),
    "covariance of the batch": lambda problem, start, h: Method(
        _covariance(problem, "batch"), BAOAB(h, problem.friction)
    ),
    "NOGIN": lambda problem, start, h: Method(MidpointFriction(problem.data_per_step), ABOBA(h, problem.friction)),
    "EWSG": _euler(lambda b: Exponential(b // 2)),
    "paired, Euler": _euler(lambda b: Paired(b // 2)),
    "paired": _baoab(lambda b: Paired(b // 2)),
    "paired, select": _baoab(lambda b: Paired(b // 2, "select")),
    "paired, sequential": _baoab(lambda b: Paired(b // 2, "sequential")),
    "control variate": _anchored(Uniform),
    "control variate + paired": _anchored(lambda b: Paired(b // 2)),
    "SVRG": _refreshed(Uniform),
    "SVRG + paired": _refreshed(lambda b: Paired(b // 2)),
    "full gradient": _baoab(lambda b: Full()),
}
"""By name. EWSG and the paired rules take half the data twice, or in pairs: equal data per step.

SGLD, SGBD, c-SGBD and SGLRW move by h/γ, as underdamped Langevin does in its overdamped limit. The full gradient takes
n data per step, hence fewer steps. SVRG pays for its passes over the data out of the same budget.
"""

PLAN = "plan"
"""The row without settings: the library is given the posterior and the budget, and chooses everything itself."""

EVALUATED_TWICE = ("CCAdL", "covariance of the batch")
"""Methods whose data a dedicated program would evaluate once: ours computes force and covariance separately.

They are given twice the budget, so that they take as many steps as the others.
"""
