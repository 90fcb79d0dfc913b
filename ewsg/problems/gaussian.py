"""The paper's Gaussian in the plane: fifty quadratic potentials."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _random
from ..target.target import Target
from .base import Problem


def log_likelihood(theta: Float[Array, " d"], centre: Float[Array, " d"]) -> Float[Array, ""]:
    """−V_i(θ) = −½‖θ − c_i‖²."""
    return -0.5 * jnp.sum((theta - centre) ** 2)


def centres(seed: int = 42, num_data: int = 50, dimension: int = 2) -> np.ndarray:
    """c_i ~ N(0, I)."""
    return np.asarray(jax.random.normal(_random.checked_key(seed), (num_data, dimension)))


def gaussian() -> Problem:
    """V(θ) = Σ ½‖θ − c_i‖², n = 50: the posterior is N(mean of c, I/50)."""
    data = centres()
    return Problem(
        title="Gaussian, n = 50, d = 2",
        target=Target(log_likelihood, None, data),
        init=jnp.zeros(2),
        step_size=0.02,
        friction=10.0,
        data_per_step=4,
        exact=(data.astype(np.float64).mean(0), np.eye(2) / len(data)),
    )
