"""The role of an estimator: answer a kick with a force."""

import abc
import contextlib
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .. import _random
from .._core.component import Component, check_count
from .._core.settings import check_flags
from .._core.types import Indices, Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick, times_root
from ..target.target import Target

PROBE_DATA = 32
"""Data whose directional derivatives estimate the gradient noise."""


class AbstractEstimator(Component):
    """An estimate of the force ∇(−V) from a few of the n data.

    A new estimator is one file with one subclass, which implements `estimate`, `cost` and `noise_factor`, and overrides
    the other methods where their defaults below do not fit. An estimator never needs to know the integrator: all that
    matters about it is in the `Kick`, every field of which must be honoured (`tests/compliance/` checks this).
    """

    def __check_init__(self):
        check_flags(self)

    def prepare(self, target: Target) -> tuple["AbstractEstimator", Cost]:
        """This estimator after work done once for all chains (a mode search, a clustering), and the cost of that work.

        Inside `ControlVariate` the target is the anchored one: count gradients by its `likelihood.passes`.
        """
        del target
        return self, Cost(0)

    def init(self, key: Key, target: Target, position: Position) -> Any:
        """The estimator's state before the first step, for one chain."""
        del key, target, position
        return ()

    def seen(self, target: Target, position: Position) -> Target:
        """The target from which this estimator draws at `position`; that of a wrapper is anchored or weighted."""
        del position
        return target

    @abc.abstractmethod
    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        """The force for this kick, the next state, and a report."""

    @abc.abstractmethod
    def cost(self, num_data: int) -> Cost:
        """The evaluations of one estimate, for `num_data` data."""

    @abc.abstractmethod
    def noise_factor(self, num_data: int) -> float:
        """Cov(force) / Cov(n∇V_i of one uniform datum): 1/b for b independent data, 0 for the full gradient."""

    def check(self, num_data: int, has_momentum: bool) -> None:
        """Raise InputError if the settings do not fit the data or the dynamics."""

    def reads_noise(self) -> bool:
        """Whether the force depends on `Kick.noise` where there is no momentum; a wrapper asks what it wraps."""
        inner = getattr(self, "inner", None)
        return isinstance(inner, AbstractEstimator) and inner.reads_noise()

    def spent(self, num_steps: int, num_data: int) -> int:
        """The datum gradients of the first `num_steps` steps: at least `num_steps` times `cost`."""
        return num_steps * int(self.cost(num_data).datum_gradients)

    def num_steps(self, budget: int, num_data: int) -> int:
        """The number of steps that a budget of datum gradients pays for."""
        most = max(0, budget) // int(self.cost(num_data).datum_gradients)
        if self.spent(most, num_data) <= budget:
            return most
        return max(0, bisect_right(range(most + 1), budget, key=lambda steps: self.spent(steps, num_data)) - 1)

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: Any, metric: Position | None = None
    ) -> Scalar:
        """An unbiased estimate of Tr √P Cov(force) √P at `position` for a diagonal metric P, None being P = I.

        For u ~ N(0, P), the variance over data of u · n∇V_i has mean Tr √P Cov(n∇V_i) √P. Costs `probe_cost`
        directional derivatives.
        """
        del state
        if self.probe_cost(target.num_data) == 0:
            return 0.0
        key_direction, key_data = _random.split(key)
        direction = probe_direction(key_direction, position, metric)
        indices = target.draw(key_data, PROBE_DATA, replace=True)
        factor = self.noise_factor(target.num_data)
        return factor * jnp.var(target.directional(position, indices, direction), ddof=1)

    def probe_cost(self, num_data: int) -> int:
        """The number of directional derivatives, of one datum each, that `noise_trace` evaluates."""
        return 0 if num_data < 2 or self.noise_factor(num_data) == 0.0 else PROBE_DATA


class AbstractMinibatch(AbstractEstimator):
    """An estimator whose minibatches have `batch_size` data."""

    batch_size: eqx.AbstractVar[int]

    def __check_init__(self):
        check_count(type(self).__name__, "batch_size", self.batch_size, 1)

    def check(self, num_data: int, has_momentum: bool) -> None:
        del has_momentum
        replace = getattr(self, "replace", False)
        if not replace and self.batch_size > num_data:
            raise InputError(
                f"{type(self).__name__}: batch_size {self.batch_size} is larger than the number of data {num_data}: "
                "take a smaller batch, or draw with replacement (Uniform(..., replace=True)), or use Full()"
            )


@contextlib.contextmanager
def setting_named(owner: str, setting: str) -> Iterator[None]:
    """Let errors about `init` that are raised inside name this setting of an estimator instead."""
    try:
        yield
    except InputError as error:
        text = str(error)
        is_named = text.startswith("init") or " at init:" in text
        where = re.sub(r"\binit\b", setting, text, count=1) if is_named else f"at {setting}, {text}"
        raise InputError(f"{owner}: {where}") from error


def probe_direction(key: Key, position: Position, metric: Position | None) -> Position:
    """A draw from N(0, P), a pytree like the position."""
    return times_root(metric, _random.normal_like(key, position))


def draw_batch(key: Key, target: Target, batch_size: int, replace: bool) -> Indices:
    """A minibatch, with or without replacement: uniform, or with the probabilities of a weighted target."""
    return target.draw(key, batch_size, replace)


def batch_noise(num_data: int, batch_size: int, replace: bool) -> float:
    """The covariance of the mean of a uniform minibatch, relative to that of one datum."""
    if replace or num_data == 1:
        return 1 / batch_size
    return (num_data - batch_size) / (num_data - 1) / batch_size
