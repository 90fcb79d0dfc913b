"""The role of a covariance: compute the drag on a momentum, and learn from every minibatch."""

import abc
import math
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._core import pytree
from ..._core.types import Indices, Key, Position, Scalar
from ...errors import InputError
from ...interface import Kick
from ...target.target import Target
from .drag import Rates
from .forms import AbstractForm
from .settings import OWNER, Settings

FormT = TypeVar("FormT", bound=AbstractForm)


class Draw(NamedTuple):
    """A minibatch of the inner estimator.

    Attributes:
        indices: the row numbers of its data.
        force: the mean of their G_i = n∇(−V_i).
        replace: whether they were drawn with replacement.
        datum_gradients: the number of datum gradients that the inner estimator evaluates per step.
    """

    indices: Indices
    force: Position
    replace: bool
    datum_gradients: int


class Pull(NamedTuple):
    """The momentum r/√P, in coordinates where the metric P is I; √P (None for P = I); and the rates of friction."""

    momentum: Float[Array, " d"]
    root: Float[Array, " d"] | None
    rates: Rates


class Drag(NamedTuple):
    """The drag, the covariance's next state, the datum gradients of a calibration, and scalars for `run.stats`."""

    drag: Float[Array, " d"]
    state: Any
    calibration: Int[Array, ""] | int
    stats: dict[str, Scalar]


class AbstractCovariance(eqx.Module, Generic[FormT]):
    """One mode of `CovarianceFriction`, with a state of its own."""

    form: eqx.AbstractVar[FormT]

    @staticmethod
    @abc.abstractmethod
    def check(settings: Settings) -> None:
        """Raise InputError if a setting of this mode is invalid, or is given with another mode."""

    @classmethod
    @abc.abstractmethod
    def make(cls, settings: Settings, form: AbstractForm) -> "AbstractCovariance":
        """The covariance with these settings."""

    @abc.abstractmethod
    def init(self, key: Key, position: Position) -> Any:
        """The state before the first step."""

    @abc.abstractmethod
    def drag(self, target: Target, kick: Kick, draw: Draw, pull: Pull, state: Any) -> Drag:
        """scale · √P Ĉ √P r at this kick, and the state after this minibatch."""

    @abc.abstractmethod
    def cost(self, batch_size: int) -> int:
        """Datum gradients per step in addition to the inner estimator's, without calibrations."""

    def calibrations(self, num_steps: int, num_data: int, inner_gradients: int) -> int:
        """How many of the first `num_steps` steps calibrate; the inner estimator costs `inner_gradients` per step."""
        del num_steps, num_data, inner_gradients
        return 0


def check_sampled(mode: str, settings: Settings) -> None:
    """Raise InputError if the minibatches of this mode have no sample covariance."""
    if settings.mode == mode and settings.batch_size < 2:
        raise InputError(f"{OWNER}(mode={mode!r}) needs a batch_size of at least 2 for a sample covariance")


def force_rows(target: Target, position: Position, indices: Indices) -> Float[Array, "b d"]:
    """G_i = n∇(−V_i) as rows, one per datum."""
    return pytree.rows(target.forces(position, indices))


def deviations(target: Target, position: Position, draw: Draw) -> Float[Array, "b d"]:
    """Rows A, from the minibatch, such that AᵀA is an unbiased estimate of Cov(G_i)."""
    each = force_rows(target, position, draw.indices)
    b, n = draw.indices.shape[0], target.num_data
    finite = 1.0 if draw.replace else (n - 1) / n  # the sample variance of distinct data is n/(n − 1) too large
    return (each - jnp.mean(each, axis=0, keepdims=True)) * math.sqrt(finite / (b - 1))
