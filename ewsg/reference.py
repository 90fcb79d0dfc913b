"""Reference posteriors: exact draws by NUTS, to measure stochastic-gradient samplers against."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from . import _random
from ._core import ess
from ._core.component import check_count, check_positive
from ._core.types import Key, Position
from ._engine import progress as _progress
from ._random.streams import chain_keys
from .diagnostics import flatten, moments
from .kernels.full_data import blackjax, tempered, unchecked
from .kernels.nuts import Tuned, starting_points, warm_up
from .target.target import Target

_MOST_CHUNKS = 20


class Reference(NamedTuple):
    """The result of `nuts`.

    Attributes:
        draws: pytree like the parameters, with leading axes (chain, draw); as `run.draws`, if there are constraints.
        mean: the posterior mean over all scalars in the order of `jax.flatten_util.ravel_pytree`, float64.
        sd: the posterior standard deviations, likewise.
        cov: the posterior covariance, likewise.
        ess: the smallest bulk effective sample size over the scalars.
        divergences: draws whose trajectory diverged; with more than a few the reference is not to be trusted.
        datum_gradients: gradients of one datum, all chains together, warm-up included: n for the start and
            for each leapfrog step that BlackJAX reports. Work wasted by chains that wait for slower ones (they run in
            lock step) is not counted.
        seconds: wall-clock time, compilation included.
    """

    draws: Position
    mean: Float[np.ndarray, " d"]
    sd: Float[np.ndarray, " d"]
    cov: Float[np.ndarray, "d d"]
    ess: float
    divergences: int
    datum_gradients: int
    seconds: float


class _Rows(NamedTuple):
    """The record of a draw."""

    position: Position
    leapfrogs: Int[Array, "..."]
    divergent: Bool[Array, "..."]


def nuts(
    target: Target,
    init: Position | Callable[[Key], Position],
    *,
    temperature: float = 1.0,
    num_chains: int = 4,
    num_warmup: int = 1000,
    num_draws: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> Reference:
    """Draws from p(θ) ∝ exp(−V(θ)/T) by the No-U-Turn sampler on all data, with BlackJAX.

    Step size and diagonal mass matrix are adapted per chain during warm-up (Stan's windows, acceptance 0.8).
    A leapfrog step costs n datum gradients. Parameters are float64 if `jax_enable_x64` is on, whatever `init`
    is; in float32, a log density so large that its rounding shows in the energies (some 10^6 data) raises InputError.

    Args:
        target: the posterior.
        init: the starting point, a pytree of floating-point arrays; or a function of a key (one per chain).
        temperature: T.
        num_chains: chains, run together.
        num_warmup: transitions per chain for adaptation, discarded.
        num_draws: draws per chain.
        seed: equal seeds give equal draws.
        progress: None shows a bar on a terminal or in a notebook once the draws take more than two seconds.

    References:
        M. Hoffman and A. Gelman, The No-U-Turn Sampler, JMLR 15 (2014); M. Betancourt, arXiv 1701.02434.

    Example:
        >>> import jax.numpy as jnp, ewsg.reference
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(5.0))
        >>> reference = ewsg.reference.nuts(target, jnp.array(0.0), num_warmup=100, num_draws=100)
        >>> reference.mean.shape, reference.draws.shape
        ((1,), (4, 100))
    """
    check_positive("nuts", "temperature", temperature)
    check_count("nuts", "num_chains", num_chains, 1)
    check_count("nuts", "num_warmup", num_warmup, 20)
    check_count("nuts", "num_draws", num_draws, 4)
    began = time.perf_counter()
    with unchecked():
        keys = chain_keys(_random.checked_key(seed), num_chains)
        positions = starting_points(target, init, keys.init, temperature)
        tuned, warmup = warm_up(target, float(temperature), keys.start, positions, num_warmup)
        rows = _sample(target, float(temperature), keys.steps, tuned, num_draws, progress)
    draws = target.draws_at(rows.position)
    mean, cov = moments(draws)
    evaluations = num_chains + _total(warmup) + _total(rows.leapfrogs)
    return Reference(
        draws=draws,
        mean=mean,
        sd=np.sqrt(np.diag(cov)),
        cov=cov,
        ess=float(np.min(ess.ess(flatten(draws)))),
        divergences=_total(rows.divergent),
        datum_gradients=evaluations * target.num_data,
        seconds=time.perf_counter() - began,
    )


def _sample(
    target: Target, temperature: float, keys: Array, tuned: Tuned, num_draws: int, progress: bool | None
) -> _Rows:
    """All draws on the host, made in equal chunks to update the progress bar."""
    chunks = max(k for k in range(1, _MOST_CHUNKS + 1) if num_draws % k == 0)
    kept = []
    with _progress.bar(num_draws, progress, "NUTS") as update:
        for numbers in np.arange(num_draws, dtype=np.int32).reshape(chunks, -1):
            tuned, rows = _draw(target, temperature, keys, tuned, numbers)
            kept.append(jax.tree.map(np.asarray, rows))
            update(int(numbers[-1]) + 1, "")
    return jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *kept)


def _total(counts: Any) -> int:
    return int(np.asarray(counts, np.int64).sum())


@jax.jit
def _draw(
    target: Target, temperature: Any, keys: Array, tuned: Tuned, numbers: Int[Array, " draw"]
) -> tuple[Tuned, _Rows]:
    """The draws with the given numbers, of every chain."""

    def chain(key: Key, tuned: Tuned) -> tuple[Tuned, _Rows]:
        kernel = blackjax().nuts(tempered(target, temperature), **tuned.parameters)

        def step(state: Any, number: Int[Array, ""]) -> tuple[Any, _Rows]:
            state, info = kernel.step(_random.fold(key, number), state)
            return state, _Rows(state.position, info.num_integration_steps, info.is_divergent)

        state, rows = jax.lax.scan(step, tuned.state, numbers)
        return Tuned(state, tuned.parameters), rows

    return jax.vmap(chain)(keys, tuned)
