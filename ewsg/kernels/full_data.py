"""Kernels that evaluate all data in every step: how they are bound to a target, and checks of their starting points."""

import abc
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._core import pytree
from .._core.component import check_positive
from .._core.optional import require
from .._core.promotion import lenient
from .._core.types import Key, Position, Scalar
from ..errors import InputError
from ..integrators.base import Phase
from ..interface import Cost, EstimateInfo, StepInfo
from ..sampler import AbstractKernel, AbstractSampler, SamplerState
from ..target.density import densities
from ..target.target import Target

_ENERGY_TOLERANCE_IN_T = 0.1
_CHECKED_STARTS = 8


def blackjax() -> Any:
    """BlackJAX, imported only when it is needed."""
    return require("blackjax", extra="nuts")


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Also turn the key checker off, for BlackJAX's own loops: it mistakes their branches for key reuse."""
    with lenient(), jax.debug_key_reuse(False):
        yield


def tempered(target: Target, temperature: Scalar) -> Callable[[Position], Array]:
    """θ ↦ −V(θ)/T."""
    return lambda position: target.log_density(position) / temperature


class Move(NamedTuple):
    """One transition: the new position, the carried state, the number of passes over the data, and stats."""

    position: Position
    carried: Any
    passes: Int[Array, ""] | int
    stats: dict[str, Scalar]


class AbstractFullKernel(AbstractKernel):
    """A transition that evaluates all n data, once at the start and a number of times in every step."""

    temperature: eqx.AbstractVar[float]

    def __check_init__(self):
        check_positive(type(self).__name__, "temperature", self.temperature)

    @abc.abstractmethod
    def first(self, log_density: Callable, position: Position) -> Any:
        """The state to carry from step to step besides the position; takes one pass over the data."""

    @abc.abstractmethod
    def move(self, key: Key, log_density: Callable, position: Position, carried: Any) -> Move:
        """One transition."""

    @abc.abstractmethod
    def passes_per_step(self) -> int:
        """Passes over the data per step; raises InputError if that is not known in advance."""

    def prepared(self) -> Cost:
        """The cost of tuning (warm-up)."""
        return Cost(0)

    def bind(self, target: Target) -> "FullSampler":
        return FullSampler(target, self)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class FullSampler(AbstractSampler):
    """A kernel on all data, bound to a target. The pass at the start is counted in the first step."""

    target: Target
    kernel: AbstractFullKernel

    def init(self, key: Key, position: Position) -> SamplerState:
        del key
        with lenient():
            carried = self.kernel.first(tempered(self.target, self.temperature), position)
        return SamplerState(Phase(position, None), pytree.as_arrays(carried), jnp.int32(0))

    def step(self, key: Key, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        position = state.phase.position
        with lenient():
            moved = self.kernel.move(key, tempered(self.target, self.temperature), position, state.estimator)
        dtype = jax.tree.leaves(position)[0].dtype
        stats = {name: jnp.asarray(value).astype(dtype) for name, value in moved.stats.items()}
        passes = jnp.asarray(moved.passes).astype(jnp.uint32) + (state.step == 0).astype(jnp.uint32)
        cost = Cost(passes * jnp.uint32(self.target.num_data))
        phase = Phase(pytree.cast_like(moved.position, position), None)
        carried = pytree.cast_like(moved.carried, state.estimator)
        return SamplerState(phase, carried, state.step + 1), StepInfo(None, None, EstimateInfo(None, cost, stats))

    @property
    def temperature(self) -> Scalar:
        return self.kernel.temperature

    def num_steps(self, budget: int) -> int:
        spent = int(self.preparation_cost().datum_gradients) + self.target.num_data
        return max(0, (budget - spent) // (self.kernel.passes_per_step() * self.target.num_data))

    def preparation_cost(self) -> Cost:
        return self.kernel.prepared()

    def check(self, positions: Position) -> None:
        """Raise InputError if the log density at a (stacked) starting point is not finite or has too few digits."""
        check_digits(self.target, self.temperature, jax.tree.map(lambda leaf: leaf[:_CHECKED_STARTS], positions))


def check_digits(target: Target, temperature: Scalar, positions: Position) -> None:
    """Raise InputError if a log density is not finite, or so large that its rounding error affects acceptance."""
    all_rows = np.arange(target.num_data, dtype=np.int32)
    prior, likelihood = (np.asarray(part) for part in densities(target, positions, all_rows, summed=True))
    found = prior.astype(likelihood.dtype) + likelihood
    if not np.all(np.isfinite(found)):
        chain = int(np.flatnonzero(~np.isfinite(found))[0])
        raise InputError(
            f"the log density is {found[chain]} at the start of chain {chain}: "
            "start from a point of positive density (see init=)"
        )
    if np.max(np.spacing(np.abs(found))) > _ENERGY_TOLERANCE_IN_T * float(temperature):
        raise InputError(
            f"the log density at the start, {found.min():.3g}, has too few digits in {found.dtype}: "
            "start nearer to the mode, or turn on jax_enable_x64"
        )
