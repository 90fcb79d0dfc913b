"""Random-walk Metropolis on all data: the plainest exact sampler."""

from collections.abc import Callable
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _random
from .._core.component import check_positive
from .._core.types import HostOrDevice, Key, Position
from ..errors import InputError
from .full_data import AbstractFullKernel, Move, blackjax


class RandomWalk(AbstractFullKernel):
    r"""Random-walk Metropolis (BlackJAX): exact for any step size.

    θ' = θ + step_size·ξ,  ξ ~ N(0, I), accepted with probability min{1, exp((V(θ) − V(θ'))/T)}.

    Cost: each step evaluates the likelihood of all n data, and so does the start, counted in the first step; these
    **likelihoods** count as datum gradients. In float32 a log density beyond about 10^6 has too few digits.
    Stats: `acceptance`.

    Args:
        step_size: standard deviation of the proposal: one number, or one per parameter, of shape (d,) in the order of
            `jax.flatten_util.ravel_pytree`.
        temperature: T of the target exp(−V/T).

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> from ewsg.kernels import RandomWalk
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> run = ewsg.sample(target, RandomWalk(step_size=0.7), init=jnp.array(4.0), num_chains=2, num_steps=200)
        >>> run.cost.datum_gradients
        4020
    """

    step_size: float | Float[HostOrDevice, " d"]
    temperature: float = 1.0

    def __check_init__(self):
        check_positive("RandomWalk", "step_size", self.step_size, array=True)

    def first(self, log_density: Callable, position: Position) -> Array:
        return log_density(position)

    def move(self, key: Key, log_density: Callable, position: Position, carried: Array) -> Move:
        kernel = blackjax().additive_step_random_walk(log_density, self._noise)
        state = blackjax().mcmc.random_walk.RWState(position, carried)
        state, info = kernel.step(key, state)
        return Move(state.position, state.logdensity, 1, {"acceptance": info.acceptance_rate})

    def passes_per_step(self) -> int:
        return 1

    def _noise(self, key: Key, position: Position) -> Any:
        flat, unravel = jax.flatten_util.ravel_pytree(position)
        scale = jnp.asarray(self.step_size, flat.dtype)
        if scale.ndim and scale.shape != flat.shape:
            raise InputError(f"RandomWalk: step_size has shape {scale.shape}, but there are {flat.size} parameters")
        return unravel(scale * _random.normal_like(key, flat))
