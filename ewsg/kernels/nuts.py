"""The No-U-Turn sampler on all data: the exact, gradient-based reference."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _random
from .._core import pytree
from .._core.component import as_real, check_count, check_positive
from .._core.settings import plain
from .._core.types import HostOrDevice, Key, Position, Scalar
from .._random.streams import chain_keys
from ..errors import InputError, first_line, shown
from ..interface import Cost
from ..target.checking import check_start
from ..target.target import Target
from .full_data import AbstractFullKernel, FullSampler, Move, blackjax, check_digits, tempered, unchecked

_MOST_GRADIENTS = 2**32


class NUTS(AbstractFullKernel):
    r"""The No-U-Turn sampler (BlackJAX) with fixed settings: exact for any step size.

    A step follows a Hamiltonian trajectory of p(θ, r) ∝ exp(−V(θ)/T − ½ rᵀM⁻¹r) by leapfrog steps, doubles it until it
    turns back, and draws the next position from it (multinomially).

    Cost: n datum gradients for every leapfrog step of a chain, and n for the start, counted in the first step. Chains
    run in lock step: the time in which a chain waits for slower ones is not counted.
    Stats: `acceptance`, `leapfrogs`, `divergent` (1 for a trajectory whose energy error exceeded 1,000).

    Args:
        step_size: the size of the leapfrog steps, in units of √M⁻¹.
        inverse_mass_matrix: M⁻¹, of shape (d,) or (d, d) in the order of `jax.flatten_util.ravel_pytree`, ideally
            the posterior's variances; None is the identity.
        max_depth: a trajectory is doubled at most this many times.
        temperature: T of the target exp(−V/T).
        warmup_gradients: the datum gradients spent on finding these settings (`adapt_nuts`), counted as preparation.

    References:
        M. Hoffman and A. Gelman, The No-U-Turn Sampler, JMLR 15 (2014); M. Betancourt, arXiv 1701.02434.
    """

    step_size: float
    inverse_mass_matrix: Float[HostOrDevice, " d"] | Float[HostOrDevice, "d d"] | list | None = None
    max_depth: int = eqx.field(static=True, default=10, converter=plain)
    temperature: float = 1.0
    warmup_gradients: int = eqx.field(static=True, default=0, converter=plain)

    def __check_init__(self):
        check_positive("NUTS", "step_size", self.step_size)
        check_count("NUTS", "max_depth", self.max_depth, 1)
        check_count("NUTS", "warmup_gradients", self.warmup_gradients, 0)
        if self.inverse_mass_matrix is not None:
            _check_mass(self.inverse_mass_matrix)

    def bind(self, target: Target) -> FullSampler:
        if target.num_data * 2**self.max_depth >= _MOST_GRADIENTS:
            raise InputError(
                f"NUTS: {target.num_data} data × 2^{self.max_depth} leapfrog steps are more gradients than a step can "
                "count: lower max_depth"
            )
        return super().bind(target)

    def first(self, log_density: Callable, position: Position) -> tuple[Array, Position]:
        return jax.value_and_grad(log_density)(_widened(position))

    def move(self, key: Key, log_density: Callable, position: Position, carried: tuple[Array, Position]) -> Move:
        position = _widened(position)
        dtype = jax.tree.leaves(position)[0].dtype
        kernel = blackjax().nuts(
            log_density,
            step_size=jnp.asarray(self.step_size, dtype),
            inverse_mass_matrix=self._inverse_mass(position, dtype),
            max_num_doublings=self.max_depth,
        )
        state = blackjax().mcmc.hmc.HMCState(position, *carried)
        # as plain words: under vmap, BlackJAX's branches would look like a key used twice
        state, info = kernel.step(_random.pack(key), state)
        leapfrogs = info.num_integration_steps
        stats = {"acceptance": info.acceptance_rate, "leapfrogs": leapfrogs, "divergent": info.is_divergent}
        return Move(state.position, (state.logdensity, state.logdensity_grad), leapfrogs, stats)

    def passes_per_step(self) -> int:
        raise InputError("the number of NUTS steps that a budget pays for depends on its trajectories: give num_steps=")

    def prepared(self) -> Cost:
        return Cost(self.warmup_gradients)

    def _inverse_mass(self, position: Position, dtype: jnp.dtype) -> Array:
        d = pytree.size(position)
        if self.inverse_mass_matrix is None:
            return jnp.ones(d, dtype)
        matrix = jnp.asarray(self.inverse_mass_matrix, dtype)
        if matrix.shape not in ((d,), (d, d)):
            raise InputError(f"NUTS: inverse_mass_matrix has shape {matrix.shape}, but there are {d} parameters")
        return matrix


class Tuned(NamedTuple):
    """Chains after warm-up: their states, step sizes and inverse mass matrices."""

    state: Any
    parameters: dict[str, Array]


def adapt_nuts(
    target: Target,
    init: Position | Callable[[Key], Position],
    *,
    temperature: float = 1.0,
    num_chains: int = 4,
    num_warmup: int = 1000,
    max_depth: int = 10,
    seed: int = 0,
) -> NUTS:
    """The kernel `NUTS` with step size and diagonal mass matrix adapted to a target (BlackJAX, Stan's windows).

    Several chains are adapted independently to an acceptance rate of 0.8; the kernel has the median of their step sizes
    and the mean of their inverse mass matrices. The cost is counted as preparation of a run with that kernel.

    Args:
        target: the posterior.
        init: the starting point, a pytree of floating-point arrays; or a function of a key (one per chain).
        temperature: T.
        num_chains: the number of chains to adapt.
        num_warmup: transitions per chain.
        max_depth: as in `NUTS`.
        seed: equal seeds give equal kernels.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> from ewsg.kernels import adapt_nuts
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(5.0))
        >>> kernel = adapt_nuts(target, jnp.array(0.0), num_warmup=100)
        >>> run = ewsg.sample(target, kernel, init=jnp.array(0.0), num_steps=100)
        >>> run.cost.datum_gradients > kernel.warmup_gradients > 0
        True
    """
    check_positive("adapt_nuts", "temperature", temperature)
    check_count("adapt_nuts", "num_chains", num_chains, 1)
    check_count("adapt_nuts", "num_warmup", num_warmup, 20)
    check_count("adapt_nuts", "max_depth", max_depth, 1)
    with unchecked():
        keys = chain_keys(_random.checked_key(seed), int(num_chains))
        positions = starting_points(target, init, keys.init, temperature)
        lengths = int(num_warmup), int(max_depth)
        tuned, leapfrogs = warm_up(target, float(temperature), keys.start, positions, *lengths)
    gradients = (int(num_chains) + int(np.asarray(leapfrogs, np.int64).sum())) * target.num_data
    return NUTS(
        step_size=float(np.median(tuned.parameters["step_size"])),
        inverse_mass_matrix=jnp.mean(tuned.parameters["inverse_mass_matrix"], axis=0),
        max_depth=max_depth,
        temperature=temperature,
        warmup_gradients=gradients,
    )


def starting_points(
    target: Target, init: Position | Callable[[Key], Position], keys: Array, temperature: Scalar
) -> Position:
    """The starting points of all chains, checked, in the widest floating-point type that is enabled."""
    check_start(init)
    if pytree.is_function(init):
        try:
            positions = target.positions_of(jax.vmap(init)(keys), leading=1)
        except Exception as error:
            raise InputError(f"init(key) failed: {first_line(error)}") from error
        target.check(jax.tree.map(lambda leaf: leaf[0], positions))
    else:
        init = target.starting_at(init)
        target.check(init)
        positions = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(keys), *jnp.shape(leaf))), init)
    positions = _widened(positions)
    check_digits(target, temperature, positions)
    return positions


def _check_mass(matrix: Any) -> None:
    """Raise InputError unless `matrix` is a vector of positive numbers or a matrix of numbers of any sign."""
    numbers = as_real(matrix)
    if numbers is None or numbers.ndim not in (1, 2):
        raise InputError(
            "NUTS: inverse_mass_matrix must be a vector or a matrix of numbers, such as the posterior's covariance, "
            f"not {shown(matrix)}"
        )
    if numbers.ndim == 1:
        check_positive("NUTS", "inverse_mass_matrix", matrix, array=True)


def _widened(position: Position) -> Position:
    """The position in the widest floating-point type that is enabled, which BlackJAX's NUTS needs."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.result_type(float)), position)


@functools.partial(jax.jit, static_argnums=(4, 5))
def warm_up(
    target: Target, temperature: Scalar, keys: Array, positions: Position, num_warmup: int, max_depth: int = 10
) -> tuple[Tuned, Int[Array, "chain warmup"]]:
    """The tuned chains, and the number of leapfrog steps in each transition."""
    density = tempered(target, temperature)
    adaptation = blackjax().window_adaptation(blackjax().nuts, density, max_num_doublings=max_depth)

    def chain(key: Key, position: Position) -> tuple[Tuned, Array]:
        (state, parameters), info = adaptation.run(key, position, num_warmup)
        kept = {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}
        return Tuned(state, kept), info.info.num_integration_steps

    return jax.vmap(chain)(keys, positions)
