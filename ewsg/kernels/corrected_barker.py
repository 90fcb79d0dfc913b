"""Barker's dynamics corrected for the noise of the gradient: c-SGBD."""

import dataclasses

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _random
from .._core import pytree
from .._core.component import check_count, check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..errors import InputError
from ..estimators.base import batch_noise, draw_batch
from ..integrators.barker import Barker
from ..integrators.base import Phase
from ..integrators.signed import moved
from ..interface import Cost, EstimateInfo, StepInfo
from ..sampler import AbstractKernel, AbstractSampler, SamplerState
from ..target.target import Target

_LOGISTIC_PER_NORMAL = 1.702
"""Φ(x) ≈ 1/(1 + exp(−1.702 x)), with an error below 0.01."""


class CorrectedBarker(AbstractKernel):
    r"""c-SGBD, the corrected stochastic gradient Barker dynamics (Mauri and Zanella 2024, arXiv 2405.08999).

    θ_i' = θ_i ± z_i,   P(+) = 1/(1 + exp(−a_i z_i·force_i/T)),   a_i = k/√(k² − (τ_i z_i/T)²),   k = 1.702,

    and the sign of z_i·force_i itself where |τ_i z_i/T| ≥ k, with the z of `Barker`: as in the authors' code
    (maurilorenzo/sgbd). Targets exp(−V/T) as h → 0. If the noise of the force is normal with the sd τ_i, the mean of
    P(+) is that of the full gradient up to 0.02, because the logistic function is nearly Φ(·/k): not exactly, so that
    strong noise leaves the drift near the mode up to 6 % too weak.

    The force is that of b different data. After each step τ̂ ← βτ̂ + (1 − β)·s, s² = (n − b)/((n − 1)b) times the sample
    variance of n∇V_i in the batch, and τ = τ̂/(1 − β^t) at step t. Costs b datum gradients per step, each kept as a row.

    Args:
        batch_size: b, at least 2.
        step_size: h, for ∇V; a step has the root mean square √(2hT).
        temperature: T.
        decay: β, from 0 up to but not including 1.
        spread: the relative spread of the sizes z, as in `Barker`.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> method = ewsg.CorrectedBarker(batch_size=4, step_size=0.02)
        >>> run = ewsg.sample(target, method, init=jnp.array(4.0), num_steps=20, num_chains=2, seed=0)
        >>> run.cost.datum_gradients
        160
    """

    batch_size: int = eqx.field(static=True, converter=plain)
    step_size: float = eqx.field(converter=plain)
    temperature: float = eqx.field(default=1.0, converter=plain)
    decay: float = eqx.field(default=0.9, converter=plain)
    spread: float = eqx.field(default=0.1, converter=plain)

    def __check_init__(self):
        check_count("CorrectedBarker", "batch_size", self.batch_size, 2)
        check_positive("CorrectedBarker", "decay", self.decay, zero=True)
        if not isinstance(self.decay, jax.core.Tracer) and self.decay >= 1:
            raise InputError(f"CorrectedBarker: decay must be below 1, not {self.decay!r}")
        self.plain()

    def plain(self) -> Barker:
        """The same without the correction."""
        return Barker(self.step_size, self.temperature, spread=self.spread)

    def upward(self, size: Float[Array, "*d"], force: Float[Array, "*d"], sd: Float[Array, "*d"]) -> Float[Array, "*d"]:
        """The probability of a step up, for sizes z, a force and the sd τ of its noise."""
        noise = (sd * size / (_LOGISTIC_PER_NORMAL * self.temperature)) ** 2
        pull = size * force / self.temperature
        certain = (1 + jnp.sign(pull)) / 2
        return jnp.where(noise < 1, jax.nn.sigmoid(pull / jnp.sqrt(jnp.where(noise < 1, 1 - noise, 1.0))), certain)

    def bind(self, target: Target) -> "BarkerSampler":
        if self.batch_size > target.num_data:
            raise InputError(
                f"CorrectedBarker: batch_size {self.batch_size} is larger than the number of data {target.num_data}: "
                "take a smaller batch"
            )
        return BarkerSampler(target, self)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class BarkerSampler(AbstractSampler):
    """c-SGBD bound to a target; the state's `estimator` is τ̂."""

    target: Target
    kernel: CorrectedBarker

    def init(self, key: Key, position: Position) -> SamplerState:
        del key
        zero = pytree.zeros_like(pytree.widened(position))
        return SamplerState(Phase(position, None), zero, jnp.int32(0))

    def step(self, key: Key, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        key_data, key_size, key_sign = _random.split(key, 3)
        position, size = state.phase.position, self.kernel.batch_size
        indices = draw_batch(key_data, self.target, size, replace=False)
        each = self.target.forces(position, indices)
        force = jax.tree.map(lambda rows: jnp.mean(rows, axis=0), each)
        running = jax.tree.map(self._averaged, state.estimator, each)
        scale = pytree.as_dtype(self.kernel.plain().scales(state.step).noise_scale, pytree.wide_dtype(position))
        sizes = self.kernel.plain().sizes(key_size, position, scale)
        sd = self._noise_sd(running, state.step + 1)
        upward = jax.tree.map(lambda z, f, s: self.kernel.upward(z, f.astype(z.dtype), s), sizes, force, sd)
        phase = Phase(moved(key_sign, position, sizes, upward), None)
        info = StepInfo(position, force, EstimateInfo(indices, Cost(size), {}))
        return SamplerState(phase, running, state.step + 1), info

    def _averaged(self, running: Array, rows: Array) -> Array:
        """βτ̂ + (1 − β)·s."""
        factor = batch_noise(self.target.num_data, self.kernel.batch_size, replace=False)
        sd = jnp.sqrt(factor * jnp.var(rows.astype(running.dtype), axis=0, ddof=1))
        return running + pytree.as_dtype(1 - self.kernel.decay, running.dtype) * (sd - running)

    def _noise_sd(self, running: Position, steps: Array) -> Position:
        """τ, the average without the weight of its start at 0."""
        dtype = pytree.wide_dtype(running)
        weight = 1 - jnp.asarray(self.kernel.decay, dtype) ** steps.astype(dtype)
        return pytree.scaled(1 / pytree.divisor(weight), running)

    @property
    def temperature(self) -> Scalar:
        return self.kernel.temperature

    def num_steps(self, budget: int) -> int:
        return max(0, budget // self.kernel.batch_size)

    def noise_ratio(self, key: Key, state: SamplerState) -> Scalar:
        """h Tr Cov(force)/(2dT), from τ."""
        del key
        sd = self._noise_sd(state.estimator, state.step)
        return self.kernel.step_size / (2 * self.kernel.temperature) * pytree.dot(sd, sd) / pytree.size(sd)
