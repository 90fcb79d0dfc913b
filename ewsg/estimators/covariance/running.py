"""The running mean of the minibatches' sample covariances."""

import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core import pytree
from ..._core.component import check_positive
from ..._core.types import Key, Position, Scalar
from ...errors import InputError
from ...interface import Kick
from ...target.target import Target
from .base import AbstractCovariance, Drag, Draw, Pull, check_sampled, deviations
from .drag import stretched
from .forms import AbstractForm, AbstractSampledForm
from .settings import OWNER, Settings


class RunningCovariance(AbstractCovariance[AbstractSampledForm]):
    """Mode "running": the t-th minibatch has the weight max(1/t, 1 − decay)."""

    form: AbstractSampledForm
    decay: Scalar

    @staticmethod
    def check(settings: Settings) -> None:
        check_positive(OWNER, "decay", settings.decay, zero=True)
        if not isinstance(settings.decay, jax.core.Tracer) and settings.decay > 1:
            raise InputError(f"{OWNER}: decay must be at most 1, not {settings.decay!r}")
        check_sampled("running", settings)

    @classmethod
    def make(cls, settings: Settings, form: AbstractForm) -> "RunningCovariance":
        assert isinstance(form, AbstractSampledForm)
        return cls(form, settings.decay)

    def init(self, key: Key, position: Position) -> Float[Array, "d *d"]:
        return self.form.empty(key, jnp.zeros_like(pytree.rows(position, leading=0)))[0]

    def drag(self, target: Target, kick: Kick, draw: Draw, pull: Pull, state: Float[Array, "d *d"]) -> Drag:
        covariance = self.form.second(deviations(target, kick.position, draw))
        first = 1 / jnp.asarray(kick.step + 1, covariance.dtype)
        weight = jnp.maximum(first, jnp.asarray(1 - self.decay, covariance.dtype))
        mean = state + weight * (covariance - state)
        return Drag(self.form.drag(stretched(mean, pull.root), pull.momentum, pull.rates), mean, 0, {})

    def cost(self, batch_size: int) -> int:
        return batch_size
