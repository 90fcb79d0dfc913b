"""The paper's Gaussian potential."""

import jax.numpy as jnp


def gaussian_log_likelihood(theta, centre):
    return -0.5 * jnp.sum((theta - centre) ** 2)
