"""Paired selection: within each pair of data, favour the gradient that opposes the momentum."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .. import _random
from .._core import pytree
from .._core.component import check_choice, check_positive
from .._core.settings import plain
from .._core.types import Indices, Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractMinibatch, batch_noise, draw_batch
from .reshuffled import Reshuffled

_RULES = ("weight", "select", "sequential")
_MOST_NUMBERS_HELD = 20_000_000


class Paired(AbstractMinibatch):
    r"""Draws 2b data, pairs them (i_k, j_k), and tilts each pair by how its two gradients differ along the momentum.

    v_k = h (G_j − G_i)/(2b),   D_k = r·v_k / T,   G_i = n∇V_i (prior shared out)

    weight:      force = Σ_k [(1 − p_k)(−G_i) + (1 + p_k)(−G_j)]/(2b),  p_k = clip(c D_k/2, −1, 1)
    select:      keep j_k with probability ½ + ½ clip(c D_k, −1, 1), else i_k;  force = mean of the b kept
    sequential:  r ← r − α(q)(r·v_k/T) v_k − h (G_i + G_j)/(2b), pair after pair,  q = ‖v_k‖²/T,
                 α(q) = (1 − √(1 − cq))/q, and 1/q for cq > 1

    The tilt adds, on average, the friction (h/2T) Cov(g) r that fluctuation–dissipation requires against the heating
    h² Cov(g) of subsampling. It is odd in r, so that the mean force is unbiased under the momentum's symmetry; weights
    stay in [0, 1/b], so that it cannot blow up. Without momentum the pairs are tilted against the injected noise: the
    same rule with r = √(2hT) ξ and 2hT for T. With a metric P the rule holds in the coordinates θ/√P.

    α solves T(1 − αq)² + c·qT = T: against noise with covariance c·v vᵀ, the tilt keeps N(0, T) exactly. Independent
    pairs have that noise with c = 1. Drawn without replacement, their sum has 1 − 2b/n of that variance: if n = 2b
    nothing is random, c = 0, and the force is the full one.

    For `sequential`, `EstimateInfo.drag` is the friction in the force, so that the configurational temperature is
    computed from the plain mean. (For the other rules that would take a second backward pass.)

    Costs per step: `weight`, 2b datum gradients and 2b directional derivatives; `select`, b and 2b; `sequential`, 2b
    and none.

    Args:
        batch_size: b, the number of pairs.
        rule: "weight", "select" or "sequential".
        factor: c. None is the integrator's own (1 for Euler–Maruyama), which makes the position's variance right to
            first order in q; for `sequential`, None is 1 for every integrator, the only value for which the kick alone
            preserves the momentum's distribution. Without replacement c is multiplied by 1 − m/n for the m data in the
            force: b for `select`, else 2b.
        replace: draw the 2b data with or without replacement.
    """

    batch_size: int = eqx.field(static=True, converter=plain)
    rule: str = eqx.field(static=True, default="weight")
    factor: float | None = eqx.field(default=None, converter=plain)
    replace: bool = eqx.field(static=True, default=True, converter=plain)

    def __check_init__(self):
        if isinstance(self.batch_size, Reshuffled):
            raise InputError(
                "Paired cannot draw from Reshuffled: the noise of reshuffled minibatches already cancels itself over "
                "an epoch, and the friction that Paired adds would over-cool the chain; give a batch_size, or use "
                "Reshuffled alone"
            )
        check_choice("Paired", "rule", self.rule, _RULES)
        if self.factor is not None:
            check_positive("Paired", "factor", self.factor, zero=True)

    def check(self, num_data: int, has_momentum: bool) -> None:
        del has_momentum
        if not self.replace and 2 * self.batch_size > num_data:
            raise InputError(
                f"Paired: {self.batch_size} pairs need {2 * self.batch_size} different data, but there are {num_data}: "
                "take fewer pairs, or replace=True"
            )

    def reads_noise(self) -> bool:
        return True

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        drawn = draw_batch(_random.fold(key, 0), target, 2 * self.batch_size, self.replace)
        reference, variance = _reference(kick)
        if self.rule == "sequential":
            force, drag, tilt = self._sequential(target, kick, drawn, reference, variance)
            return force, state, EstimateInfo(drawn, self.cost(target.num_data), _tilt_stats(tilt, tilt), drag)
        held = target.hold(drawn)
        along = held.directional(kick.position, drawn, kick.times_root(reference))
        first, second = jnp.split(along, 2)
        h, over = (pytree.as_dtype(number, along.dtype) for number in (kick.step_size, 2 * self.batch_size * variance))
        tilt = h * (first - second) / over
        lean = pytree.as_dtype(self._factor(kick, target.num_data), tilt.dtype) * tilt
        if self.rule == "select":
            threshold = _random.uniform(_random.fold(key, 1), tilt.shape, tilt.dtype)
            take_second = threshold < choice_probability(lean)
            kept = jnp.where(take_second, *reversed(jnp.split(drawn, 2)))
            force = target.force(kick.position, kept)
            return force, state, EstimateInfo(kept, self.cost(target.num_data), _tilt_stats(tilt, lean))
        share = jnp.clip(lean / 2, -1, 1)
        weights = jnp.concatenate([1 - share, 1 + share]) / (2 * self.batch_size)
        force = held.weighted_force(kick.position, drawn, weights)
        return force, state, EstimateInfo(drawn, self.cost(target.num_data), _tilt_stats(tilt, lean / 2))

    def cost(self, num_data: int) -> Cost:
        pairs = 2 * self.batch_size
        return {"weight": Cost(pairs, pairs), "select": Cost(self.batch_size, pairs), "sequential": Cost(pairs)}[
            self.rule
        ]

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self._data_in_force(), self.replace)

    def _data_in_force(self) -> int:
        return self.batch_size if self.rule == "select" else 2 * self.batch_size

    def _factor(self, kick: Kick, num_data: int) -> Scalar:
        own = 1.0 if self.rule == "sequential" else kick.factor
        factor = own if self.factor is None else self.factor
        return factor if self.replace else factor * (1 - self._data_in_force() / num_data)

    def _sequential(
        self, target: Target, kick: Kick, drawn: Indices, reference: Position, variance: Scalar
    ) -> tuple[Position, Position, Float[Array, " pairs"]]:
        """The force, the friction in it, and the tilts D_k."""
        dimension = pytree.size(kick.position)
        if 2 * self.batch_size * dimension > _MOST_NUMBERS_HELD:
            raise InputError(
                f"Paired(rule='sequential') would hold {2 * self.batch_size} gradients of {dimension} parameters per "
                f"chain, more than {_MOST_NUMBERS_HELD:,} numbers: use rule='weight'"
            )
        start, unravel = ravel_pytree(reference)
        each = target.forces(kick.position, drawn)
        forces = pytree.rows(jax.vmap(kick.times_root)(each))
        h, variance, factor = (
            pytree.as_dtype(number, forces.dtype)
            for number in (kick.step_size, variance, self._factor(kick, target.num_data))
        )
        first, second = jnp.split(forces * (h / (2 * self.batch_size)), 2)
        apart, together = first - second, first + second
        share = friction_share(jnp.sum(apart**2, axis=1) / variance, factor)

        def tilt_pair(r, pair):  # what does not depend on r is computed before, for all pairs at once
            v, push, share = pair
            along = jnp.sum(r * v) / variance
            return r - share * along * v + push, along

        end, tilt = jax.lax.scan(tilt_pair, start, (apart, together, share))
        change = end - start
        friction = change - jnp.sum(together, axis=0)
        force, drag = (kick.over_root(unravel(part / pytree.divisor(h))) for part in (change, friction))
        return force, drag, tilt


def choice_probability(tilt: Float[Array, "*b"]) -> Float[Array, "*b"]:
    """The probability with which `select` keeps the second of each pair."""
    return 0.5 + 0.5 * jnp.clip(tilt, -1, 1)


def _reference(kick: Kick) -> tuple[Position, Scalar]:
    """The vector against which pairs are tilted (the momentum, or the noise) in coordinates with P = I; its variance.

    A step of size 0 injects no noise; the tilt is then 0 for any variance.
    """
    if kick.momentum is not None:
        return kick.over_root(kick.momentum), kick.temperature
    return pytree.scaled(kick.noise_scale, kick.noise), pytree.divisor(kick.noise_scale) ** 2


def friction_share(q: Float[Array, "*b"], factor: Scalar) -> Float[Array, "*b"]:
    """α = (1 − √(1 − cq))/q for cq ≤ 1, written c/(1 + √(1 − cq)) so that it is c/2 at q = 0; 1/q beyond."""
    noise = factor * q
    return factor * jnp.where(noise <= 1, 1 / (1 + jnp.sqrt(jnp.maximum(1 - noise, 0))), 1 / jnp.maximum(noise, 1))


def _tilt_stats(tilt: Float[Array, " b"], clipped: Float[Array, " b"]) -> dict[str, Scalar]:
    """Moments of D_k and of p_k = clip(D_k/2, −1, 1), from which the summary predicts the error of the sd.

    The stat `clipped` is the share of pairs that the rule itself clips, those with |clipped| > 1.
    """
    share = jnp.clip(tilt / 2, -1, 1)
    return {
        "tilt_second": jnp.mean(tilt**2),
        "tilt_lean": jnp.mean(2 * share * tilt),
        "tilt_squared_share": jnp.mean((share * tilt) ** 2),
        "clipped": jnp.mean((jnp.abs(clipped) > 1).astype(tilt.dtype)),
    }
