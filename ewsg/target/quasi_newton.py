"""Quasi-Newton descent in the metric of the empirical Fisher information, which every look gives as well."""

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float

from .curvature import Spectrum
from .looks import Look, Sample

_PAIRS = 20
_DECREASE = 1e-4
_SMALLEST_STEP = 1e-4
_SHRINK = 0.1, 0.5
_STEEP, _LONGER = 0.9, 10.0
_IDLE_STEPS = 2
_IDLE_GAIN = 0.2
_NEGLIGIBLE_GAIN = 0.02
_LEAST_COSINE = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class Objective:
    """V(θ) = −Σ_i w_i ℓ_i(θ) − log π(θ) + slope·θ over the data of a sample.

    Attributes:
        sample: the data, with their weights.
        slope: what the sample's gradient lacks of that of all data.
        metric: the precision matrix to start from, in place of Σ w_i ∇ℓ_i ∇ℓ_iᵀ − ∇² log π.
        diagonal: whether only the diagonal of the metric is used.
    """

    sample: Sample
    slope: Float[np.ndarray, " d"] | float = 0.0
    metric: Float[np.ndarray, "d d"] | None = None
    diagonal: bool = False

    def value(self, at: Look) -> float:
        """V."""
        return -at.value - at.prior + float(np.sum(self.slope * at.theta))

    def gradient(self, at: Look) -> Float[np.ndarray, " d"]:
        """∇V."""
        return self.slope - at.force - at.prior_force

    def spectrum(self, at: Look) -> Spectrum:
        """The metric."""
        metric = at.products + at.prior_precision if self.metric is None else self.metric
        return Spectrum(np.diag(np.diag(metric)) if self.diagonal else metric)


def descend(objective: Objective, path: list[Look], most: int, near: float) -> list[Look]:
    """Points of falling V from the last of `path` on: θ ← θ − H⁻¹∇V, the step shortened where it overshoots.

    H is L-BFGS over the steps of the path, from the metric at its last point. Ends where √(∇Vᵀ M⁻¹ ∇V / d) ≤ near
    with M the metric, where two steps in a row gain nothing, or after `most` looks. Where no step of any length lowers
    V, the search goes on with the diagonal of the metric.

    Args:
        objective: the potential V.
        path: points already seen, the last of which is the start; all finite.
        most: the number of looks.
        near: distance to the mode, in standard deviations.

    Returns:
        The path, continued; only the last look has its matrices.

    References:
        J. Nocedal and S. Wright, Numerical Optimization, 2nd edition (2006), algorithms 3.1 and 7.4.
    """
    path, spare, idle = list(path), most, 0
    size = path[-1].theta.size
    spectrum = objective.spectrum(path[-1])
    length = spectrum.length(objective.gradient(path[-1]))
    while length > near * np.sqrt(size) and spare > 0 and idle < _IDLE_STEPS:
        found, used = _step(objective, path, spectrum, spare)
        spare -= used
        if found is None and not objective.diagonal:  # far away one datum may outweigh all others in the metric
            objective, path = dataclasses.replace(objective, diagonal=True), path[-1:]
            spectrum = objective.spectrum(path[-1])
            continue
        if found is None:
            break
        gain = objective.value(path[-1]) - objective.value(found)
        path = [*path[-_PAIRS:-1], path[-1].without_matrices(), found]
        spectrum = objective.spectrum(found)
        length = spectrum.length(objective.gradient(found))
        idle = 0 if gain > _IDLE_GAIN * size * near**2 else idle + 1
    return path


def _step(objective: Objective, path: list[Look], spectrum: Spectrum, most: int) -> tuple[Look | None, int]:
    """The next point, None if no step of at most so many looks lowers V; and the number of looks.

    A point that is not lower tells the curvature all the same: it joins the path, before the present point, and the
    step is computed again; from the second such point on it is shortened as well.
    """
    here, scale, used = path[-1], 1.0, 0
    gradient = objective.gradient(here)
    while used < most and scale > _SMALLEST_STEP:
        step = -_inverse(objective, path, spectrum, gradient)
        if not (np.all(np.isfinite(step)) and gradient @ step < 0):
            step = -spectrum.solve(gradient)
        expected = scale * float(gradient @ step)
        there = objective.sample.look(here.theta + scale * step)
        used += 1
        vanished = np.array_equal(there.theta, here.theta)
        if vanished or (there.is_finite and is_lower(objective, here, there, spectrum, expected)):
            return _farther(objective, here, there, scale * step, most, used)
        if there.is_finite:
            path.insert(-1, there.without_matrices())
        if used > 1 or not there.is_finite:
            scale *= _shortened(objective.value(there) - objective.value(here), expected)
    return None, used


def _farther(
    objective: Objective, here: Look, there: Look, step: Float[np.ndarray, " d"], most: int, used: int
) -> tuple[Look, int]:
    """The same step ten times as long, again and again, as long as V falls by it as steeply as at its start.

    Far from the mode the Fisher information may be larger than the curvature by orders of magnitude: in a regression
    by the squared residuals. A step may even vanish in the rounding of the parameters.
    """
    slope = float(objective.gradient(here) @ step)
    while used < most and float(objective.gradient(there) @ step) < _STEEP * slope:
        step, slope = _LONGER * step, _LONGER * slope
        beyond = objective.sample.look(here.theta + step)
        used += 1
        if not beyond.is_finite or objective.value(beyond) > objective.value(there):
            break
        there = beyond
    return there, used


def is_lower(objective: Objective, here: Look, there: Look, spectrum: Spectrum, expected: float = 0.0) -> bool:
    """Whether V falls by a part of what was expected; or hardly rises (by rounding), and its gradient is smaller."""
    change = objective.value(there) - objective.value(here)
    if change <= _DECREASE * expected and change < 0:
        return True
    before, after = (spectrum.length(objective.gradient(at)) for at in (here, there))
    return change <= _NEGLIGIBLE_GAIN and after < before


def _shortened(change: float, expected: float) -> float:
    """The minimum of the parabola through V at both ends of a step and its slope at the first, within bounds."""
    least, largest = _SHRINK
    if not np.isfinite(change) or change <= expected:
        return least
    return float(np.clip(-expected / (2 * (change - expected)), least, largest))


def _inverse(
    objective: Objective, path: list[Look], spectrum: Spectrum, gradient: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " d"]:
    """H⁻¹ g by the two loops of L-BFGS over the steps of the path, from the metric of the spectrum."""
    recent = itertools.pairwise(path[-_PAIRS - 1 :])
    steps = [(b.theta - a.theta, objective.gradient(b) - objective.gradient(a)) for a, b in recent]
    pairs = [(s, y) for s, y in steps if s @ y > _LEAST_COSINE * np.linalg.norm(s) * np.linalg.norm(y)]
    rest, parts = gradient, []
    for s, y in reversed(pairs):
        parts.append(s @ rest / (s @ y))
        rest = rest - parts[-1] * y
    scale = pairs[-1][0] @ pairs[-1][1] / spectrum.length(pairs[-1][1]) ** 2 if pairs else 1.0
    product = scale * spectrum.solve(rest)
    for (s, y), part in zip(pairs, reversed(parts), strict=True):
        product = product + s * (part - y @ product / (s @ y))
    return product
