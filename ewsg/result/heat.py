"""Warnings for single parameters that are not at the temperature of the target, or not everywhere."""

from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Float

from .._core import pytree
from .estimates import scalar_names
from .mixing import mixing
from .remedy import smaller_step

if TYPE_CHECKING:
    from .run import Run

_VIRIAL_TOLERANCE = 0.1
"""Relative deviation of a temperature from T."""
_STANDARD_ERRORS = 4.0
_SLOPE_TOLERANCE = 0.05
"""Relative change of the temperature per posterior sd; it shifts the mean by about as many sds."""
_SUSPECT_PARAMETERS = 20
_FEWEST_DRAWS = 4


def warnings(run: "Run") -> list[str]:
    """At most two: on the parameter that is farthest from T, and on one along which the temperature changes.

    They come from `run.stats["virial"]`, −(θ_k − c_k) F_k with mean T, and `run.stats["virial_slope"]`,
    (θ_k − c_k)((θ − c)·F + (d + 1) T) with mean 0. If the temperature is T (1 + a (θ_k − c_k)/sd_k), the latter has the
    mean −(d + 1) T a sd_k.
    """
    if run.stats.get("virial") is None or not run.ok.any() or run.stats["virial"].shape[1] < _FEWEST_DRAWS:
        return []
    return [*_off(run), *_changing(run)]


def is_hot(by_chain: Float[np.ndarray, " chain"], tolerance: float, standard_errors: float) -> bool:
    """Whether temperatures of chains, relative to the target's, are above 1 by more than chance and a tolerance.

    Judged on 1 + log T above 1: hot chains differ from each other by factors, and one that is far hotter than the
    others would otherwise hide them all in the standard error.
    """
    if len(by_chain) < 2:
        return False
    squeezed = np.where(by_chain > 1, 1 + np.log(np.maximum(by_chain, 1)), by_chain)
    error = squeezed.std(ddof=1) / np.sqrt(len(squeezed))
    return bool(squeezed.mean() - 1 > tolerance + standard_errors * error)


def _off(run: "Run") -> list[str]:
    relative = np.asarray(run.stats["virial"][run.ok], np.float64) / run.temperature
    off = relative.mean((0, 1)) - 1
    suspects = _largest(np.abs(off))
    excess = np.abs(off[suspects]) - _VIRIAL_TOLERANCE - _STANDARD_ERRORS * _standard_errors(relative[..., suspects])
    if not np.any(excess > 0):
        return []
    worst = int(suspects[np.argmax(excess)])
    others = int(np.sum(excess > 0)) - 1
    more = f" (and {others} more)" if others else ""
    times = 2 * abs(off[worst]) / _VIRIAL_TOLERANCE
    return [
        f"{_name(run, worst)}{more} is {'hotter' if off[worst] > 0 else 'colder'} than the target temperature, "
        f"{run.temperature * (1 + off[worst]):.2f} against {run.temperature:g}, although the average over all "
        f"parameters is not: its sd is off by about {abs(off[worst]) / 2:.0%}. Run longer if it mixes slowly; "
        f"otherwise {smaller_step(run.settings, times)}."
    ]


def _changing(run: "Run") -> list[str]:
    slope = np.asarray(run.stats["virial_slope"][run.ok], np.float64)
    dimension = slope.shape[2]
    change = -slope.mean((0, 1)) / ((dimension + 1) * run.temperature * _sds(run, dimension))
    suspects = _largest(np.abs(slope.mean((0, 1))) / np.maximum(slope.std((0, 1)), 1e-300))
    scores = np.abs(slope[..., suspects].mean((0, 1))) / _standard_errors(slope[..., suspects])
    scores = np.where(np.abs(change[suspects]) > _SLOPE_TOLERANCE, scores, 0.0)
    if not np.any(scores > _STANDARD_ERRORS):
        return []
    worst = int(suspects[np.argmax(scores)])
    times = 2 * abs(change[worst]) / _SLOPE_TOLERANCE
    return [
        f"The temperature changes along {_name(run, worst)}, by {abs(change[worst]):.0%} per posterior sd (score "
        f"{scores.max():.1f}), because the step is too large for a posterior that is steeper on one side: "
        f"{smaller_step(run.settings, times)}."
    ]


def _largest(values: Float[np.ndarray, " d"]) -> np.ndarray:
    """The indices of the largest values, at most `_SUSPECT_PARAMETERS` of them; NaN comes last."""
    order = np.argsort(np.where(np.isnan(values), -np.inf, values))[::-1]
    return order[:_SUSPECT_PARAMETERS]


def _standard_errors(values: Float[np.ndarray, "chain draw p"]) -> Float[np.ndarray, " p"]:
    """Standard errors of the means: from the autocorrelation within chains or the spread between them, if larger."""
    moved = np.moveaxis(values, 2, 0)
    ess = mixing(moved).ess
    within = values.std((0, 1)) / np.sqrt(np.maximum(np.nan_to_num(ess, nan=1.0), 1.0))
    if len(values) == 1:
        return np.maximum(within, 1e-300)
    between = values.mean(1).std(0, ddof=1) / np.sqrt(len(values))
    return np.maximum(np.maximum(within, between), 1e-300)


def _sds(run: "Run", dimension: int) -> Float[np.ndarray, " d"] | float:
    """Posterior sd of each parameter; 1 in coordinates, which are chosen so, and infinite if it is not known.

    It is not known of the unconstrained position of a constrained parameter, whose draws are those of the latter.
    """
    if _in_coordinates(run):
        return 1.0
    names, known = scalar_names(run.draws), _names(run)
    draws = pytree.host_rows(run.good_draws(), 2)
    sds = dict(zip(names, draws.std((0, 1)), strict=True)) if names else {}
    found = np.array([sds.get(name, 0.0) for name in known]) if len(known) == dimension else np.zeros(dimension)
    return np.where(found > 0, found, np.inf)


def _names(run: "Run") -> list[str]:
    """The names of the scalars that chains sample."""
    support = run.settings.get("support")
    if support is None:
        return scalar_names(run.draws)
    names = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(run.fingerprint.get("position")):
        name = pytree.leaf_name(path)
        shown = f"{name} (unconstrained)" if name in support["constrained"] else name
        names += scalar_names({shown: np.asarray(leaf)[None, None]})
    return names


def _in_coordinates(run: "Run") -> bool:
    return run.settings.get("coordinates") is not None


def _name(run: "Run", number: int) -> str:
    names = _names(run)
    if _in_coordinates(run) or len(names) != run.stats["virial"].shape[2]:
        return f"coordinate {number}"
    return names[number]
