"""Posteriors of given gradients, and chains on the potential of the paper's appendix."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

import ewsg
from ewsg import theory
from ewsg._core.component import describe


def linear_target(gradients: np.ndarray) -> ewsg.Target:
    """A posterior whose n∇V_i are the rows given, wherever it is looked at."""
    rows = np.asarray(gradients, np.float32) / len(gradients)
    return ewsg.Target(lambda theta, row: -jnp.dot(row, theta), None, rows)


def gaussian_gradients(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def origin(d: int) -> jax.Array:
    return jnp.zeros(d)


MU = np.random.default_rng(8).gamma(1.0, size=12).astype(np.float32)
MU -= MU.mean()


NUM_CHAINS, NUM_DRAWS = 10_000, 60  # one shape for all runs: each estimator is compiled once


def square(theta):
    return theta**2


@functools.cache
def chains(estimator=None, scale=1.0, step_size=0.05, thin=4, units="sum") -> ewsg.Run:
    """Chains on the appendix's potential from θ = 3, SGHMC unless another estimator is given."""
    return ewsg.sample(
        theory.quadratic_target(scale * MU),
        estimator or ewsg.Uniform(1),
        ewsg.Underdamped(step_size=step_size, friction=1.0, units=units),
        init=jnp.array(3.0),
        num_chains=NUM_CHAINS,
        num_steps=NUM_DRAWS * thin,
        discard=0,
        thin=thin,
        seed=2,
    )


def as_if_collected(run: ewsg.Run) -> ewsg.Run:
    """What the run would be with collect=square."""
    settings = run.settings | {"collect": describe(ewsg.collect.Draws(square))}
    return dataclasses.replace(run, draws=square(run.draws), settings=settings)
