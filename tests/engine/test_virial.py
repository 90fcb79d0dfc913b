"""The virial of each parameter, and its slope: 1 and 0 in order, and what they see; when they are recorded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg._engine import statistics
from ewsg.collect import Draws, Moments
from ewsg.coordinates import Diagonal

CHAINS = 100


def scores(run, name, expected):
    """(mean − expected)/standard error of each parameter, from the spread of the chains."""
    means = run.stats[name].astype(np.float64).mean(1)
    return (means.mean(0) - expected) / (means.std(0, ddof=1) / np.sqrt(len(means)))


def long_run(target, estimator, integrator, dimension=2, **options):
    settings = {"init": jnp.zeros(dimension), "num_chains": CHAINS, "num_steps": 2_000, "discard": 200, "thin": 10}
    return ewsg.sample(target, estimator, integrator, **(settings | options))


@pytest.mark.parametrize("temperature", [1.0, 2.0])
@pytest.mark.parametrize("coordinates", [None, Diagonal(np.float32([0.2, -0.1]), np.float32([0.1, 0.2]))])
def test_they_are_the_temperature_and_zero_with_the_full_gradient(gaussian, coordinates, temperature):
    """BAOAB samples the positions of a Gaussian exactly; so wherever the virial is anchored, at θ or at z = 0."""
    step = 0.05 if coordinates is None else 0.4
    move = ewsg.BAOAB(step, 5.0 if coordinates is None else 1.0, temperature=temperature)
    run = long_run(gaussian, ewsg.Full(), move, coordinates=coordinates)
    assert run.stats["virial"].shape == run.stats["virial_slope"].shape == (CHAINS, 180, 2)
    assert np.abs(scores(run, "virial", temperature)).max() < 4
    assert np.abs(scores(run, "virial_slope", 0)).max() < 4
    whole = run.stats["virial"].mean(-1)
    np.testing.assert_allclose(whole, run.stats["configurational_temperature"], rtol=1e-3, atol=1e-4)


def test_one_hot_coordinate_is_hot_by_itself():
    """Data that differ in their first number only: the noise of their minibatches heats the first coordinate."""
    data = np.stack([np.random.default_rng(0).normal(size=50), np.zeros(50)], axis=1).astype(np.float32)
    target = ewsg.Target(lambda theta, x: -0.5 * jnp.sum((theta - x) ** 2), None, data)
    run = long_run(target, ewsg.Uniform(5), ewsg.BAOAB(0.05, 5.0))
    hot, fair = run.stats["virial"].mean((0, 1))
    assert hot == pytest.approx(50 * run.draws[..., 0].var(), rel=0.05)
    assert hot > 1.3
    assert abs(scores(run, "virial", 1)[1]) < 4
    assert fair == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("direction", [1, -1])
def test_the_slope_sees_where_the_noise_grows(direction):
    """Forces −θ ± 2/(1 + e^{−4θ}): their mean is that of N(0, 1/n), their noise grows with θ, or with −θ."""

    def log_likelihood(theta, sign):
        return -0.5 * jnp.sum(theta**2) + sign * jnp.sum(jax.nn.softplus(4 * direction * theta)) / 2

    target = ewsg.Target(log_likelihood, None, np.tile(np.float32([1, -1]), 10))
    at_zero = Diagonal(np.zeros(1, np.float32), np.ones(1, np.float32))
    run = long_run(target, ewsg.Uniform(4), ewsg.BAOAB(0.03, 2.0), 1, coordinates=at_zero)
    assert run.ok.all()
    assert direction * scores(run, "virial_slope", 0)[0] < -5


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_they_have_at_least_single_precision(dtype):
    target = ewsg.Target(lambda theta, x: -0.5 * jnp.sum(theta**2) - x[0] * theta[0], None, np.ones((4, 1), dtype))
    move = ewsg.BAOAB(0.1, 1.0)
    run = ewsg.sample(target, ewsg.Uniform(2), move, init=jnp.zeros(2, dtype), num_chains=2, num_steps=20)
    assert run.draws.dtype == dtype
    assert run.stats["virial"].dtype == run.stats["virial_slope"].dtype == np.float32
    assert np.isfinite(run.stats["virial"]).all()


@pytest.mark.parametrize(("dimension", "recorded"), [(512, True), (513, False)])
def test_they_are_recorded_of_few_parameters(dimension, recorded):
    target = ewsg.Target(lambda theta, x: -0.5 * jnp.sum(theta**2) - x * theta[0], None, np.ones(4, np.float32))
    options = {"num_chains": 2, "num_steps": 4, "discard": 0, "thin": 2}
    run = long_run(target, ewsg.Full(), ewsg.BAOAB(0.1, 1.0), dimension, **options)
    assert ("virial" in run.stats) is ("virial_slope" in run.stats) is recorded


@pytest.mark.parametrize(
    ("collect", "recorded"),
    [(Moments(), False), (lambda theta: theta[0], False), (lambda theta: (theta, theta), True)],
    ids=["moments", "one number", "two vectors"],
)
def test_they_are_recorded_where_draws_are_kept_whole(gaussian, collect, recorded):
    run = long_run(gaussian, ewsg.Full(), ewsg.BAOAB(0.05, 5.0), num_chains=2, num_steps=20, discard=0, collect=collect)
    assert ("virial" in run.stats) is recorded


def test_a_method_without_a_force_has_none(gaussian):
    run = ewsg.sample(gaussian, ewsg.RandomWalk(0.1), init=jnp.zeros(2), num_chains=2, num_steps=20)
    assert "virial" not in run.stats


def test_their_memory_is_counted(gaussian):
    position = {"a": jnp.zeros(3, jnp.float32), "b": jnp.zeros((2, 2), jnp.float16)}
    assert statistics.vector_bytes(Draws(), position, 4) == 2 * 7 * 4
    assert statistics.vector_bytes(Moments(), position, 4) == 0
    run = long_run(gaussian, ewsg.Full(), ewsg.BAOAB(0.05, 5.0), num_chains=3, num_steps=20, discard=0, thin=5)
    sizes = run.stats["virial"].nbytes + run.stats["virial_slope"].nbytes
    assert sizes == 3 * 4 * statistics.vector_bytes(Draws(), jax.tree.map(lambda leaf: leaf[0, 0], run.draws), 4)
