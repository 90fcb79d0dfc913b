"""The table of bright data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ewsg.kernels._bright_table import Table


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (100, 60), (100, 100), (300, 2)])
def test_table_against_sets(n, m):
    """Random switches of several chains, and of one alone, against plain indicators."""
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(3, n)) < 0.5
    tables = jax.vmap(lambda bright: Table.of(bright, 8))(jnp.asarray(z))
    switch = jax.jit(lambda table, indices, bright: table.switched(indices, bright))
    switch_all = jax.jit(jax.vmap(switch))
    for _ in range(40):
        indices = np.stack([rng.permutation(n)[:m] for _ in range(3)]).astype(np.int32)
        bright = rng.uniform(size=(3, m)) < rng.uniform()
        alone = switch(jax.tree.map(lambda leaf: leaf[1], tables), indices[1], bright[1])
        tables = switch_all(tables, indices, bright)
        for chain in range(3):
            z[chain, indices[chain]] = bright[chain]
        each = [jax.tree.map(lambda leaf, chain=chain: np.asarray(leaf[chain]), tables) for chain in range(3)]
        for chain, (order, place, num_bright) in [*enumerate(each), (1, alone)]:
            np.testing.assert_array_equal(np.asarray(place)[order[:n]], np.arange(n))
            np.testing.assert_array_equal(np.sort(order[:num_bright]), np.flatnonzero(z[chain]))
