"""Small networks of Equinox and of Flax NNX."""

import equinox as eqx
import jax
import pytest

nnx = pytest.importorskip("flax.nnx")


def equinox_mlp(key):
    with jax.debug_key_reuse(False):  # the checker of JAX 0.8 takes keys[0] and keys[-1] for the same key
        return eqx.nn.MLP(36, 3, 5, 1, key=key)


class NnxMlp(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.Linear(36, 5, rngs=rngs)
        self.two = nnx.Linear(5, 3, rngs=rngs)

    def __call__(self, x):
        return self.two(nnx.relu(self.one(x)))
