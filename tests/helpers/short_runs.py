"""Short runs of one method."""

import jax
import jax.numpy as jnp
import numpy as np

import ewsg

METHOD = ewsg.Uniform(4), ewsg.Underdamped(step_size=0.01, friction=5.0)


def sample(target, **options):
    return ewsg.sample(target, *METHOD, **{"init": jnp.zeros(2), "num_chains": 2, "num_steps": 40, "thin": 4} | options)


def equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)
