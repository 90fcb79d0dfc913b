"""The exact samplers of wall_clock.py: CPU seconds until every mean and sd of a posterior is known to 0.025 sd.

All are granted what they would have to find: a start in the typical set, and the metric (the Laplace approximation's
variances, or all of its covariance, "dense") with the step size that suits it best. Warm-up is not counted,
compilation is. How many draws it takes, and of how many leapfrog steps, is measured where draws are cheap: with the
same metric and step size on the Gaussian of the Laplace approximation. The time of a leapfrog step is that of a few
draws of the posterior itself.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ERROR = 0.025
"""Monte-Carlo standard error of a mean or an sd, in posterior sd: as in a planned run to 0.05."""
_MOST_SECONDS = 15
_SCANNED = 10
_CHEAP_DRAWS = 1_000
_STEPS = (0.8, 0.6, 0.45)
"""Step sizes to choose from, over that of the stiffest direction's frequency."""


class Laplace(NamedTuple):
    """The mode and the covariance there."""

    mean: np.ndarray
    covariance: np.ndarray


def centred_density(x: np.ndarray, labels: np.ndarray, scale: float, mode: np.ndarray) -> Callable:
    """log p(θ) − log p(mode), summed datum by datum: float32 is enough for any n."""
    import jax
    import jax.numpy as jnp

    signed = jnp.asarray(x * np.where(labels, 1, -1)[:, None].astype(np.float32))
    there = jnp.asarray(mode, jnp.float32)
    usual = jax.nn.softplus(-signed @ there)

    def density(theta):
        prior = jnp.sum(jnp.square(theta) - jnp.square(there)) / (2 * scale**2)
        return jnp.sum(usual - jax.nn.softplus(-signed @ theta)) - prior

    return density


def gaussian_density(laplace: Laplace) -> Callable:
    """The log density of the Laplace approximation."""
    import jax.numpy as jnp

    precision = jnp.asarray(np.linalg.inv(laplace.covariance), jnp.float32)
    there = jnp.asarray(laplace.mean, jnp.float32)
    return lambda theta: -0.5 * (theta - there) @ precision @ (theta - there)


def draws_needed(draws: np.ndarray) -> float:
    """Draws until means and sds have standard errors of `ERROR`: the median parameter's, not the slowest one's."""
    from ewsg._core import ess

    draws = np.asarray(draws, np.float64)[None]
    of_means, of_squares = np.median(ess.ess(draws)), np.median(ess.ess((draws - draws.mean(1)) ** 2))
    return draws.shape[1] * max(1 / of_means, 0.5 / of_squares) / ERROR**2


def nuts(library: str, density: Callable, laplace: Laplace, dense: bool, seed: int) -> dict:
    """BlackJAX's or NumPyro's No-U-Turn sampler with a fixed metric, and the best step size for the Gaussian."""
    import jax
    import jax.numpy as jnp

    metric = laplace.covariance if dense else np.diag(laplace.covariance)
    half = np.linalg.cholesky(laplace.covariance) if dense else np.diag(np.sqrt(metric))
    stiffest = float(np.linalg.eigvalsh(half.T @ np.linalg.inv(laplace.covariance) @ half)[-1])
    metric = jnp.asarray(metric, jnp.float32)
    kernel = _blackjax if library == "blackjax" else _numpyro
    key, start = jax.random.key(seed), _start(laplace, seed)
    tried = {}
    for share in _STEPS:
        step = share * stiffest**-0.5
        begin, move = kernel(gaussian_density(laplace), step, metric)
        run = jax.jit(lambda key, start, begin=begin, move=move: _scan(move, begin(key, start), key, _CHEAP_DRAWS))
        positions, more, _ = run(key, start)
        tried[step] = draws_needed(positions), float(np.mean(more))
    step = min(tried, key=lambda step: tried[step][0] * tried[step][1])
    needed, usual = tried[step]
    begin, move = kernel(density, step, metric)
    move, began = jax.jit(move), time.process_time()
    state, position, _, _ = move(key, begin(key, start))
    jax.block_until_ready(position)
    compiling = time.process_time() - began
    began, steps, accepted, draws = time.process_time(), 0, 0.0, 0
    while draws < 3 or (time.process_time() - began < _MOST_SECONDS and draws < 200):
        draws += 1
        state, _, more, rate = move(jax.random.fold_in(key, draws), state)
        steps, accepted = steps + int(more), accepted + float(rate)
    each = (time.process_time() - began) / steps
    return {
        "seconds": compiling + needed * usual * each,
        "draws": needed,
        "seconds_per_draw": usual * each,
        "leapfrogs_per_draw": usual,
        "leapfrogs_per_draw_while_timed": steps / draws,
        "acceptance": accepted / draws,
        "draws_timed": draws,
        "step_size": step,
        "compile_seconds": compiling,
    }


def _scan(move: Callable, state, key, count: int):
    """Positions, leapfrog steps and acceptance rates of some draws."""
    import jax

    def advance(state, key):
        state, *row = move(key, state)
        return state, row

    return jax.lax.scan(advance, state, jax.random.split(key, count))[1]


def _start(laplace: Laplace, seed: int):
    import jax.numpy as jnp

    normal = np.random.default_rng(seed).normal(size=len(laplace.mean))
    return jnp.asarray(laplace.mean + np.linalg.cholesky(laplace.covariance) @ normal, jnp.float32)


def _blackjax(density: Callable, step: float, metric) -> tuple[Callable, Callable]:
    import blackjax

    kernel = blackjax.nuts(density, step, metric)

    def move(key, state):
        state, info = kernel.step(key, state)
        return state, state.position, info.num_integration_steps, info.acceptance_rate

    return lambda key, start: kernel.init(start), move


def _numpyro(density: Callable, step: float, metric) -> tuple[Callable, Callable]:
    from numpyro.infer import NUTS

    kernel = NUTS(
        potential_fn=lambda theta: -density(theta),
        step_size=step,
        inverse_mass_matrix=metric,
        dense_mass=metric.ndim == 2,
        adapt_step_size=False,
        adapt_mass_matrix=False,
    )

    def move(key, state):
        state = kernel.sample(state, (), {})
        return state, state.z, state.num_steps, state.accept_prob

    return lambda key, start: kernel.init(key, 0, start, (), {}), move


def hmcecs(x: np.ndarray, labels: np.ndarray, scale: float, laplace: Laplace, seed: int) -> dict:
    """NumPyro's HMCECS with a second-order proxy at the mode; dense metric, and the effective sizes of its own draws.

    1,300 data in 100 blocks, as in NumPyro's own example (hmcecs.py, 1.5 million rows). In double precision: log
    densities of 10^5 and more have too few digits in float32 for a Metropolis test.
    """
    import jax
    import jax.numpy as jnp
    import numpyro
    from numpyro import distributions
    from numpyro.infer import HMCECS, NUTS

    jax.config.update("jax_enable_x64", True)

    def model(x, labels):
        prior = distributions.Normal(0, scale).expand([x.shape[1]]).to_event(1)
        theta = numpyro.sample("theta", prior)
        with numpyro.plate("data", len(x), subsample_size=1300):
            rows, own = numpyro.subsample(x, event_dim=1), numpyro.subsample(labels, event_dim=0)
            numpyro.sample("label", distributions.Bernoulli(logits=rows @ theta), obs=own)

    inner = NUTS(
        model,
        step_size=0.6,
        inverse_mass_matrix={("theta",): jnp.asarray(laplace.covariance)},
        dense_mass=[("theta",)],
        adapt_step_size=False,
        adapt_mass_matrix=False,
    )
    began = time.process_time()
    kernel = HMCECS(inner, num_blocks=100, proxy=HMCECS.taylor_proxy({"theta": jnp.asarray(laplace.mean)}))
    data = jnp.asarray(x, jnp.float64), jnp.asarray(labels, jnp.int32)
    start = _start(laplace, seed).astype(jnp.float64)
    state = kernel.init(jax.random.key(seed), 0, {"theta": start}, data, {})

    @jax.jit
    def some(state, data):
        def advance(state, _):
            state = kernel.sample(state, data, {})
            return state, (state.z["theta"], state.hmc_state.num_steps, state.hmc_state.accept_prob, state.accept_prob)

        return jax.lax.scan(advance, state, None, _SCANNED)

    state, _ = jax.block_until_ready(some(state, data))
    preparing = time.process_time() - began
    began, kept = time.process_time(), []
    while len(kept) < 3 or (time.process_time() - began < 2 * _MOST_SECONDS and len(kept) < 200):
        state, rows = some(state, data)
        kept.append(jax.tree.map(np.asarray, rows))
    each = (time.process_time() - began) / (_SCANNED * len(kept))
    positions, steps, accepted, subsamples = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    needed = draws_needed(positions)
    return {
        "seconds": preparing + needed * each,
        "draws": needed,
        "seconds_per_draw": each,
        "leapfrogs_per_draw": float(steps.mean()),
        "acceptance": float(accepted.mean()),
        "subsamples_accepted": float(subsamples.mean()),
        "draws_timed": len(positions),
        "compile_seconds": preparing,
        "mean": positions.mean(0).tolist(),
        "covariance": np.cov(positions.T).tolist(),
    }


def nutpie(density: Callable, laplace: Laplace, seed: int) -> dict:
    """nutpie, in coordinates whitened by the Laplace approximation: it takes no metric, and there it needs none.

    Seconds per gradient are those of 40 draws on the posterior; draws and gradients per draw those of 2,000 on the
    Gaussian, after its default warm-up.
    """
    import jax
    import jax.numpy as jnp
    import nutpie as library

    mean = jnp.asarray(laplace.mean, jnp.float32)
    root = jnp.asarray(np.linalg.cholesky(laplace.covariance), jnp.float32)
    size = len(laplace.mean)

    def sampled(density: Callable, tune: int, draws: int) -> tuple[np.ndarray, np.ndarray, float]:
        both = jax.jit(jax.value_and_grad(lambda z: density(mean + root @ z)))
        both(jnp.zeros(size, jnp.float32))[1].block_until_ready()

        def evaluate(z):
            value, gradient = both(np.asarray(z, np.float32))
            return float(value), np.asarray(gradient, np.float64)

        compiled = library.compiled_pyfunc.from_pyfunc(
            size,
            lambda: evaluate,
            lambda *seeds: lambda z: {"z": np.asarray(z, np.float64)},
            [np.dtype("float64")],
            [(size,)],
            ["z"],
            make_initial_point_fn=lambda seed: np.random.default_rng(seed).normal(size=size),
        )
        began = time.process_time()
        trace = library.sample(compiled, chains=1, cores=1, tune=tune, draws=draws, seed=seed, progress_bar=False)
        spent = time.process_time() - began
        warm = np.asarray(trace.warmup_sample_stats["n_steps"][0])
        steps = np.asarray(trace.sample_stats["n_steps"][0])
        return np.asarray(trace.posterior["z"][0]), steps, spent / (warm.sum() + steps.sum())

    began = time.process_time()
    jax.jit(jax.value_and_grad(density))(mean)[1].block_until_ready()
    compiling = time.process_time() - began
    positions, steps, _ = sampled(gaussian_density(laplace), 400, 2_000)
    needed = draws_needed(positions)
    _, own_steps, each = sampled(density, 30, 10)
    return {
        "seconds": compiling + needed * steps.mean() * each,
        "draws": needed,
        "seconds_per_draw": float(steps.mean() * each),
        "leapfrogs_per_draw": float(steps.mean()),
        "leapfrogs_per_draw_while_timed": float(own_steps.mean()),
        "draws_timed": 40,
        "compile_seconds": compiling,
    }
