"""Theorem 3, the factor of the middle term: how much the stochastic force varies, given the state, along a run."""

import functools
import math
import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import _random
from .._core import pytree
from .._core.component import check_count, rebuild
from .._core.types import Key, Position
from ..errors import InputError
from ..estimators import AbstractEstimator
from ..integrators import AbstractIntegrator
from ..result.run import Run
from ..sampler import AbstractSampler, Sampler, SamplerState, compose
from ..target.target import Target

_BLOCK_ENTRIES = 16_000_000


class MeanTrace(NamedTuple):
    """An average over draws, and its standard error over chains (NaN for a single chain)."""

    value: float
    standard_error: float


def mean_trace(
    run: Run,
    target: Target,
    *,
    num_points: int = 256,
    num_replicates: int = 16,
    estimator: AbstractEstimator | None = None,
    integrator: AbstractIntegrator | None = None,
    seed: int = 0,
) -> MeanTrace:
    r"""The mean local variance of a run's own forces.

    (1/K) Σ_k E[ Tr cov(n∇V_{I_k} | F_k) ]                                              (Thm 3, second term)

    estimated at kept draws, spread evenly over chains and time, by repeating the run's own estimate of the
    force: it holds for any minibatch size, length of the index chain and choice of x. Draws keep no momentum,
    so r is drawn from its stationary law N(0, T I); in a heated chain it is larger.

    Args:
        run: a run that kept its positions (`collect=None`).
        target: its posterior.
        num_points: at how many draws.
        num_replicates: forces at each of them.
        estimator: used instead of the run's, to see what another would do at the same draws; required if a setting of
        the run's is a Python function.
        integrator: likewise.
        seed: of the replicates.
    """
    sampler = compose(
        target,
        estimator or rebuild(run.settings["estimator"], "estimator"),
        integrator or rebuild(run.settings["integrator"], "integrator"),
    )
    positions, num_chains = _spread(run, num_points)
    positions = target.positions_of(positions, leading=1)
    traces = force_traces(sampler, positions, _random.checked_key(seed), num_replicates=num_replicates)
    by_chain = traces.reshape(num_chains, -1).mean(axis=1)
    error = np.std(by_chain, ddof=1) / np.sqrt(num_chains) if num_chains > 1 else np.nan
    return MeanTrace(float(np.mean(by_chain)), float(error))


def force_traces(
    sampler: AbstractSampler,
    positions: Position,
    key: Key,
    *,
    num_replicates: int = 16,
) -> np.ndarray:
    """Unbiased estimates of Tr cov(force | θ, r) at each position (leading axis), with r ~ N(0, T I).

    Each is the sample variance of `num_replicates` forces that the sampler's own step would use there.
    """
    check_count("force_traces", "num_replicates", num_replicates, 2)
    if not isinstance(sampler, Sampler):
        raise InputError(f"{type(sampler).__name__} has no estimator, hence no stochastic force")
    positions = jax.tree.map(jnp.asarray, positions)
    _check_stateless(sampler, positions)
    num_points = jax.tree.leaves(positions)[0].shape[0]
    keys = _random.split(key, num_points)
    num_blocks = math.ceil(num_replicates * pytree.size(positions) / _BLOCK_ENTRIES)
    traces = []
    for block in np.array_split(np.arange(num_points), min(num_blocks, num_points)):
        rows = jax.tree.map(operator.itemgetter(block), positions)
        forces = pytree.host_rows(_replicates(sampler, keys[block], rows, num_replicates), leading=2)
        traces.append(np.sum(np.var(forces, axis=1, ddof=1), axis=-1))
    return np.concatenate(traces)


@functools.partial(jax.jit, static_argnames="num_replicates")
def _replicates(sampler: Sampler, keys: jax.Array, positions: Position, num_replicates: int) -> Position:
    """Forces with leading axes (position, replicate)."""

    def forces(key: Key, position: Position) -> Position:
        key_phase, key_momentum, key_estimator, key_steps = _random.split(key, 4)
        phase = sampler.integrator.init(key_phase, position)
        if phase.momentum is not None:
            thermal = _random.normal_like(key_momentum, position)
            phase = phase._replace(momentum=pytree.scaled(jnp.sqrt(sampler.temperature), thermal))
        estimator_state = sampler.estimator.init(key_estimator, sampler.target, position)
        state = SamplerState(phase, estimator_state, jnp.int32(0))
        return jax.vmap(lambda k: sampler.step(k, state)[1].force)(_random.split(key_steps, num_replicates))

    return jax.vmap(forces)(keys, positions)


def _check_stateless(sampler: Sampler, positions: Position) -> None:
    first = jax.tree.map(lambda leaf: leaf[0], positions)
    state = jax.eval_shape(sampler.estimator.init, jax.random.key(0), sampler.target, first)
    if jax.tree.leaves(state):
        raise InputError(
            f"{type(sampler.estimator).__name__} carries a state from step to step that is not among the draws: "
            "its conditional variance cannot be estimated from draws alone"
        )


def _spread(run: Run, num_points: int) -> tuple[Position, int]:
    """About `num_points` positions, chain by chain, evenly spaced in time; and the number of chains."""
    check_count("mean_trace", "num_points", num_points, 1)
    if run.settings["collect"]["component"] != "Draws" or run.settings["collect"]["function"] is not None:
        raise InputError("mean_trace needs the positions themselves: run with collect=None")
    draws = run.good_draws()
    available, length = jax.tree.leaves(draws)[0].shape[:2]
    if available == 0 or length == 0:
        raise InputError('the run has no draws of chains with status "ok"')
    num_chains = min(available, num_points)
    chains = np.linspace(0, available - 1, num_chains).round().astype(int)
    num_times = min(length, max(1, num_points // num_chains))
    times = np.linspace(0, length - 1, num_times + 2)[1:-1].round().astype(int)
    rows = jax.tree.map(lambda leaf: leaf[np.ix_(chains, times)].reshape(-1, *leaf.shape[2:]), draws)
    return rows, num_chains
