"""The random numbers: exact laws at tiny n, bijections at any n."""

import itertools
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

import ewsg
import ewsg.reference
from ewsg import _random
from ewsg._random import normal_quantile
from ewsg._random.generator import FAST
from ewsg._random.streams import chain_keys
from ewsg.errors import InputError


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


@pytest.mark.parametrize("n", [4097, 2**16 + 1, 10**8, 2**31 - 1])
def test_indices_are_the_exact_multiply_shift(n):
    """The 32-bit arithmetic equals ⌊u·n / 2^64⌋ in Python's integers."""
    key = jax.random.key(1)
    high, low = (np.asarray(word) for word in jax.random.bits(key, (2, 500), jnp.uint32))
    exact = [((int(h) << 32) + int(lo)) * n >> 64 for h, lo in zip(high, low, strict=True)]
    np.testing.assert_array_equal(_random.indices(jax.random.clone(key), n, 500), exact)


@pytest.mark.parametrize("n", [1, 3, 50, 4095, 4096])
def test_few_indices_are_the_exact_multiply_shift_of_one_word(n):
    key = jax.random.key(1)
    words = np.asarray(jax.random.bits(key, (500,), jnp.uint32))
    exact = [int(word) * n >> 32 for word in words]
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
    keys = jax.random.split(jax.random.key(0), 20)
    for image in np.asarray(jax.jit(jax.vmap(lambda key: _random.shuffled(key, jnp.arange(n), n)))(keys)):
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
    bits = jax.jit(jax.vmap(lambda i: jax.random.bits(_random.fold(key, i))))(jnp.arange(1000))
    assert np.unique(bits).size == 1000


def sampler_words(num_chains, num_steps, numbers):
    """Words of shape (step, chain, use, number), with keys derived as the sampler derives them."""
    keys = chain_keys(_random.make_key(8, "fast"), num_chains).steps

    def one(key):
        key_force, key_noise = _random.split(key)
        return jnp.stack([jax.random.bits(k, (numbers,), jnp.uint32) for k in (_random.fold(key_force, 0), key_noise)])

    step = jax.vmap(one)
    fold = jax.vmap(_random.fold, (0, None))
    draw = jax.jit(lambda keys: jax.lax.map(lambda t: step(fold(keys, t)), jnp.arange(num_steps)))
    return np.asarray(draw(keys))


@pytest.fixture(scope="module")
def words():
    return sampler_words(200, 500, 4)


def test_every_bit_of_the_fast_stream_is_fair(words):
    flat = words.reshape(-1)
    ones = np.array([((flat >> bit) & 1).sum() for bit in range(32)])
    assert np.all(np.abs(ones - flat.size / 2) < 5 * np.sqrt(flat.size / 4))


@pytest.mark.parametrize("shift", [0, 8, 16, 24])
def test_bytes_of_the_fast_stream_are_uniform(words, shift):
    counts = np.bincount((words.reshape(-1) >> shift) & 0xFF, minlength=256)
    assert within_noise(counts, words.size / 256)


@pytest.mark.parametrize("axis", range(4), ids=["steps", "chains", "uses", "numbers"])
@pytest.mark.parametrize("shift", [0, 28])
def test_neighbours_in_the_fast_stream_are_independent(words, axis, shift):
    """Counts of pairs of nibbles of neighbours along each axis: all 256 pairs are as frequent."""
    nibbles = (words >> shift) & 0xF
    first, second = (np.delete(nibbles, end, axis).ravel() for end in (-1, 0))
    assert within_noise(np.bincount(16 * first + second, minlength=256), first.size / 256)


@pytest.mark.parametrize(("axis", "lag"), [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2)])
def test_the_fast_stream_is_uncorrelated(words, axis, lag):
    centred = words / 2.0**32 - 0.5
    size = centred.shape[axis]
    first, second = np.take(centred, range(size - lag), axis), np.take(centred, range(lag, size), axis)
    for one, other in ((first, second), (first**2 - 1 / 12, second**2 - 1 / 12)):
        correlation = np.mean(one * other) / np.sqrt(np.mean(one**2) * np.mean(other**2))
        assert abs(correlation) < 5 / np.sqrt(first.size)


def test_one_bit_of_a_fast_key_changes_half_of_the_words():
    """Avalanche: of key, counter and folded number, any bit flips each bit of the output with probability one half."""
    key = jax.random.bits(jax.random.key(9), (20_000, 2), jnp.uint32)

    @jax.jit
    def outputs(key, number):
        folded = jax.vmap(lambda k: jax.random.fold_in(jax.random.wrap_key_data(k, impl=FAST), number))(key)
        return jax.vmap(lambda k: jax.random.bits(k, (2,), jnp.uint32))(folded)

    base = outputs(key, 5)
    changed = [outputs(key ^ jnp.array([[1 << bit, 0]], jnp.uint32), 5) for bit in (0, 15, 31)]
    changed += [outputs(key ^ jnp.array([[0, 1 << bit]], jnp.uint32), 5) for bit in (0, 15, 31)]
    changed += [outputs(key, 5 ^ (1 << bit)) for bit in (0, 15, 30)]
    for other in changed:
        flips = np.unpackbits(np.asarray(base ^ other).view(np.uint8).reshape(20_000, -1), axis=1).mean(0)
        assert np.all(np.abs(flips - 0.5) < 5 * 0.5 / np.sqrt(20_000))


def test_fold_and_split_of_a_fast_key_never_give_the_same_key():
    with jax.debug_key_reuse(False):
        key = _random.make_key(10, "fast")
        folded = jax.random.key_data(jax.vmap(lambda i: _random.fold(key, i))(jnp.arange(100_000)))
        divided = [jax.random.key_data(_random.split(key, num)) for num in (2, 3, 8, 9, 100_000)]
    np.testing.assert_array_equal(divided[0], divided[-1][:2])
    np.testing.assert_array_equal(divided[2], divided[3][:8])
    every = np.concatenate([folded, divided[-1]]).astype(np.uint64)
    assert np.unique((every[:, 0] << 32) | every[:, 1]).size == 200_000


def test_order_of_folds_matters():
    with jax.debug_key_reuse(False):
        key = _random.make_key(11, "fast")
        one, other = _random.fold(_random.fold(key, 1), 2), _random.fold(_random.fold(key, 2), 1)
    assert not np.array_equal(jax.random.key_data(one), jax.random.key_data(other))


def test_seeds_give_different_fast_keys():
    keys = jax.random.key_data(
        jnp.stack([_random.make_key(seed, "fast") for seed in (*range(200), *range(2**64 - 50, 2**64))])
    )
    assert np.unique(np.asarray(keys), axis=0).shape[0] == 250


def test_seeds_outside_the_loop_are_64_bits_wide_too():
    """The references, KSD and traces: JAX took these modulo 2^32, and failed from 2^63 on."""
    small, large = (jax.random.key_data(_random.checked_key(seed)) for seed in (np.int64(7), 2**63 + 7))
    np.testing.assert_array_equal(small, jax.random.key_data(jax.random.key(7)))
    assert large.tolist() == [2**31, 7]
    target = ewsg.Target(lambda theta, x: -0.5 * jnp.sum((theta - x) ** 2), None, np.zeros((4, 1), np.float32))
    draws = np.linspace(-1, 1, 40, dtype=np.float32).reshape(4, 10, 1)
    for act in (
        lambda: ewsg.reference.nuts(target, jnp.zeros(1), seed=-1),
        lambda: ewsg.kernels.adapt_nuts(target, jnp.zeros(1), seed=2**64),
        lambda: ewsg.diagnostics.ksd(draws, target, batch_size=2, seed=0.5),
    ):
        with pytest.raises(InputError, match=r"must be a whole number from 0 to 2\^64 − 1$"):
            act()
    package = Path(ewsg.__file__).parent
    assert [path for path in package.rglob("*.py") if "random.key(seed)" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("width", [8, 16, 32])
def test_fast_words_of_every_width(width):
    drawn = jax.random.bits(_random.make_key(12, "fast"), (3, 20_000), jnp.dtype(f"uint{width}"))
    assert abs(np.asarray(drawn, np.float64).mean() / 2**width - 0.5) < 5 / np.sqrt(12 * drawn.size)


def test_fast_keys_serve_all_of_jax_random():
    one, two, three = jax.random.split(_random.make_key(13, "fast"), 3)
    assert abs(float(jax.random.normal(one, (40_000,)).std()) - 1) < 5 * np.sqrt(0.5 / 40_000)
    np.testing.assert_array_equal(np.sort(jax.random.permutation(two, 100)), np.arange(100))
    assert jax.random.choice(three, 10, (5,), replace=False).shape == (5,)


def test_normal_is_the_quantile_of_its_word():
    edges = np.array([0, 1, 2, 3, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    spread = np.random.default_rng(14).integers(0, 2**32, 200_000, dtype=np.uint32)
    tails = (2 ** np.random.default_rng(15).uniform(1, 32, 20_000)).astype(np.uint32)
    words = np.concatenate([edges, spread, tails])
    exact = -ndtri(((words >> 1) + 0.5) * 2.0**-32) * np.where(words & 1, -1, 1)
    found = np.asarray(normal_quantile.normal(jnp.asarray(words)), np.float64)
    np.testing.assert_allclose(found, exact, rtol=3e-6, atol=3e-7)


def test_normal_numbers_have_the_moments_and_tails_of_the_normal_law():
    drawn = np.asarray(_random.normal_like(_random.make_key(15, "fast"), jnp.zeros(2_000_000)), np.float64)
    for power, exact, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10395 - 225)):
        assert abs(np.mean(drawn**power) - exact) < 5 * np.sqrt(variance / drawn.size)
    edges = norm.ppf(np.linspace(0, 1, 201))
    assert within_noise(np.histogram(drawn, edges)[0], drawn.size / 200)
    for bound in (3.0, 4.0):
        expected = 2 * norm.sf(bound) * drawn.size
        assert abs((np.abs(drawn) > bound).sum() - expected) < 5 * np.sqrt(expected)


@pytest.mark.parametrize("rng", ["fast", "threefry"])
def test_rng_is_recorded_and_resumed(gaussian, tmp_path, rng):
    settings = {"init": jnp.zeros(2), "num_chains": 3, "discard": 0, "thin": 1, "rng": rng}
    method = (ewsg.Reshuffled(4), ewsg.Underdamped(step_size=0.01, friction=5.0))
    whole = ewsg.sample(gaussian, *method, num_steps=60, **settings)
    part = ewsg.sample(gaussian, *method, num_steps=25, **settings)
    assert whole.settings["rng"] == rng
    part.save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=35)
    np.testing.assert_array_equal(resumed.draws, whole.draws)


def test_rng_of_a_key_is_its_own(gaussian):
    settings = {"init": jnp.zeros(2), "num_chains": 2, "num_steps": 10, "discard": 0}
    method = (ewsg.Uniform(4), ewsg.Underdamped(step_size=0.01, friction=5.0))
    by_key = ewsg.sample(gaussian, *method, seed=jax.random.key(3), **settings)
    assert by_key.settings["rng"] == "threefry"
    np.testing.assert_array_equal(
        by_key.draws, ewsg.sample(gaussian, *method, seed=3, rng="threefry", **settings).draws
    )
    with pytest.raises(InputError, match="leave rng out"):
        ewsg.sample(gaussian, *method, seed=jax.random.key(3), rng="fast", **settings)
    with pytest.raises(InputError, match="threefry"):
        ewsg.sample(gaussian, *method, rng="threefri", **settings)
