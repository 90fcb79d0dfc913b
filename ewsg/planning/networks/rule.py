"""The rule for networks: step and friction from the largest curvature, data per step from the noise.

h = 0.1/√λ_max, γ = 0.07 √λ_max, and m such that `Paired` is predicted to change posterior sds by at most 2 %. No
metric: one from the Hessian explodes, and a diagonal one gained nothing where it was tried.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ...estimators import Full, Paired
from ...integrators import BAOAB
from ...result.paired import sd_error_of_tilts
from ...sampler import Method

STEP, FRICTION = 0.1, 0.07
"""h √λ_max and γ/√λ_max."""
_BIAS = 0.02
_FEWEST_DATA = 4
_SEQUENTIAL_DIMENSION = 64


class Setting(NamedTuple):
    """What a step does.

    Attributes:
        batch: m, data per step; 0 is all of them.
        step_size: h.
        friction: γ.
        rule: of `Paired`.
    """

    batch: int
    step_size: float
    friction: float
    rule: str

    def method(self) -> Method:
        """Estimator and integrator."""
        estimator = Paired(self.batch // 2, self.rule) if self.batch else Full()
        return Method(estimator, BAOAB(self.step_size, self.friction))

    def per_step(self, num_data: int) -> int:
        """Datum gradients per step, of one chain."""
        return self.batch or num_data

    def steps(self, relaxations: float) -> int:
        """Steps in which the momentum forgets so many times: each takes the time 1/γ."""
        return math.ceil(relaxations / (self.friction * self.step_size))

    def halved(self) -> "Setting":
        """Half the step with as many data: less error of the step, and less noise, at twice the price."""
        return self._replace(step_size=self.step_size / 2)


class Prediction(NamedTuple):
    """What minibatches are predicted to do.

    Attributes:
        noise_ratio: ρ = h Tr Cov(force)/(2γd), gradient noise over injected noise.
        bias: relative error of posterior sds.
    """

    noise_ratio: float
    bias: float


def choose(
    curvature: float, tilts: Float[np.ndarray, "..."], dimension: int, num_data: int, more: int = 1
) -> tuple[Setting, Prediction]:
    """The setting, and what its minibatches are predicted to do: all data where no minibatch is large enough.

    Args:
        curvature: λ_max.
        tilts: q = r·(G_j − G_i) of pairs of data.
        dimension: d.
        num_data: n.
        more: takes so many times as many data.
    """
    root = math.sqrt(curvature)
    rule = "sequential" if dimension <= _SEQUENTIAL_DIMENSION else "weight"
    setting = Setting(0, STEP / root, FRICTION * root, rule)
    for batch in _even_numbers(num_data // more):
        found = predicted(tilts, setting._replace(batch=batch), dimension)
        if found.bias <= _BIAS:
            return setting._replace(batch=more * batch), found
    return setting, Prediction(0.0, 0.0)


def predicted(tilts: Float[np.ndarray, "..."], setting: Setting, dimension: int) -> Prediction:
    """From the tilts D = h q/m of pairs, with Tr Cov(force) = E[q²]/(2m)."""
    tilt = setting.step_size * tilts / setting.batch
    trace = float(np.mean(tilts**2)) / (2 * setting.batch)
    ratio = setting.step_size * trace / (2 * setting.friction * dimension)
    return Prediction(ratio, sd_error_of_tilts(tilt, ratio, setting.rule))


def _even_numbers(below: int) -> Iterator[int]:
    """4, 6, 8, 10, 12, 14, 16, 20, ...: about a quarter apart, below a bound."""
    number = _FEWEST_DATA
    while number < below:
        yield number
        number += max(2, 2 * (number // 8))
