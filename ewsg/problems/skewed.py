"""A normal model for log-normal data: the fit of Bardenet, Doucet and Holmes, whose data are skewed."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..target.target import Target
from .base import Problem


def log_likelihood(theta: Float[Array, " 2"], x: Float[Array, ""]) -> Float[Array, ""]:
    """log N(x; μ, σ²) with θ = (μ, log σ)."""
    return -0.5 * jnp.square((x - theta[0]) * jnp.exp(-theta[1])) - theta[1] - 0.5 * math.log(2 * math.pi)


def skewed() -> Problem:
    """x_i = exp(0.6 z_i), z_i ~ N(0, 1), n = 10,007, flat prior on (μ, log σ)."""
    x = np.exp(0.6 * np.random.default_rng(0).normal(size=10_007)).astype(np.float32)
    return Problem(
        title="skewed log-normal fit, n = 10,007, d = 2",
        target=Target(log_likelihood, None, x),
        init=jnp.array([float(x.mean()), math.log(float(x.std()))]),
        step_size=1e-4,
        friction=100.0,
        data_per_step=100,
        num_draws=8000,
    )
