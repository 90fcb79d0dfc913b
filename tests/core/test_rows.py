"""Pytrees as rows: on the device and on the host, in the order of `ravel_pytree`."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from ewsg._core import pytree


@pytest.mark.parametrize("leading", [0, 1, 2])
def test_rows_are_raveled_pytrees(leading):
    shape = (2, 3)[:leading]
    tree = {"b": np.arange(24.0, dtype=np.float32)[: np.prod(shape, dtype=int)].reshape(shape)}
    tree["a"] = np.stack([10 * tree["b"], 20 * tree["b"]], axis=-1)
    device = pytree.rows({name: jnp.asarray(leaf) for name, leaf in tree.items()}, leading)
    host = pytree.host_rows(tree, leading)
    assert device.shape == host.shape == (*shape, 3)
    assert host.dtype == np.float64
    np.testing.assert_array_equal(device, host)
    last = {name: leaf.reshape(-1, *leaf.shape[leading:])[-1] for name, leaf in tree.items()}
    np.testing.assert_array_equal(device.reshape(-1, 3)[-1], ravel_pytree(last)[0])
