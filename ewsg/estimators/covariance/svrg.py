"""Moments over all data, calibrated periodically and updated by every minibatch (Alg. 2)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..._core import pytree
from ..._core.component import check_count, check_positive
from ..._core.types import Key, Position
from ...errors import InputError
from ...interface import Kick
from ...target.target import Target
from .base import AbstractCovariance, Drag, Draw, Pull, force_rows
from .drag import orthonormal
from .forms import AbstractForm, GradientMoments
from .settings import OWNER, Settings

_NUMBERS_PER_BLOCK = 2**18


class SVRGCovariance(AbstractCovariance[AbstractForm]):
    """Mode "svrg": m₂ − m₁m₁ᵀ, projected to be positive semi-definite."""

    form: AbstractForm
    steps: int | None = eqx.field(static=True)
    passes: float | None = eqx.field(static=True)

    @staticmethod
    def check(settings: Settings) -> None:
        period, passes = settings.period, settings.passes
        if period is not None and passes is not None:
            raise InputError(f"{OWNER}: give period= (steps) or passes= (data passes), not both")
        if (period is not None or passes is not None) and settings.mode != "svrg":
            raise InputError(
                f"{OWNER}: period= and passes= are for mode='svrg', mode={settings.mode!r} never calibrates"
            )
        if period is not None:
            if period == 0:
                raise InputError(f"{OWNER}: a calibration period of 0 is not possible: give at least 1 step")
            check_count(OWNER, "period", period, 1)
        if passes is not None:
            if passes == 0:
                raise InputError(f"{OWNER}: a calibration period of 0 passes is not possible: give more")
            check_positive(OWNER, "passes", passes)

    @classmethod
    def make(cls, settings: Settings, form: AbstractForm) -> "SVRGCovariance":
        return cls(form, settings.period, settings.passes)

    def init(self, key: Key, position: Position) -> GradientMoments:
        zero = jnp.zeros_like(pytree.rows(position, leading=0))
        return GradientMoments(position, zero, *self.form.empty(key, zero))

    def drag(self, target: Target, kick: Kick, draw: Draw, pull: Pull, state: GradientMoments) -> Drag:
        due = kick.step % self._period(target.num_data, draw.datum_gradients) == 0
        moments = jax.lax.cond(due, lambda old: self._calibrate(target, kick, old), lambda old: old, state)
        drag, negative = self.form.moment_drag(moments.stretched(pull.root), pull.momentum, pull.rates)
        updated = self._update(target, kick, moments, draw)
        calibration = target.num_data * jnp.asarray(due, jnp.int32)
        return Drag(drag, updated, calibration, {"projected": negative.astype(pull.momentum.dtype)})

    def cost(self, batch_size: int) -> int:
        """G_i at θ and at ω for each of b data; for b = 1, G_i(θ) is the inner force and already counted."""
        return 1 if batch_size == 1 else 2 * batch_size

    def calibrations(self, num_steps: int, num_data: int, inner_gradients: int) -> int:
        return math.ceil(num_steps / self._period(num_data, inner_gradients))

    def _period(self, num_data: int, inner_gradients: int) -> int:
        """The number of steps from one calibration to the next."""
        if self.steps is not None:
            return self.steps
        passes = 1 if self.passes is None else self.passes
        return max(1, math.ceil(passes * num_data / inner_gradients))

    def _calibrate(self, target: Target, kick: Kick, moments: GradientMoments) -> GradientMoments:
        """m₁ and m₂ over all n data, in blocks of rows."""
        n = target.num_data
        sketch = moments.sketch
        if sketch is not None:
            sketch = jnp.where(kick.step == 0, sketch, orthonormal(moments.sketched()))
        block = max(1, min(n, _NUMBERS_PER_BLOCK // moments.mean.size))
        whole, rest = divmod(n, block)

        def add(start, count: int, total: tuple[Array, Array]) -> tuple[Array, Array]:
            each = force_rows(target, kick.position, start + jnp.arange(count, dtype=jnp.int32))
            return total[0] + jnp.sum(each, axis=0), total[1] + self.form.second(each, sketch)

        total = (jnp.zeros_like(moments.mean), jnp.zeros_like(moments.second))
        total = jax.lax.fori_loop(0, whole, lambda k, total: add(k * block, block, total), total)
        if rest:
            total = add(whole * block, rest, total)
        return GradientMoments(kick.position, total[0] / n, total[1] / n, sketch)

    def _update(self, target: Target, kick: Kick, moments: GradientMoments, draw: Draw) -> GradientMoments:
        """The moments with the terms of the chosen data moved from ω to θ (Alg. 2, lines 15 and 16)."""
        if draw.indices.shape[0] == 1:
            new = pytree.rows(draw.force, leading=0)[None]
        else:
            new = force_rows(target, kick.position, draw.indices)
        old = force_rows(target, moments.anchor, draw.indices)
        mean = moments.mean + jnp.sum(new - old, axis=0) / target.num_data
        change = self.form.second(new, moments.sketch) - self.form.second(old, moments.sketch)
        return moments._replace(mean=mean, second=moments.second + change / target.num_data)
