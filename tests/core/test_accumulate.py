"""Exact counts, and sums that do not stall."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def test_cost_is_exact_beyond_32_bits(gaussian):
    from ewsg._core.accumulate import Counts

    counts = Counts.zero()
    for _ in range(5):
        counts = counts.add(2**32 - 7).add(jnp.array([2**32 - 9, 3], jnp.uint32))
    assert counts.value().tolist() == [5 * (2**33 - 16), 5 * (2**32 - 4)]


def test_compensated_sum_is_exact_where_a_float32_sum_stalls():
    from ewsg._core.accumulate import Compensated

    def accumulate(_, carry):
        return carry[0].add(jnp.float32(0.1)), carry[1] + jnp.float32(0.1)

    number = 3_000_000
    start = (Compensated.zeros(jnp.float32(0)), jnp.float32(0))
    compensated, plain = jax.lax.fori_loop(0, number, accumulate, start)
    exact = number * float(np.float32(0.1))
    assert float(compensated.value()) == pytest.approx(exact, rel=1e-7)
    assert abs(float(plain) / exact - 1) > 1e-3
