"""Corrections: estimators that hand an anchored target to another estimator."""

import equinox as eqx

from ..errors import InputError, shown
from ..interface import Cost
from .base import AbstractEstimator


class AbstractCorrection(AbstractEstimator):
    """An estimator that hands an anchored target to an inner one: each datum is evaluated at θ and at the anchor."""

    inner: eqx.AbstractVar[AbstractEstimator]

    @property
    def multiple(self) -> int:
        """The number of evaluations that replace each evaluation of the inner estimator."""
        return 2

    def __check_init__(self):
        if not isinstance(self.inner, AbstractEstimator):
            raise InputError(f"{type(self).__name__} wraps an estimator, such as Uniform(32), not {shown(self.inner)}")

    def check(self, num_data: int, has_momentum: bool) -> None:
        if isinstance(self.inner, AbstractCorrection):
            outer, inner = type(self).__name__, type(self.inner).__name__
            raise InputError(f"{outer}({inner}(...)) would correct gradients twice: keep one of the two")
        self.inner.check(num_data, has_momentum)

    def cost(self, num_data: int) -> Cost:
        return multiplied(self.multiple, self.inner.cost(num_data))

    def spent(self, num_steps: int, num_data: int) -> int:
        return self.multiple * self.inner.spent(num_steps, num_data)

    def noise_factor(self, num_data: int) -> float:
        return self.inner.noise_factor(num_data)

    def probe_cost(self, num_data: int) -> int:
        return self.multiple * self.inner.probe_cost(num_data)


def multiplied(multiple: int, cost: Cost) -> Cost:
    """The cost with `multiple` evaluations in place of each one."""
    return Cost(multiple * cost.datum_gradients, multiple * cost.datum_directional)
