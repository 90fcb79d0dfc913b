"""Quasi-Newton descent in the metric of the empirical Fisher information, which comes with every look."""

import dataclasses
import itertools

import numpy as np
from jaxtyping import Float

from .curvature import Spectrum
from .looks import Look, Sample

_MOST_PAIRS = 20
_LEAST_SHARE_OF_DECREASE = 1e-4
_SMALLEST_STEP_SCALE = 1e-4
_SHRINK_FACTORS = 0.1, 0.5
_STEEP_RATIO, _LONGER_FACTOR = 0.9, 10.0
_IDLE_STEPS = 2
_IDLE_GAIN_RATIO = 0.2
_NEGLIGIBLE_GAIN_NATS = 0.02
_LEAST_COSINE = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class Objective:
    """V(θ) = −Σ_i w_i ℓ_i(θ) − log π(θ) + slope·θ over the data of a sample.

    Attributes:
        sample: the data, with their weights.
        slope: the gradient of V over all data minus that over the sample, where the sample stands in for all data.
        metric: a fixed metric (a precision matrix) in place of Σ w_i ∇ℓ_i ∇ℓ_iᵀ − ∇² log π.
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
        """The spectrum of the metric at a look."""
        metric = at.products + at.prior_precision if self.metric is None else self.metric
        return Spectrum(np.diag(np.diag(metric)) if self.diagonal else metric)


def descend(objective: Objective, path: list[Look], most: int, near: float) -> list[Look]:
    """θ ← θ − H⁻¹∇V from the last point of `path`, each step shortened until V falls.

    H⁻¹ is the L-BFGS approximation from the steps of the path and the metric M at its last point. The descent ends
    when √(∇Vᵀ M⁻¹ ∇V / d) ≤ near, when two steps in a row gain almost nothing, or after `most` looks. If no step of
    any length lowers V, it continues with the diagonal of the metric.

    Args:
        objective: the potential V.
        path: looks already taken, the last of which is the start; all finite.
        most: the largest number of looks.
        near: the distance to the mode at which to stop, in standard deviations, rms over directions.

    Returns:
        The recent part of the path, continued; only the last look has its matrices.

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
        if found is None and not objective.diagonal:  # far from the mode, one datum may dominate the metric
            objective, path = dataclasses.replace(objective, diagonal=True), path[-1:]
            spectrum = objective.spectrum(path[-1])
            continue
        if found is None:
            break
        gain = objective.value(path[-1]) - objective.value(found)
        path = [*path[-_MOST_PAIRS:-1], path[-1].without_matrices(), found]
        spectrum = objective.spectrum(found)
        length = spectrum.length(objective.gradient(found))
        idle = 0 if gain > _IDLE_GAIN_RATIO * size * near**2 else idle + 1
    return path


def _step(objective: Objective, path: list[Look], spectrum: Spectrum, most: int) -> tuple[Look | None, int]:
    """The next point, or None if `most` looks find none that lowers V; and the number of looks taken.

    A point that is not lower still carries information on the curvature: it joins the path just before the present
    point, and the step is computed again; from the second such point on the step is also shortened.
    """
    here, scale, used = path[-1], 1.0, 0
    gradient = objective.gradient(here)
    while used < most and scale > _SMALLEST_STEP_SCALE:
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
    """Lengthen the step tenfold, repeatedly, while V still falls along it almost as steeply as at its start.

    Far from the mode the empirical Fisher information may exceed the curvature by orders of magnitude (in a linear
    regression by the squared residuals), and a step may be so short that rounding the parameters removes it.
    """
    slope = float(objective.gradient(here) @ step)
    while used < most and float(objective.gradient(there) @ step) < _STEEP_RATIO * slope:
        step, slope = _LONGER_FACTOR * step, _LONGER_FACTOR * slope
        beyond = objective.sample.look(here.theta + step)
        used += 1
        if not beyond.is_finite or objective.value(beyond) > objective.value(there):
            break
        there = beyond
    return there, used


def is_lower(objective: Objective, here: Look, there: Look, spectrum: Spectrum, expected: float = 0.0) -> bool:
    """Whether V falls by a share of the expected change, or rises by no more than rounding with a smaller gradient."""
    change = objective.value(there) - objective.value(here)
    if change <= _LEAST_SHARE_OF_DECREASE * expected and change < 0:
        return True
    before, after = (spectrum.length(objective.gradient(at)) for at in (here, there))
    return change <= _NEGLIGIBLE_GAIN_NATS and after < before


def _shortened(change: float, expected: float) -> float:
    """The factor, within bounds, to the minimum of the parabola with V at both ends of a step and its initial slope."""
    least, largest = _SHRINK_FACTORS
    if not np.isfinite(change) or change <= expected:
        return least
    return float(np.clip(-expected / (2 * (change - expected)), least, largest))


def _inverse(
    objective: Objective, path: list[Look], spectrum: Spectrum, gradient: Float[np.ndarray, " d"]
) -> Float[np.ndarray, " d"]:
    """H⁻¹ g by the two-loop recursion of L-BFGS over the steps of the path, starting from the metric."""
    recent = itertools.pairwise(path[-_MOST_PAIRS - 1 :])
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
