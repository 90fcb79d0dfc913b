"""Firefly Monte Carlo: exact draws from a few likelihoods per step, given a lower bound of the likelihood."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from .. import _random
from .._core import pytree
from .._core.accumulate import Compensated
from .._core.component import check_count, check_positive
from .._core.settings import plain
from .._core.types import Batch, Indices, Key, Position, Scalar
from ..errors import InputError
from ..integrators.base import Phase
from ..interface import Cost, EstimateInfo, StepInfo
from ..sampler import AbstractKernel, AbstractSampler, SamplerState
from ..target.target import Target
from ._bright_table import Table
from .bounds.base import AbstractBound
from .bounds.check import check_bound

_VIOLATION_IN_ROUNDING_ERRORS = 64.0
_ROWS_PER_BLOCK = 16_384


class FlyMC(AbstractKernel):
    r"""Firefly Monte Carlo (Maclaurin and Adams 2015), with random-walk proposals; exact for any step size.

    Each datum gets an indicator z_i, bright (1) or dark (0), such that the marginal distribution of θ is the posterior:

    p(θ, z) ∝ π(θ) Π_i (L_i(θ) − B_i(θ))^{z_i} B_i(θ)^{1 − z_i},   0 < B_i ≤ L_i,

    with π, L_i and B_i all raised to the power 1/T. An iteration consists of two moves that leave p(θ, z) invariant:

    1. for `resample` data, drawn without replacement, draw z_i from P(z_i = 1 | θ) = 1 − B_i/L_i;
    2. propose θ' = θ + step_size·ξ, ξ ~ N(0, I), accepted with probability min{1, p(θ', z)/p(θ, z)}, where
       log p(θ, z) = log π + Σ_i log B_i + Σ_{bright} log(L_i/B_i − 1): the first sum takes O(1) time, the second needs
       only the bright data.

    The work per iteration grows with `resample` and with the number of bright data, not with n. Memory is O(n) per
    chain, 8 bytes per datum, as every datum has an indicator. Start near the mode (`LogisticBound` finds it): data that
    are bright because the start is far away hold the chain back until they are resampled, about n/resample iterations
    later.

    Cost: "datum gradients" here count **likelihoods of one datum**, as the paper counts the data used:
    `resample` + (bright data) per iteration; n for the indicators at the start, counted in the first iteration; and the
    preparation of the bound. The number of steps that a budget pays for is known only afterwards: give `num_steps`.
    Stats: `acceptance`; `bright`, the number of bright data; `bound_violations`, the number of evaluations that found
    B_i above L_i by more than rounding errors: unless it is 0, the draws are not exact.

    Args:
        bound: B_i, a lower bound of the likelihood (`ewsg.kernels.LogisticBound`, `GaussianTaylorBound`, or your own).
        step_size: standard deviation of the proposal, the same for all parameters.
        resample: the data whose indicators are redrawn in each iteration: a fraction up to 1.0, or a whole number.
        temperature: T.
        block_size: the number of bright data evaluated at a time; it affects only speed.

    References:
        D. Maclaurin and R. Adams, Firefly Monte Carlo: exact MCMC with subsets of data, UAI 2014, IJCAI 2015.

    Example:
        >>> import jax.numpy as jnp, numpy as np, ewsg
        >>> from ewsg.kernels import FlyMC, LogisticBound
        >>> features = np.random.default_rng(0).normal(size=(1000, 2))
        >>> target = ewsg.models.logistic(features, features[:, 0] > 0.3)
        >>> run = ewsg.sample(target, FlyMC(LogisticBound(), step_size=0.2), init=jnp.zeros(2), num_steps=500)
        >>> bool(run.stats["bright"].mean() < 100), float(run.stats["bound_violations"].max())
        (True, 0.0)
    """

    bound: AbstractBound
    step_size: float
    resample: float | int = eqx.field(static=True, default=0.1, converter=plain)
    temperature: float = 1.0
    block_size: int = eqx.field(static=True, default=256, converter=plain)

    def __check_init__(self):
        if not isinstance(self.bound, AbstractBound):
            raise InputError(f"FlyMC: bound must be a lower bound of ewsg.kernels, not {self.bound!r}")
        check_positive("FlyMC", "step_size", self.step_size)
        check_positive("FlyMC", "temperature", self.temperature)
        check_count("FlyMC", "block_size", self.block_size, 1)
        check_positive("FlyMC", "resample", self.resample)
        if isinstance(self.resample, float) and self.resample > 1:
            raise InputError(f"FlyMC: resample={self.resample} must be a fraction up to 1.0, or a whole number")

    def bind(self, target: Target) -> "FireflySampler":
        n = target.num_data
        count = math.ceil(self.resample * n) if isinstance(self.resample, float) else self.resample
        check_count("FlyMC", "resample", count, 1)
        if count > n:
            raise InputError(f"FlyMC: resample={count} is more than the {n} data: resample fewer")
        bound, statistics, cost = self.bound.prepare(target)
        return FireflySampler(target, self, bound, statistics, int(count), cost)


class Fireflies(NamedTuple):
    """The state of a chain besides its position: which data are bright, and log p(θ, z) in two parts."""

    table: Table
    base: Float[Array, ""]
    bright_sum: Compensated


class Excess(NamedTuple):
    """(ℓ_i − log B_i)/T for a batch, raised to at least its rounding error; and where the bound is violated."""

    value: Float[Array, " b"]
    violated: Bool[Array, " b"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class FireflySampler(AbstractSampler):
    """`FlyMC` bound to a target, with a prepared lower bound."""

    target: Target
    kernel: FlyMC
    bound: AbstractBound
    statistics: Any
    num_resampled: int = dataclasses.field(metadata={"static": True})
    prepared: Cost = dataclasses.field(metadata={"static": True})

    def init(self, key: Key, position: Position) -> SamplerState:
        """The state at `position`; all indicators are drawn given θ, which takes n evaluations."""
        n, dtype = self.target.num_data, _dtype(position)
        size = min(n, _ROWS_PER_BLOCK)
        blocks = jnp.minimum(jnp.arange(-(-n // size) * size, dtype=jnp.int32), n - 1).reshape(-1, size)
        excess = jax.lax.map(lambda block: self._excess(position, self.target.data.take(block)).value, blocks)
        excess = excess.reshape(-1)[:n]
        bright = exponential(key, (n,), dtype) < excess
        total = jnp.sum(jnp.where(bright, log_expm1(excess), 0))
        bright_sum = Compensated.zeros(jnp.zeros((), dtype)).add(total)
        fireflies = Fireflies(Table.of(bright, self._block_size), self._base(position), bright_sum)
        return SamplerState(Phase(position, None), fireflies, jnp.int32(0))

    def step(self, key: Key, state: SamplerState) -> tuple[SamplerState, StepInfo]:
        key_data, key_decide, key_move = _random.split(key, 3)
        position, dtype = state.phase.position, _dtype(state.phase.position)
        indices = self._draw(key_data, state.step)
        thresholds = exponential(key_decide, (self.num_resampled + 1,), dtype)
        fireflies, violations = self._resample(thresholds[:-1], position, state.estimator, indices)
        noise = _random.normal_like(key_move, position)
        proposal = pytree.cast_like(pytree.add_scaled(position, self.kernel.step_size, noise), position)
        base = self._base(proposal)
        total, more = self._bright_sum(proposal, fireflies.table)
        log_ratio = (base - fireflies.base) + _difference(total, fireflies.bright_sum)
        accept = -thresholds[-1] < log_ratio  # NaN is rejected
        moved = pytree.where(accept, (proposal, base, total), (position, fireflies.base, fireflies.bright_sum))
        stats = {
            "acceptance": jnp.where(jnp.isnan(log_ratio), 0, jnp.exp(jnp.minimum(log_ratio, 0))).astype(dtype),
            "bright": fireflies.table.num_bright.astype(dtype),
            "bound_violations": (violations + more).astype(dtype),
        }
        start = jnp.where(state.step == 0, self.target.num_data, 0)
        cost = Cost(start + self.num_resampled + fireflies.table.num_bright)
        after = SamplerState(Phase(moved[0], None), Fireflies(fireflies.table, *moved[1:]), state.step + 1)
        return after, StepInfo(None, None, EstimateInfo(indices, cost, stats))

    @property
    def temperature(self) -> Scalar:
        return self.kernel.temperature

    def num_steps(self, budget: int) -> int:
        raise InputError(
            "the number of FlyMC steps that a budget pays for depends on how many data are bright: give num_steps="
        )

    def preparation_cost(self) -> Cost:
        return self.prepared

    def check(self, positions: Position) -> None:
        """Raise InputError if, near the stacked starts, the bound is above the likelihood or its sum is wrong."""
        check_bound(self.target, self.bound, self.statistics, positions, self.kernel.step_size)

    @property
    def _block_size(self) -> int:
        return min(self.kernel.block_size, self.target.num_data)

    def _draw(self, key: Key, step: Int[Array, ""]) -> Indices:
        """Distinct data whose indicators are redrawn, in O(resample) time.

        The loop has one round, but the compiler cannot know that. Without it, XLA would recompute the indices at every
        use, which takes as long as the rest of the step.
        """

        def draw(number: Int[Array, ""], _) -> Indices:
            return _random.distinct_indices(_random.fold(key, number), self.target.num_data, self.num_resampled)

        return jax.lax.fori_loop(0, (step >= 0).astype(jnp.int32), draw, jnp.zeros(self.num_resampled, jnp.int32))

    def _resample(
        self, thresholds: Float[Array, " b"], position: Position, fireflies: Fireflies, indices: Indices
    ) -> tuple[Fireflies, Array]:
        """Redraw the indicators of the given data; also return the number of violations."""
        excess, violated = self._excess(position, self.target.data.take(indices))
        bright = thresholds < excess
        before = fireflies.table.is_bright(indices)
        weights = log_expm1(excess)
        change = jnp.sum(jnp.where(bright & ~before, weights, 0) - jnp.where(before & ~bright, weights, 0))
        table = fireflies.table.switched(indices, bright)
        return Fireflies(table, fireflies.base, fireflies.bright_sum.add(change)), jnp.sum(violated, dtype=jnp.int32)

    def _base(self, position: Position) -> Float[Array, ""]:
        """(log π + Σ_i log B_i)/T, up to a constant."""
        total = self.target.log_prior(position) + self.bound.log_bound_sum(position, self.statistics)
        return (total / self.kernel.temperature).astype(_dtype(position))

    def _bright_sum(self, position: Position, table: Table) -> tuple[Compensated, Array]:
        """Σ_{bright} log(L_i/B_i − 1), and the number of violations, in as many blocks as needed.

        Under `vmap` a loop selects over its whole carry, which is therefore a few scalars and never the table.
        """
        size = self._block_size

        def add(carry: tuple) -> tuple:
            number, total, violations = carry
            indices, is_bright = table.listed(number, size)
            excess, violated = self._excess(position, self.target.data.take(indices))
            term = jnp.sum(jnp.where(is_bright, log_expm1(excess), 0))
            return number + 1, total.add(term), violations + jnp.sum(is_bright & violated, dtype=jnp.int32)

        zero = Compensated.zeros(jnp.zeros((), _dtype(position)))
        carry = (jnp.int32(0), zero, jnp.int32(0))
        return jax.lax.while_loop(lambda carry: carry[0] * size < table.num_bright, add, carry)[1:]

    def _excess(self, position: Position, batch: Batch) -> Excess:
        """(ℓ_i − log B_i)/T for a batch, raised to at least its rounding error.

        Without that, a bright datum might have an excess of 0 when it is evaluated again, and the chain would be stuck.
        The excess is 0 if ℓ or log B is not finite: such a datum cannot be bright, and such a proposal is rejected.
        """
        value, rounding = self.bound.gap(position, batch, self.target.likelihood)
        finite = jnp.isfinite(value)
        violated = finite & (value < -_VIOLATION_IN_ROUNDING_ERRORS * rounding)
        value = jnp.where(finite, jnp.maximum(value, rounding), 0)
        return Excess((value / self.kernel.temperature).astype(_dtype(position)), violated)


def exponential(key: Key, shape: tuple[int, ...], dtype: DTypeLike) -> Float[Array, "..."]:
    """Standard exponential variates, accurate relative to their size even where uniform floats are coarse.

    A uniform float32 is a multiple of 2^−23, so that P(uniform < 10^−8) would be 10^−7. Two of them make one with twice
    the digits; the upper half of the unit interval is measured from its end.
    """
    coarse, fine = _random.uniform(key, (2, *shape), dtype)
    eps = jnp.finfo(dtype).eps
    from_zero, from_one = coarse + eps * fine, (1 - eps - coarse) + eps * (1 - fine)
    return jnp.where(coarse < 0.5, -jnp.log1p(-from_zero), -jnp.log(from_one))


def log_expm1(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(e^x − 1) for x ≥ 0 of any size; −∞ at 0."""
    return x + jnp.log(-jnp.expm1(-x))


def _difference(one: Compensated, other: Compensated) -> Float[Array, ""]:
    return (one.high - other.high) + (one.low - other.low)


def _dtype(position: Position) -> jnp.dtype:
    return jax.tree.leaves(position)[0].dtype
