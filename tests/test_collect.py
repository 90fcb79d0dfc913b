"""Collectors: running moments."""

import jax
import jax.numpy as jnp
import numpy as np
from short_runs import sample

import ewsg


def test_moments_are_right_when_the_first_draw_is_a_thousand_sd_away():
    rng = np.random.default_rng(0)
    values = rng.normal(5.0, 1.0, size=(3000, 2)).astype(np.float32)
    values[0] = 1005.0
    collector = ewsg.collect.Moments()

    @jax.jit
    def moments(values):
        def update(k, summary):
            return collector.update(summary, values[k], k + 1)

        summary = jax.lax.fori_loop(0, len(values), update, collector.init(values[0]))
        return collector.result(summary, jnp.int32(len(values)))

    found = moments(values)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(found.mean, exact.mean(0), rtol=3e-7)
    np.testing.assert_allclose(found.variance, exact.var(0, ddof=1), rtol=1e-6)


def test_moments_of_too_few_draws_are_no_numbers():
    collector = ewsg.collect.Moments()
    empty = collector.init(jnp.zeros(2))
    assert np.isnan(collector.result(empty, jnp.int32(0)).mean).all()
    one = collector.update(empty, jnp.array([1.0, 2.0]), jnp.int32(1))
    found = collector.result(one, jnp.int32(1))
    assert found.mean.tolist() == [1.0, 2.0]
    assert np.isnan(found.variance).all()


def test_counts_beyond_half_precision():
    summary = ewsg.collect.Moments().init(jnp.ones(2, jnp.float16))
    summary = (summary[0], summary[1].add(jnp.full(2, 7e4 / 4, jnp.float16)))
    variance = ewsg.collect.Moments().result(summary, jnp.int32(70_001)).variance
    np.testing.assert_allclose(variance, 0.25, rtol=1e-2)


def test_collectors_may_keep_python_numbers(gaussian):
    assert (sample(gaussian, collect=lambda theta: 3.0).draws == 3).all()
