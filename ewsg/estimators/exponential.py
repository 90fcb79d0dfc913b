"""The paper's EWSG: a Metropolis chain over minibatches chooses which one moves the state."""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _random
from .._core import pytree
from .._core.component import check_choice, check_count
from .._core.settings import plain
from .._core.types import Indices, Key, Position
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractMinibatch, batch_noise, draw_batch

_CHOICES = ("momentum", "zero", "one", "next_zero", "noise")
_EVALUATIONS = ("auto", "unrolled", "stacked", "streamed")
_MOST_ENUMERATED_BATCHES = 4_096
_FEW_PARAMETERS = 4096  # with more, gradients are matrix products, which are faster for all minibatches at once
_MOST_STACKED_NUMBERS = 1_000_000
_MOST_CANDIDATES_SELECTED = 4


class Candidate(NamedTuple):
    """A minibatch, its force, and its log weight."""

    indices: Indices
    force: Position
    log_weight: Float[Array, ""]


class Exponential(AbstractMinibatch):
    r"""Exponentially weighted stochastic gradients (EWSG, Alg. 1).

    P(batch I) ∝ exp(½‖x + n a_I‖²),   n a_I = (√h/σ) (n/b) Σ_{i in I} ∇V_i                      (eq. 4, App. D)

    reached by M Metropolis steps with uniform proposals J from a uniform start I:
    accept with probability min{1, exp(½‖x + n a_J‖² − ½‖x + n a_I‖²)}                              (eq. 6).
    Costs (M + 1)·b datum gradients per step. M = 0 is `Uniform`, draw for draw.

    With overdamped dynamics (App. E) √h/σ becomes √(h/(2T)), and x stands for (θ' − θ)/√(2hT).

    Args:
        batch_size: b.
        chain_length: M, the number of Metropolis steps on minibatches per step of the dynamics.
        x: the paper's hyper-parameter, one of
            "momentum": √h γ r/σ, the recommended choice (the next momentum guessed to be the present one);
            "next_zero": (−1 + hγ) r/(σ√h), the next momentum guessed to be 0;
            "zero", "one": constant vectors;
            "noise": the normal vector that the same update injects (overdamped dynamics only);
            or a function of the `Kick` that returns a pytree like the position.
        restart: start the chain from a fresh uniform minibatch at each step (Alg. 1); False starts it from the last
            step's minibatch, whose force is recomputed at the new position and counted.
        exact: draw from the enumerated weights instead of running the chain: n datum gradients per step, for at most
            4,096 minibatches (n^b, or the number of ordered draws without replacement).
        replace: draw minibatches with or without replacement.
        evaluate: how the M + 1 forces are computed: "unrolled", one after another; "stacked", all at once in
            O((M + 1)·d) memory; "streamed", in a loop that keeps two, in O(d) memory. The chain is the same. "auto"
            unrolls if M ≤ 3 and d < 4,096; else it stacks if (M + 1)·d is at most a million; else it unrolls if M ≤ 3
            and streams if not.
    """

    batch_size: int = eqx.field(static=True, converter=plain)
    chain_length: int = eqx.field(static=True, default=1, converter=plain)
    x: str | Callable[[Kick], Position] = eqx.field(static=True, default="momentum")
    restart: bool = eqx.field(static=True, default=True, converter=plain)
    exact: bool = eqx.field(static=True, default=False, converter=plain)
    replace: bool = eqx.field(static=True, default=True, converter=plain)
    evaluate: str = eqx.field(static=True, default="auto")

    def __check_init__(self):
        check_count("Exponential", "chain_length", self.chain_length, 0)
        check_choice("Exponential", "evaluate", self.evaluate, _EVALUATIONS)
        if not callable(self.x):
            check_choice("Exponential", "x", self.x, _CHOICES)

    def check(self, num_data: int, has_momentum: bool) -> None:
        super().check(num_data, has_momentum)
        if self.x in ("momentum", "next_zero") and not has_momentum:
            raise InputError(
                f"Exponential(x={self.x!r}) needs a momentum, but this integrator has none: "
                "choose x='zero', 'one', 'noise' or a function of the kick"
            )
        if self.x == "noise" and has_momentum:
            raise InputError("Exponential(x='noise') is for Overdamped: with a momentum choose x='momentum'")
        if self.exact and _num_batches(num_data, self.batch_size, self.replace) > _MOST_ENUMERATED_BATCHES:
            raise InputError(
                f"Exponential(exact=True) would enumerate more than {_MOST_ENUMERATED_BATCHES:,} minibatches of "
                f"{self.batch_size} out of {num_data} data: use exact=False, or fewer data"
            )

    def reads_noise(self) -> bool:
        return self.x == "noise" or callable(self.x)

    def init(self, key: Key, target: Target, position: Position) -> Indices | tuple[()]:
        if self.restart or self.exact:
            return ()
        return self._draw(key, target)

    def estimate(
        self, key: Key, target: Target, kick: Kick, state: Indices | tuple[()]
    ) -> tuple[Position, Indices | tuple[()], EstimateInfo]:
        x = self._x(kick)
        if self.exact:
            chosen, stats = self._enumerate(key, target, kick, x), {}
        else:
            chosen, stats = self._run_chain(key, target, kick, x, state)
        state = () if self.restart or self.exact else chosen.indices
        return chosen.force, state, EstimateInfo(chosen.indices, self.cost(target.num_data), stats)

    def cost(self, num_data: int) -> Cost:
        return Cost(num_data if self.exact else (self.chain_length + 1) * self.batch_size)

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self.batch_size, self.replace)

    def _draw(self, key: Key, target: Target) -> Indices:
        return draw_batch(key, target, self.batch_size, self.replace)

    def _x(self, kick: Kick) -> Position:
        if callable(self.x):
            return self.x(kick)
        if self.x == "noise":
            return kick.noise
        if self.x == "momentum":
            return pytree.scaled(1 / pytree.divisor(kick.noise_scale), kick.over_root(kick.decay))
        if self.x == "next_zero":
            ahead = kick.over_root(pytree.subtract(kick.decay, kick.momentum))
            return pytree.scaled(1 / pytree.divisor(kick.noise_scale), ahead)
        return pytree.full_like(kick.position, 1.0 if self.x == "one" else 0.0)

    def _run_chain(
        self, key: Key, target: Target, kick: Kick, x: Position, state: Indices | tuple[()]
    ) -> tuple[Candidate, dict[str, Array]]:
        """Alg. 1, inner loop. Minibatch m is drawn with fold(key, m), whatever was accepted before."""
        length = self.chain_length
        start = self._draw(_random.fold(key, 0), target) if self.restart else jnp.asarray(state)

        def candidate(indices: Indices) -> Candidate:
            force = target.force(kick.position, indices)
            return Candidate(indices, force, log_weight(force, x, kick))

        if length == 0:
            return candidate(start), {}
        dtype = jax.tree.leaves(kick.position)[0].dtype
        thresholds = jnp.log(_random.uniform(_random.fold(key, length + 1), (length,), dtype))
        evaluate = self._evaluation(pytree.size(kick.position))
        if evaluate == "stacked":
            proposals = [self._draw(_random.fold(key, m), target) for m in range(1, length + 1)]
            stacked = jax.vmap(candidate)(jnp.stack([start, *proposals]))
            chosen, accepted = _decide(stacked.log_weight, thresholds)
            return jax.tree.map(functools.partial(_pick, chosen), stacked), {"acceptance": accepted / length}

        def metropolis(m, carry):
            current, accepted = carry
            proposed = candidate(self._draw(_random.fold(key, m), target))
            accept = thresholds[m - 1] < proposed.log_weight - current.log_weight
            return pytree.where(accept, proposed, current), accepted + accept.astype(dtype)

        carry = (candidate(start), jnp.zeros((), dtype))
        if evaluate == "streamed":
            carry = jax.lax.fori_loop(1, length + 1, metropolis, carry)
        else:
            for m in range(1, length + 1):
                carry = metropolis(m, carry)
        return carry[0], {"acceptance": carry[1] / length}

    def _evaluation(self, dimension: int) -> str:
        if self.evaluate != "auto":
            return self.evaluate
        short, small = self.chain_length <= 3, dimension < _FEW_PARAMETERS
        if not (short and small) and (self.chain_length + 1) * dimension <= _MOST_STACKED_NUMBERS:
            return "stacked"
        return "unrolled" if short else "streamed"

    def _enumerate(self, key: Key, target: Target, kick: Kick, x: Position) -> Candidate:
        """A draw from the limit M → ∞, with the weights of all minibatches."""
        n, b = target.num_data, self.batch_size
        each = target.forces(kick.position, jnp.arange(n))
        batches = jnp.asarray(enumerate_batches(n, b, self.replace))
        forces = jax.tree.map(lambda leaf: jnp.mean(leaf[batches], axis=1), each)
        log_weights = jax.vmap(lambda force: log_weight(force, x, kick))(forces)
        chosen = _random.categorical(_random.fold(key, 0), log_weights)
        return Candidate(batches[chosen], jax.tree.map(lambda leaf: leaf[chosen], forces), log_weights[chosen])


def log_weight(force: Position, x: Position, kick: Kick) -> Float[Array, ""]:
    """½‖x + n a‖² − ½‖x‖² = (n a/2 + x)·n a, where n a = −whitened force; ½‖x‖² is the same for all minibatches."""
    whitened = kick.whiten(force)
    return pytree.dot(whitened, pytree.add_scaled(pytree.scaled(0.5, whitened), -1, x))


def enumerate_batches(num_data: int, batch_size: int, replace: bool) -> np.ndarray:
    """All ordered minibatches, one per row, each equally likely under a uniform draw."""
    rows = (
        itertools.product(range(num_data), repeat=batch_size)
        if replace
        else itertools.permutations(range(num_data), batch_size)
    )
    return np.array(list(rows), np.int32)


def _num_batches(num_data: int, batch_size: int, replace: bool) -> int:
    count = 1
    for k in range(batch_size):
        count *= num_data if replace else num_data - k
    return count


def _pick(chosen: Int[Array, ""], stacked: Array) -> Array:
    """stacked[chosen]; for a few candidates by selection, which XLA fuses into the next operation, without a copy."""
    if stacked.shape[0] > _MOST_CANDIDATES_SELECTED:
        return stacked[chosen]
    picked = stacked[0]
    for number in range(1, stacked.shape[0]):
        picked = jnp.where(chosen == number, stacked[number], picked)
    return picked


def _decide(log_weights: Float[Array, " m1"], thresholds: Float[Array, " m"]) -> tuple[Array, Array]:
    """The M decisions of the index chain, given the weights of all M + 1 candidates: (last index, acceptances)."""
    current, weight = jnp.int32(0), log_weights[0]
    accepted = jnp.zeros((), log_weights.dtype)
    for m in range(1, log_weights.shape[0]):
        accept = thresholds[m - 1] < log_weights[m] - weight
        current = jnp.where(accept, m, current)
        weight = jnp.where(accept, log_weights[m], weight)
        accepted = accepted + accept.astype(accepted.dtype)
    return current, accepted
