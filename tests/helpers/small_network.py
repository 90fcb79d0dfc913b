"""A network of 13 weights on 80 data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ewsg

NUM_DATA, DIMENSION = 80, 13
RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(NUM_DATA, 2)).astype(np.float32)
TRUTH = (np.sin(INPUTS[:, 0]) + 0.3 * RNG.normal(size=NUM_DATA)).astype(np.float32)

with jax.debug_key_reuse(False):  # the checker of JAX 0.8 takes keys[0] and keys[-1] for the same key
    MODULE = eqx.nn.MLP(2, "scalar", width_size=3, depth=1, activation=jnp.tanh, key=jax.random.key(0))


def loss(output, y):
    return 0.5 * jnp.square((output - y) / 0.3)


def network():
    return ewsg.Target.from_module(MODULE, loss, (INPUTS, TRUTH))
