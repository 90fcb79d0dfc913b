"""Many parameters take other paths (sums by halves, gradients stored, minibatches stacked) to the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg._core import pytree

ROWS = np.random.default_rng(0).normal(size=(40, 80)).astype(np.float32)
LABELS = (ROWS[:, 0] > 0).astype(np.float32)


def log_likelihood(theta, datum):
    row, label = datum
    hidden = jnp.tanh(row @ theta["w"])
    return -0.5 * (jnp.dot(hidden, theta["v"]) - label) ** 2


def target():
    return ewsg.Target(log_likelihood, lambda theta: -0.5 * pytree.dot(theta, theta), (ROWS, LABELS))


def start():
    random = np.random.default_rng(1)
    return {
        "v": jnp.asarray(0.1 * random.normal(size=60), jnp.float32),
        "w": jnp.asarray(0.1 * random.normal(size=(80, 60)), jnp.float32),
    }


@pytest.mark.parametrize("shape", [(4097,), (8192,), (79_511,), (301, 131), (5, 7, 11, 13), (200_003,)])
def test_inner_products_of_many_numbers(shape):
    random = np.random.default_rng(0)
    a, b = (random.normal(size=shape).astype(np.float32) for _ in range(2))
    exact = np.sum(a.astype(np.float64) * b)
    size = np.sum(np.abs(a.astype(np.float64) * b))
    a, b = jnp.asarray(a), jnp.asarray(b)
    assert abs(float(pytree.dot(a, b)) - exact) < 1e-6 * size
    both = jax.vmap(pytree.dot)(jnp.stack([a, 2 * a]), jnp.stack([b, b]))
    np.testing.assert_allclose(both, [exact, 2 * exact], atol=2e-6 * size)
    gradient = jax.grad(lambda x: pytree.dot(x, b))(jnp.asarray(a))
    np.testing.assert_array_equal(gradient, b)


def test_the_force_of_large_matrices():
    theta, indices = start(), jnp.array([3, 7, 7])

    def by_hand(theta):
        values = [log_likelihood(theta, (ROWS[i], LABELS[i])) for i in (3, 7, 7)]
        return 40 / 3 * sum(values) - 0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(theta))

    found, expected = jax.jit(target().force)(theta, indices), jax.grad(by_hand)(theta)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6), found, expected)


@pytest.mark.parametrize(
    ("length", "ways"), [(1, ("unrolled", "auto")), pytest.param(5, ("streamed", "auto"), marks=pytest.mark.slow)]
)
def test_minibatches_are_chosen_alike_however_they_are_evaluated(length, ways):
    """The draws of one seed, minibatch after minibatch and all at once."""
    options = {"init": start(), "num_chains": 2, "num_steps": 12, "discard": 0, "thin": 4, "progress": False}
    runs = {}
    for evaluate in ways:
        method = ewsg.Exponential(4, length, evaluate=evaluate), ewsg.Underdamped(0.01, 5.0)
        runs[evaluate] = ewsg.sample(target(), *method, **options)
    assert 0.1 < np.mean(runs["auto"].stats["acceptance"]) < 1
    one, other = runs.values()
    np.testing.assert_array_equal(one.stats["acceptance"], other.stats["acceptance"])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), one.draws, other.draws)
    assert ewsg.Exponential(4, 1)._evaluation(4860) == "stacked"
    assert ewsg.Exponential(4, 1)._evaluation(100) == "unrolled"
    assert ewsg.Exponential(4, 9)._evaluation(10**6) == "streamed"


def test_memory_of_a_batch_is_bounded_by_what_a_datum_takes(monkeypatch):
    small = target()
    assert small.block(start(), 10_000) == 10_000
    size = small.likelihood.datum_bytes(start(), small.data.arrays)
    assert 4 * (60 + 60 + 1) <= size <= 4 * 60 * 20
    assert small.block(start(), 10_000, memory=7 * size) == 7
    assert small.block(start(), 10_000, memory=1) == 1
    density, force = small.log_density(start()), small.full_force(start())
    monkeypatch.setattr(ewsg.Target, "block", lambda self, position, most: 7)
    np.testing.assert_allclose(small.log_density(start()), density, rtol=1e-5)
    found = small.full_force(start())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, force)


def test_what_a_datum_takes_counts_turns_of_a_scan_and_not_the_parameters():
    def recurrent(theta, row):
        return jnp.sum(jax.lax.scan(lambda h, x: (jnp.tanh(h * theta + x), None), jnp.zeros(10), row)[0])

    likelihood = ewsg.Target(recurrent, None, np.ones((3, 50), np.float32)).likelihood
    assert 50 * 3 * 40 <= likelihood.datum_bytes(jnp.ones(10), np.ones((3, 50), np.float32)) < 50 * 10 * 40

    def wide(theta, row):
        return jnp.sum(jnp.exp(theta)) * row

    likelihood = ewsg.Target(wide, None, np.ones(3, np.float32)).likelihood
    assert likelihood.datum_bytes(jnp.ones(10_000), np.ones(3, np.float32)) < 100
