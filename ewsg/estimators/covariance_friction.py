"""Friction against the heat of subsampling, by the covariance of the minibatch force: EWSG-VR and its relatives."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .. import _random
from .._core import pytree
from .._core.component import check_choice, check_count, check_positive
from .._core.settings import plain
from .._core.types import Indices, Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from ._covariance import Moments, clip, factor_drag, matrix_drag, moment_drag, orthonormal, sketched, stretched
from .base import AbstractEstimator
from .exponential import Exponential
from .uniform import Uniform

_MODES = ("svrg", "running", "batch")
_FORMS = ("full", "diagonal", "low_rank")
_MATRIX_LIMIT = 2_000
_BLOCK_VALUES = 2**18


class FrictionState(NamedTuple):
    """The inner estimator's state, and what is known of the covariance: `Moments`, a running mean, or nothing."""

    inner: Any
    covariance: Moments | Float[Array, "d *d"] | tuple[()]


class CovarianceFriction(AbstractEstimator):
    r"""force = inner force − (h/2T) Ĉ r,   Ĉ ≈ Cov(inner force).

    Subsampling adds h² Cov(force) to the variance of every kick; by fluctuation and dissipation the friction matrix
    Γ = (σ²I + h·Ĉ)/2T = γI + (h/2T) Ĉ balances it. The second part is a force, so it works with every integrator that
    has a momentum. With G_i = n∇(−V_i) and f = Cov(force)/Cov(G_i) (1/b with replacement), Ĉ is by `mode`

    "svrg": f·(m₂ − m₁m₁ᵀ), EWSG-VR when the inner estimator is `Exponential` (Alg. 2). m₁ = mean G_i and
        m₂ = mean G_i G_iᵀ over all n data at ω = θ, every `period` steps; after each step the terms of the chosen
        data are brought up to date: m₁ += (1/n) Σ_batch G_i(θ) − G_i(ω), and m₂ likewise. A step uses the moments
        left by the step before, or this step's calibration. Between calibrations the moments mix terms at ω and at θ:
        how far the chain has moved counts as covariance too, and data chosen twice cost positive semi-definiteness,
        which is restored by projection; `stats["projected"]` is the share of steps that needed it.
        Extra cost: n datum gradients per calibration, and 2b per step (1 for b = 1, where the force is G_i itself). In
        a loop of your own under `vmap`, keep the step counter unbatched (`in_axes=SamplerState(0, 0, None)`), so that a
        calibration is computed only when it is due.
    "running": f·mean of the minibatches' sample covariances, the t-th with weight max(1/t, 1 − decay); decay = 1 is
        the average of CCAdL (Shang et al. 2015). Needs b ≥ 2. Extra cost: b datum gradients per step.
    "batch": f·sample covariance of the present minibatch. Needs b ≥ 2; no d × d matrix. Extra cost: b per step.

    Alg. 2 as printed explodes where h times an eigenvalue of Γ passes 2, as on the paper's own Gaussian (h = 0.05:
    3.3); `bound` is the remedy. `Exponential` already brings a friction of the same kind, so that the two together
    cool the chain too much at small steps; `Uniform` inside is the balanced choice. With a metric P of the
    kick all of this holds in the coordinates θ/√P.

    Args:
        inner: `Uniform` or `Exponential`, whose force is the mean of G_i over a minibatch. (Reshuffled minibatches are
            anticorrelated in time already: with more friction they over-cool.)
        mode: where Ĉ comes from, see above.
        period: steps from one calibration to the next; or
        passes: L, the same in data passes of the inner estimator: ⌈L·n / (inner cost)⌉ steps. 1 when neither is given.
        form: "full", a d × d matrix (d ≤ 2,000; with "svrg" one eigendecomposition per step; "batch" keeps its factor
            instead, at any d); "diagonal"; "low_rank" ("svrg" only), the Nyström approximation
            Ĉ ≈ ĈΩ(ΩᵀĈΩ)⁺ΩᵀĈ ≤ Ĉ in O(d·rank) memory, Ω random at first and turned towards the leading eigenvectors by
            every calibration.
        rank: columns of Ω, for "low_rank".
        decay: of the running mean, for "running".
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
        name = "CovarianceFriction"
        check_choice(name, "mode", self.mode, _MODES)
        check_choice(name, "form", self.form, _FORMS)
        if self.factor is not None:
            check_positive(name, "factor", self.factor, zero=True)
        check_positive(name, "decay", self.decay, zero=True)
        if not isinstance(self.decay, jax.core.Tracer) and self.decay > 1:
            raise InputError(f"{name}: decay must be at most 1, not {self.decay!r}")
        if self.bound is not None:
            check_positive(name, "bound", self.bound)
        if not isinstance(self.inner, Uniform | Exponential):
            raise InputError(
                f"{name}: inner must be Uniform(...) or Exponential(...), whose force is the mean over a minibatch, "
                f"not {type(self.inner).__name__} (control variates go around it: SVRG({name}(Uniform(b)), ...))"
            )
        if self.mode != "svrg" and self.inner.batch_size < 2:
            raise InputError(f"{name}(mode={self.mode!r}) needs a batch_size of at least 2 for a sample covariance")
        self._check_period()
        if (self.form == "low_rank") != (self.rank is not None):
            raise InputError(f"{name}: form='low_rank' and rank= go together")
        if self.rank is not None:
            check_count(name, "rank", self.rank, 1)
            if self.mode != "svrg":
                raise InputError(f"{name}: form='low_rank' is for mode='svrg', not {self.mode!r}")

    def _check_period(self):
        name = "CovarianceFriction"
        if self.period is not None and self.passes is not None:
            raise InputError(f"{name}: give period= (steps) or passes= (data passes), not both")
        if (self.period is not None or self.passes is not None) and self.mode != "svrg":
            raise InputError(f"{name}: period= and passes= are for mode='svrg', mode={self.mode!r} never calibrates")
        if self.period is not None:
            if self.period == 0:
                raise InputError(f"{name}: a calibration period of 0 would calibrate for ever: give at least 1 step")
            check_count(name, "period", self.period, 1)
        if self.passes is not None:
            if self.passes == 0:
                raise InputError(f"{name}: a calibration period of 0 passes would calibrate for ever: give more")
            check_positive(name, "passes", self.passes)

    def check(self, num_data: int, has_momentum: bool) -> None:
        self.inner.check(num_data, has_momentum)
        if not has_momentum:
            raise InputError("CovarianceFriction acts on a momentum and this integrator has none: use Underdamped")

    def prepare(self, target: Target) -> tuple["CovarianceFriction", Cost]:
        inner, cost = self.inner.prepare(target)
        return dataclasses.replace(self, inner=inner), cost

    def init(self, key: Key, target: Target, position: Position) -> FrictionState:
        flat = ravel_pytree(position)[0]
        zero = jnp.zeros_like(flat)
        if self.form == "low_rank":
            key, key_sketch = _random.split(key)
            sketch = orthonormal(
                _random.normal_like(key_sketch, jnp.zeros((zero.size, self._rank(zero.size)), zero.dtype))
            )
            second = jnp.zeros_like(sketch)
        else:
            sketch, second = None, self._empty(zero)
        inner = self.inner.init(key, target, position)
        if self.mode == "svrg":
            return FrictionState(inner, Moments(position, zero, second, sketch))
        return FrictionState(inner, second if self.mode == "running" else ())

    def _empty(self, zero: Float[Array, " d"]) -> Float[Array, "d *d"]:
        """The zero covariance, in the form asked for."""
        if self.form == "diagonal" or self.mode == "batch":
            return zero
        if zero.size > _MATRIX_LIMIT:
            raise InputError(
                f"CovarianceFriction(form='full') would keep a {zero.size} × {zero.size} matrix for every chain and "
                f"the limit is {_MATRIX_LIMIT:,}: choose form='diagonal', form='low_rank' with rank=, or mode='batch'"
            )
        return jnp.zeros((zero.size, zero.size), zero.dtype)

    def _rank(self, dimension: int) -> int:
        assert self.rank is not None
        return min(self.rank, dimension)

    def estimate(
        self, key: Key, target: Target, kick: Kick, state: FrictionState
    ) -> tuple[Position, FrictionState, EstimateInfo]:
        force, inner, info = self.inner.estimate(key, target, kick, state.inner)
        momentum, unravel = ravel_pytree(kick.over_root(kick.momentum))
        root = None if kick.metric is None else jnp.sqrt(ravel_pytree(kick.metric)[0])
        factor = kick.factor if self.factor is None else self.factor
        scale = factor * self.noise_factor(target.num_data) * kick.step_size / (2 * kick.temperature)
        scale = pytree.as_dtype(scale, momentum.dtype)
        ceiling = None if self.bound is None else pytree.as_dtype(self.bound / kick.step_size, momentum.dtype)
        stats, gradients = dict(info.stats), self.cost(target.num_data).datum_gradients
        assert info.indices is not None
        if self.mode == "svrg":
            due = kick.step % self._period(target.num_data) == 0
            moments = jax.lax.cond(
                due, lambda old: self._calibrate(target, kick, old), lambda old: old, state.covariance
            )
            drag, negative = moment_drag(moments.stretched(root), momentum, scale, ceiling, self.form)
            covariance = self._update(target, kick, moments, force, info.indices)
            stats["projected"] = negative.astype(momentum.dtype)
            gradients = gradients + target.num_data * jnp.asarray(due, jnp.int32)
        else:
            deviations = self._deviations(target, kick.position, info.indices)
            covariance = self._sampled(deviations, kick, state.covariance)
            drag = self._sampled_drag(deviations, covariance, root, momentum, scale, ceiling)
        cost = Cost(gradients, info.cost.datum_directional)
        friction = kick.over_root(unravel(-drag))
        force = pytree.add_scaled(force, 1, friction)
        return force, FrictionState(inner, covariance), EstimateInfo(info.indices, cost, stats, friction)

    def cost(self, num_data: int) -> Cost:
        """What one estimate evaluates, but for the n datum gradients of a calibration."""
        b, inner = self.inner.batch_size, self.inner.cost(num_data)
        extra = b if self.mode != "svrg" else 1 if b == 1 else 2 * b
        return inner._replace(datum_gradients=inner.datum_gradients + extra)

    def spent(self, num_steps: int, num_data: int) -> int:
        calibrations = math.ceil(num_steps / self._period(num_data)) if self.mode == "svrg" else 0
        return super().spent(num_steps, num_data) + num_data * calibrations

    def noise_factor(self, num_data: int) -> float:
        return self.inner.noise_factor(num_data)

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: FrictionState, metric: Position | None = None
    ) -> Scalar:
        return self.inner.noise_trace(key, target, position, state.inner, metric)

    def _period(self, num_data: int) -> int:
        if self.period is not None:
            return self.period
        passes = 1 if self.passes is None else self.passes
        return max(1, math.ceil(passes * num_data / int(self.inner.cost(num_data).datum_gradients)))

    def _calibrate(self, target: Target, kick: Kick, moments: Moments) -> Moments:
        """m₁ and m₂ over all n data, in blocks of rows."""
        n = target.num_data
        sketch = moments.sketch
        if sketch is not None:
            sketch = jnp.where(kick.step == 0, sketch, orthonormal(sketched(moments, sketch)))
        block = max(1, min(n, _BLOCK_VALUES // moments.mean.size))
        whole, rest = divmod(n, block)

        def add(start, count: int, total: tuple[Array, Array]) -> tuple[Array, Array]:
            each = _flat_forces(target, kick.position, start + jnp.arange(count, dtype=jnp.int32))
            return total[0] + jnp.sum(each, axis=0), total[1] + self._second(each, sketch)

        total = (jnp.zeros_like(moments.mean), jnp.zeros_like(moments.second))
        total = jax.lax.fori_loop(0, whole, lambda k, total: add(k * block, block, total), total)
        if rest:
            total = add(whole * block, rest, total)
        return Moments(kick.position, total[0] / n, total[1] / n, sketch)

    def _update(self, target: Target, kick: Kick, moments: Moments, force: Position, indices: Indices) -> Moments:
        """The terms of the chosen data move from ω to θ (Alg. 2, lines 15 and 16)."""
        single = indices.shape[0] == 1
        new = ravel_pytree(force)[0][None] if single else _flat_forces(target, kick.position, indices)
        old = _flat_forces(target, moments.anchor, indices)
        mean = moments.mean + jnp.sum(new - old, axis=0) / target.num_data
        change = self._second(new, moments.sketch) - self._second(old, moments.sketch)
        return moments._replace(mean=mean, second=moments.second + change / target.num_data)

    def _second(self, each: Float[Array, "b d"], sketch: Float[Array, "d k"] | None) -> Float[Array, "d *k"]:
        """Σ_i G_i G_iᵀ, in the form asked for."""
        if self.form == "diagonal":
            return jnp.sum(each**2, axis=0)
        return each.T @ (each if sketch is None else each @ sketch)

    def _deviations(self, target: Target, position: Position, indices: Indices) -> Float[Array, "b d"]:
        """Rows whose Gram matrix AᵀA estimates Cov(G_i) without bias, from the minibatch."""
        each = _flat_forces(target, position, indices)
        b, n = indices.shape[0], target.num_data
        finite = 1.0 if self.inner.replace else (n - 1) / n  # b distinct data vary by n/(n − 1) more
        return (each - jnp.mean(each, axis=0, keepdims=True)) * math.sqrt(finite / (b - 1))

    def _sampled(self, deviations: Float[Array, "b d"], kick: Kick, running: Any) -> Any:
        """The running mean with this minibatch in it; nothing for mode "batch"."""
        if self.mode == "batch":
            return ()
        covariance = self._second(deviations, None)
        first = 1 / jnp.asarray(kick.step + 1, covariance.dtype)
        weight = jnp.maximum(first, jnp.asarray(1 - self.decay, covariance.dtype))
        return running + weight * (covariance - running)

    def _sampled_drag(
        self,
        deviations: Float[Array, "b d"],
        running: Any,
        root: Float[Array, " d"] | None,
        momentum: Float[Array, " d"],
        scale: Scalar,
        ceiling: Scalar | None,
    ) -> Float[Array, " d"]:
        """scale · √P Ĉ √P r, Ĉ the running mean or, in mode "batch", the covariance of the minibatch."""
        if self.mode == "batch" and self.form == "full":
            factor = deviations.T if root is None else root[:, None] * deviations.T
            return factor_drag(factor, momentum, scale, ceiling)
        covariance = stretched(running if self.mode == "running" else self._second(deviations, None), root)
        if self.form == "diagonal":
            return clip(scale * covariance, ceiling) * momentum
        if ceiling is None:
            return scale * (covariance @ momentum)
        return matrix_drag(covariance, momentum, scale, ceiling)[0]


def _flat_forces(target: Target, position: Position, indices: Indices) -> Float[Array, "b d"]:
    """G_i = n∇(−V_i) as rows."""
    return jax.vmap(lambda tree: ravel_pytree(tree)[0])(target.forces(position, indices))
