"""The ground a plan stands on: coordinates, and estimators prepared in them."""

import dataclasses

import numpy as np
from jaxtyping import Float

from .._core import pytree
from .._core.types import Position
from ..estimators import AbstractEstimator, ControlVariate, Full, Leverage, Paired
from ..integrators import Walled
from ..sampler import MethodInCoordinates as Method
from ..target.coordinates import Dense
from ..target.target import Target
from .rule import FIRST, FRICTION, FULL, SECOND, Setting

_FEWEST_PROBES, _MOST_PROBES = 2, 16
_PROBE_GRADIENTS = 4_000
_SEQUENTIAL_DIMENSION = 64


@dataclasses.dataclass(frozen=True)
class Ground:
    """Coordinates, and the estimators that are prepared in them.

    Attributes:
        target: the posterior, over the user's parameters.
        coordinates: θ = c + L z.
        within: the posterior of z.
        points: of z, where the leverage of the data is measured.
        estimators: by kind, prepared.
        spent: datum gradients of the preparation.
    """

    target: Target
    coordinates: Dense
    within: Target
    points: Float[np.ndarray, "p d"]
    estimators: dict[str, AbstractEstimator]
    spent: int

    @property
    def dimension(self) -> int:
        """d."""
        return self.coordinates.dimension

    @property
    def rule(self) -> str:
        """The rule of `Paired`: pair after pair where d² operations per datum are cheap."""
        return rule_for(self.dimension)

    def method(self, setting: Setting) -> tuple[Method, AbstractEstimator]:
        """Estimator, integrator and coordinates; and the estimator as it is prepared."""
        radius = 1.5 * self.dimension**0.5 + 6
        move = Walled(setting.step_size, FRICTION, radius=radius)
        if setting.kind == FULL:
            return Method(Full(), move, self.coordinates), Full()
        pairs = Paired(setting.batch // 2, self.rule)
        prepared = _with_pairs(self.estimators[setting.kind], pairs)
        plain = _with_pairs(_estimator(setting.kind, self.rule, self.points), pairs)
        return Method(plain, move, self.coordinates), prepared

    def second_order_unprepared(self) -> AbstractEstimator:
        """The second order without its sums, which do not change the noise."""
        d = self.dimension
        nothing = np.zeros(d, self.points.dtype)
        estimator = _estimator(SECOND, self.rule, self.points)
        return dataclasses.replace(estimator, slope=nothing, curvature=np.zeros((d, d), self.points.dtype))

    def with_second_order(self) -> "Ground":
        """The same, with a control variate of second order: 2 d passes over the data."""
        estimator, cost = _estimator(SECOND, self.rule, self.points).prepare(self.within)
        spent = self.spent + int(cost.datum_gradients)
        return dataclasses.replace(self, estimators=self.estimators | {SECOND: estimator}, spent=spent)


def lay(target: Target, center: Position, root: Float[np.ndarray, "d d"], points: Float[np.ndarray, "p d"]) -> Ground:
    """The ground with a control variate of first order and data drawn by their leverage."""
    dtype = pytree.wide_dtype(center)
    coordinates = Dense(center, np.asarray(root, dtype))
    within = target.in_coordinates(coordinates)
    points = np.asarray(points, dtype)
    first, cost = _estimator(FIRST, rule_for(len(root)), points).prepare(within)
    return Ground(target, coordinates, within, points, {FIRST: first}, int(cost.datum_gradients))


def num_probes(num_data: int) -> int:
    """At how many points the leverage of the data is measured: as many as 4,000 gradients pay for, from 2 to 16.

    With two, one datum in twenty has less than a quarter of its leverage: too little where few data matter.
    """
    return min(_MOST_PROBES, max(_FEWEST_PROBES, _PROBE_GRADIENTS // num_data))


def rule_for(dimension: int) -> str:
    """The rule of `Paired` in so many dimensions."""
    return "sequential" if dimension <= _SEQUENTIAL_DIMENSION else "weight"


def _estimator(kind: str, rule: str, points: np.ndarray) -> ControlVariate:
    pairs, anchor = Paired(1, rule), np.zeros(points.shape[1], points.dtype)
    if kind == SECOND:
        return ControlVariate(pairs, anchor=anchor, order=2)
    return ControlVariate(Leverage(pairs, points=points), anchor=anchor)


def _with_pairs(estimator: AbstractEstimator, pairs: Paired) -> AbstractEstimator:
    """The same wrappers around other pairs."""
    if isinstance(estimator, Paired):
        return pairs
    assert isinstance(estimator, ControlVariate | Leverage)
    return dataclasses.replace(estimator, inner=_with_pairs(estimator.inner, pairs))
