"""The random numbers: exact laws at tiny n, bijections at any n."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ewsg import _random


def within_noise(counts, expected, deviations=5.0):
    statistic = np.sum((counts - expected) ** 2 / expected)
    freedom = counts.size - 1
    return statistic < freedom + deviations * np.sqrt(2 * freedom)


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_indices_are_uniform(n):
    drawn = np.asarray(_random.indices(jax.random.key(0), n, 200_000))
    assert drawn.min() >= 0
    assert drawn.max() < n
    assert n == 1 or within_noise(np.bincount(drawn, minlength=n), 200_000 / n)


@pytest.mark.parametrize("n", [3, 2**16 + 1, 10**8, 2**31 - 1])
def test_indices_are_the_exact_multiply_shift(n):
    """The 32-bit arithmetic equals ⌊u·n / 2^64⌋ in Python's integers."""
    key = jax.random.key(1)
    high, low = (np.asarray(word) for word in jax.random.bits(key, (2, 500), jnp.uint32))
    exact = [((int(h) << 32) + int(lo)) * n >> 64 for h, lo in zip(high, low, strict=True)]
    np.testing.assert_array_equal(_random.indices(jax.random.clone(key), n, 500), exact)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 6])
def test_distinct_indices_are_uniform_over_ordered_tuples(batch_size):
    n, draws = 6, 60_000
    keys = jax.random.split(jax.random.key(2), draws)
    drawn = np.asarray(jax.jit(jax.vmap(lambda k: _random.distinct_indices(k, n, batch_size)))(keys))
    tuples = list(itertools.permutations(range(n), batch_size))
    code = n ** np.arange(batch_size)
    lookup = {int(np.dot(t, code)): i for i, t in enumerate(tuples)}
    counts = np.bincount([lookup[int(c)] for c in drawn @ code], minlength=len(tuples))
    assert within_noise(counts, draws / len(tuples))


@pytest.mark.parametrize(("n", "batch_size"), [(5000, 300), (100_000, 257), (400, 150)])
def test_distinct_indices_are_distinct_when_many(n, batch_size):
    keys = jax.random.split(jax.random.key(3), 50)
    drawn = np.asarray(jax.jit(jax.vmap(lambda k: _random.distinct_indices(k, n, batch_size)))(keys))
    assert all(len(set(row)) == batch_size for row in drawn)
    assert drawn.min() >= 0
    assert drawn.max() < n
    assert abs(drawn.mean() / ((n - 1) / 2) - 1) < 5 / np.sqrt(3 * drawn.size)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 1001])
def test_shuffled_is_a_permutation(n):
    for seed in range(20):
        image = np.asarray(_random.shuffled(jax.random.key(seed), jnp.arange(n), n))
        np.testing.assert_array_equal(np.sort(image), np.arange(n))


def test_shuffled_is_uniform_over_permutations():
    n, draws = 4, 48_000
    keys = jax.random.split(jax.random.key(4), draws)
    images = np.asarray(jax.jit(jax.vmap(lambda k: _random.shuffled(k, jnp.arange(n), n)))(keys))
    lookup = {p: i for i, p in enumerate(itertools.permutations(range(n)))}
    counts = np.bincount([lookup[tuple(map(int, row))] for row in images], minlength=24)
    assert within_noise(counts, draws / 24)


def test_shuffled_neighbours_are_uncorrelated_at_large_n():
    n = 1_000_000
    image = np.asarray(_random.shuffled(jax.random.key(5), jnp.arange(200_000), n), np.float64)
    correlation = np.corrcoef(image[:-1], image[1:])[0, 1]
    assert abs(correlation) < 5 / np.sqrt(image.size)
    assert abs(image.mean() / n - 0.5) < 5 / np.sqrt(12 * image.size)


def test_normal_like_has_independent_unit_entries_in_every_leaf():
    tree = {"a": jnp.zeros((200, 300)), "b": (jnp.zeros(()), jnp.zeros(50_000))}
    drawn = _random.normal_like(jax.random.key(6), tree)
    assert jax.tree.map(jnp.shape, drawn) == jax.tree.map(jnp.shape, tree)
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(drawn)])
    assert abs(flat.mean()) < 5 / np.sqrt(flat.size)
    assert abs(flat.var() - 1) < 5 * np.sqrt(2 / flat.size)
    assert np.unique(flat).size > 0.99 * flat.size


def test_streams_of_different_numbers_differ():
    key = jax.random.key(7)
    bits = [int(jax.random.bits(_random.fold(key, i))) for i in range(1000)]
    assert len(set(bits)) == 1000
