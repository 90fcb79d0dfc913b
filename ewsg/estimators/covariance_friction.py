"""Friction against the heat of subsampling, by the covariance of the minibatch force: EWSG-VR and its relatives."""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from .. import _random
from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from . import covariance
from .base import AbstractEstimator
from .exponential import Exponential
from .uniform import Uniform


class FrictionState(NamedTuple):
    """The inner estimator's state, and that of the covariance."""

    inner: Any
    covariance: Any


class CovarianceFriction(AbstractEstimator):
    r"""force = inner force − (h/2T) Ĉ r,   Ĉ ≈ Cov(inner force).

    Subsampling adds h² Cov(force) to the variance of every kick; by fluctuation–dissipation the friction matrix
    Γ = (σ²I + h·Ĉ)/(2T) = γI + (h/2T) Ĉ balances it. The second term is applied as a force, so it works with every
    integrator that has a momentum. With G_i = n∇(−V_i) and f = Cov(force)/Cov(G_i) (1/b with replacement), `mode`
    chooses Ĉ:

    "svrg": f·(m₂ − m₁m₁ᵀ), EWSG-VR when the inner estimator is `Exponential` (Alg. 2). Every `period` steps,
        m₁ = mean G_i and m₂ = mean G_i G_iᵀ are computed over all n data at ω = θ (a calibration); after each step the
        terms of the chosen data are updated: m₁ += (1/n) Σ_batch (G_i(θ) − G_i(ω)), and m₂ likewise. A step uses the
        moments left by the previous step, or by its own calibration. Between calibrations the moments mix terms at ω
        and at θ. The distance the chain has moved then counts as covariance too, and data chosen twice may make Ĉ
        indefinite; a projection restores positive semi-definiteness, and `stats["projected"]` is the share of steps
        that needed it.
        Extra cost: n datum gradients per calibration, and 2b per step (1 for b = 1, where the force is G_i itself). In
        a loop of your own under `vmap`, keep the step counter unbatched (`in_axes=SamplerState(0, 0, None)`), so that a
        calibration is computed only when it is due.
    "running": f·mean of the minibatches' sample covariances, the t-th with weight max(1/t, 1 − decay); decay = 1 is
        the average of CCAdL (Shang et al. 2015). Needs b ≥ 2. Extra cost: b datum gradients per step.
    "batch": f·sample covariance of the present minibatch. Needs b ≥ 2. Extra cost: b datum gradients per step.

    Alg. 2 as printed explodes where h times an eigenvalue of Γ exceeds 2, as it does on the paper's own Gaussian (3.3
    at h = 0.05); `bound` is the remedy. `Exponential` already adds a friction of the same kind, so that the two
    together cool the chain too much at small steps; with `Uniform` inside the friction balances the noise. If the kick
    has a metric P, all of this holds in the coordinates θ/√P.

    Args:
        inner: `Uniform` or `Exponential`, whose force is the mean of G_i over a minibatch. (Reshuffled minibatches are
            already anticorrelated in time: with extra friction they over-cool.)
        mode: how Ĉ is estimated: "svrg", "running" or "batch", see above.
        period: the number of steps from one calibration to the next, for "svrg"; or
        passes: L, the same in data passes of the inner estimator, ⌈L·n / (inner cost)⌉ steps; 1 if neither is given.
        form: how Ĉ is stored. "full": a d × d matrix, d ≤ 2,000, with one eigendecomposition per step for "svrg"
            ("batch" keeps a b × d factor instead, for any d). "diagonal": the d variances. "low_rank" ("svrg" only):
            the Nyström approximation Ĉ ≈ ĈΩ(ΩᵀĈΩ)⁺ΩᵀĈ ≤ Ĉ in O(d·rank) memory, Ω random at first and turned towards
            the leading eigenvectors by every calibration.
        rank: the number of columns of Ω, for "low_rank".
        decay: the decay rate of the running mean, for "running".
        factor: multiplies the extra friction; None is the integrator's own: 1 for Euler–Maruyama, (1 + e^{−γh})/2 for
            BAOAB.
        bound: the largest share of a component of r that the extra friction may take in one step: the eigenvalues of
            (h²/2T) Ĉ, times the factor, are cut off there. None is the method as printed.
    """

    inner: Uniform | Exponential
    mode: str = eqx.field(static=True, default="svrg")
    period: int | None = eqx.field(static=True, default=None, converter=plain)
    passes: float | None = eqx.field(static=True, default=None, converter=plain)
    form: str = eqx.field(static=True, default="full")
    rank: int | None = eqx.field(static=True, default=None, converter=plain)
    decay: float = eqx.field(default=0.99, converter=plain)
    factor: float | None = eqx.field(default=None, converter=plain)
    bound: float | None = eqx.field(default=None, converter=plain)

    def __check_init__(self):
        name = type(self).__name__
        if not isinstance(self.inner, Uniform | Exponential):
            raise InputError(
                f"{name}: inner must be Uniform(...) or Exponential(...), whose force is the mean over a minibatch, "
                f"not {type(self.inner).__name__} (control variates go around it: SVRG({name}(Uniform(b)), ...))"
            )
        if self.factor is not None:
            check_positive(name, "factor", self.factor, zero=True)
        if self.bound is not None:
            check_positive(name, "bound", self.bound)
        covariance.check(self._settings())

    def _settings(self) -> covariance.Settings:
        return covariance.Settings(
            self.mode, self.form, self.period, self.passes, self.rank, self.decay, self.inner.batch_size
        )

    def _covariance(self) -> covariance.AbstractCovariance:
        return covariance.make(self._settings())

    def check(self, num_data: int, has_momentum: bool) -> None:
        self.inner.check(num_data, has_momentum)
        if not has_momentum:
            raise InputError("CovarianceFriction acts on a momentum, but this integrator has none: use Underdamped")

    def prepare(self, target: Target) -> tuple["CovarianceFriction", Cost]:
        inner, cost = self.inner.prepare(target)
        return dataclasses.replace(self, inner=inner), cost

    def init(self, key: Key, target: Target, position: Position) -> FrictionState:
        source = self._covariance()
        key_inner = key_form = key
        if source.form.is_random:
            key_inner, key_form = _random.split(key)
        state = source.init(key_form, position)
        return FrictionState(self.inner.init(key_inner, target, position), state)

    def estimate(
        self, key: Key, target: Target, kick: Kick, state: FrictionState
    ) -> tuple[Position, FrictionState, EstimateInfo]:
        force, inner, info = self.inner.estimate(key, target, kick, state.inner)
        assert info.indices is not None
        momentum, unravel = ravel_pytree(kick.over_root(kick.momentum))
        root = None if kick.metric is None else jnp.sqrt(pytree.rows(kick.metric, leading=0))
        pull = covariance.Pull(momentum, root, self._rates(kick, target.num_data, momentum.dtype))
        draw = covariance.Draw(info.indices, force, self.inner.replace, self._inner_gradients(target.num_data))
        found = self._covariance().drag(target, kick, draw, pull, state.covariance)
        friction = kick.over_root(unravel(-found.drag))
        gradients = self.cost(target.num_data).datum_gradients + found.calibration
        told = EstimateInfo(
            info.indices, Cost(gradients, info.cost.datum_directional), {**info.stats, **found.stats}, friction
        )
        return pytree.add_scaled(force, 1, friction), FrictionState(inner, found.state), told

    def _rates(self, kick: Kick, num_data: int, dtype: Any) -> covariance.Rates:
        """f·h/(2T) times the factor, and the bound, as rates of friction."""
        factor = kick.factor if self.factor is None else self.factor
        scale = factor * self.noise_factor(num_data) * kick.step_size / (2 * kick.temperature)
        ceiling = None if self.bound is None else pytree.as_dtype(self.bound / kick.step_size, dtype)
        return covariance.Rates(pytree.as_dtype(scale, dtype), ceiling)

    def _inner_gradients(self, num_data: int) -> int:
        return int(self.inner.cost(num_data).datum_gradients)

    def cost(self, num_data: int) -> Cost:
        """The evaluations of one estimate, without the n datum gradients of a calibration."""
        inner, extra = self.inner.cost(num_data), self._covariance().cost(self.inner.batch_size)
        return inner._replace(datum_gradients=inner.datum_gradients + extra)

    def spent(self, num_steps: int, num_data: int) -> int:
        calibrations = self._covariance().calibrations(num_steps, num_data, self._inner_gradients(num_data))
        return super().spent(num_steps, num_data) + num_data * calibrations

    def noise_factor(self, num_data: int) -> float:
        return self.inner.noise_factor(num_data)

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: FrictionState, metric: Position | None = None
    ) -> Scalar:
        return self.inner.noise_trace(key, target, position, state.inner, metric)
