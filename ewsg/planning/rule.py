r"""The rule: how many data per step and how long a step, from the noise of the gradients.

In coordinates in which the posterior is nearly N(0, I), with friction γ = 1, only u = m/h costs anything, the number of
data per unit of time:

- tilts D = q/u of the pairs, q = r·(G_j − G_i), make the sd wrong by b(u) (`predicted_sd_error`): 3 b(u) ≤ accuracy;
- the noise of a kick, ν = h s²/u, is at most 0.05 where the noise is large: h = min(½, 0.05 u/s²₉₀), m = u h ≥ 2;
- error² · time = (2.5 g + 0.5/g) of a mean and an sd together, g = 1 + s²/2u being all the friction there is.

What is cheapest is taken: every datum in every step, data drawn by their leverage with a control variate of first
order, or a control variate of second order.
"""

import dataclasses
from typing import NamedTuple

import numpy as np

from .noise import Noise

FRICTION = 1.0
LARGEST_STEP = 0.5
_KICK_NOISE = 0.05
_SAFETY = 3.0
_FEWEST_DATA = 2
_RATES = np.geomspace(1.0, 1e7, 141)
FULL, FIRST, SECOND = "full", "first", "second"
EVALUATIONS = {FIRST: 2, SECOND: 4}
"""Gradients per datum and step: at the position and at the anchor; a product with a Hessian counts two."""


class Setting(NamedTuple):
    """What a step does.

    Attributes:
        kind: "full", "first" or "second": all data, or the order of the control variate.
        batch: m, data per step; 0 is all of them.
        step_size: h.
    """

    kind: str
    batch: int
    step_size: float

    def per_step(self, num_data: int) -> int:
        """Datum gradients per step, of one chain."""
        return num_data if self.kind == FULL else EVALUATIONS[self.kind] * self.batch

    def per_time(self, num_data: int) -> float:
        """Datum gradients per unit of time, of one chain."""
        return self.per_step(num_data) / self.step_size

    def halved(self) -> "Setting":
        """Half the step with as many data: less noise and less error of the step, at twice the price."""
        return self._replace(step_size=self.step_size / 2)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A setting, with what it is predicted to do.

    Attributes:
        setting: what a step does.
        bias: relative error of the sd.
        price: datum gradients until the accuracy is reached; with a budget, the square of the error then.
        work: error² · time, of the mean and the sd of one coordinate.
    """

    setting: Setting
    bias: float
    price: float
    work: float


def work(noise: float, rate: float) -> float:
    """error² · time of mean and sd of a unit Gaussian under friction 1 and that of the noise."""
    friction = FRICTION + (noise / (2 * rate) if rate else 0.0)
    return 2.5 * friction + 0.5 / friction


def full(num_data: int, accuracy: float, step_size: float = LARGEST_STEP, budget: float | None = None) -> Choice:
    """All data in every step: no noise, and an error of the step that whitened coordinates keep small."""
    setting = Setting(FULL, 0, step_size)
    return _priced(setting, 0.0, work(0.0, 0.0), num_data, accuracy, 0.0, budget)


def minibatches(
    kind: str, noise: Noise, rule: str, num_data: int, accuracy: float, extra: float = 0.0, budget: float | None = None
) -> Choice | None:
    """The best setting of a kind of minibatches, None if none is good enough.

    Args:
        kind: the order of the control variate.
        noise: as measured.
        rule: of `Paired`.
        num_data: n.
        accuracy: wanted.
        extra: datum gradients to prepare this kind.
        budget: datum gradients in all; None is as many as the accuracy takes.
    """
    best = None
    for rate in _RATES:
        step = min(LARGEST_STEP, max(_KICK_NOISE * rate / max(noise.high, 1e-12), _FEWEST_DATA / rate))
        batch = max(_FEWEST_DATA, 2 * int(np.ceil(rate * step / 2 - 1e-9)))
        if batch > num_data:
            break
        setting = Setting(kind, batch, float(step))
        bias = noise.bias(batch / step, rule)
        if budget is None and _SAFETY * bias > accuracy:
            continue
        choice = _priced(setting, bias, work(noise.mean, batch / step), num_data, accuracy, extra, budget)
        if best is None or choice.price < best.price:
            best = choice
    return best


def _priced(
    setting: Setting, bias: float, effort: float, num_data: int, accuracy: float, extra: float, budget: float | None
) -> Choice:
    per_time = setting.per_time(num_data)
    if budget is None:  # Monte-Carlo error of accuracy/2
        price = extra + effort * per_time / (accuracy / 2) ** 2
    else:
        left = budget - extra
        price = float("inf") if left <= 0 else (_SAFETY * bias) ** 2 + effort * per_time / left
    return Choice(setting, bias, price, effort)
