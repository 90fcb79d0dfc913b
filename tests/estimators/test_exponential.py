"""The index chain of EWSG against its enumerated law."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from index_chain import DRAWS, assert_law, chain_law

import ewsg
from ewsg import _random
from ewsg.interface import Kick

N, H, GAMMA, T = 6, 0.05, 10.0, 0.7
SIGMA = np.sqrt(2 * GAMMA * T)
QUICK = {(1, 1, True), (2, 2, True), (1, 3, False), (2, 3, False)}  # batch size, length, replace: in `make test`


@pytest.fixture(scope="module")
def target():
    """Six data with a skewed spread and a prior, so that no symmetry hides a sign or a share of the prior."""
    data = np.array([[0.1, 0.0], [0.4, -0.3], [-0.2, 0.5], [1.5, 0.2], [-0.1, -0.9], [0.3, 2.0]], np.float32)
    return ewsg.Target(lambda p, x: -0.5 * jnp.sum((p["m"] - x) ** 2), lambda p: -0.6 * jnp.sum(p["m"] ** 2), data)


POSITION = {"m": jnp.array([0.2, -0.4])}
MOMENTUM = {"m": jnp.array([0.8, -0.5])}


def the_kick():
    decay = {"m": H * GAMMA * MOMENTUM["m"]}
    noise = {"m": jnp.array([0.3, -1.1])}
    return Kick(POSITION, MOMENTUM, decay, noise, H, SIGMA * np.sqrt(H), T)


def paper_x(choice):
    r = np.asarray(MOMENTUM["m"])
    return {
        "momentum": np.sqrt(H) * GAMMA * r / SIGMA,
        "zero": np.zeros(2),
        "one": np.ones(2),
        "next_zero": (-1 + H * GAMMA) * r / (SIGMA * np.sqrt(H)),
    }[choice]


def paper_law(target, batch_size, replace, x):
    """Every ordered minibatch with ½‖x + n a‖² from the formula in the paper, in float64, from scratch."""
    data = np.asarray(target.data.arrays, np.float64)
    theta = np.asarray(POSITION["m"], np.float64)
    each = theta - data + 1.2 * theta / N  # ∇V_i with the prior's 1.2 θ shared out
    rows = itertools.product(range(N), repeat=batch_size) if replace else itertools.permutations(range(N), batch_size)
    batches = np.array(list(rows))
    na = np.sqrt(H) / SIGMA * N / batch_size * each[batches].sum(1)
    return batches, 0.5 * np.sum((x + na) ** 2, axis=1)


def visits(estimator, target, draws=DRAWS, carried=None):
    """How often each minibatch was chosen."""
    keys = _random.split(_random.make_key(3, "fast"), draws)

    @jax.jit
    @jax.vmap
    def choose(key):
        key_init, key_estimate = jax.random.split(key)
        state = estimator.init(key_init, target, POSITION) if carried is None else carried
        return estimator.estimate(key_estimate, target, the_kick(), state)[2].indices

    return np.asarray(choose(keys))


def frequencies(batches, chosen):
    code = N ** np.arange(batches.shape[1])
    lookup = {int(row @ code): i for i, row in enumerate(batches)}
    counts = np.bincount([lookup[int(c)] for c in chosen @ code], minlength=len(batches))
    return counts / len(chosen)


@pytest.mark.parametrize(
    ("batch_size", "length", "replace"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product([1, 2], [1, 2, 3], [True, False])
    ],
)
def test_chosen_minibatch_follows_the_m_step_law(target, batch_size, length, replace):
    batches, log_weight = paper_law(target, batch_size, replace, paper_x("momentum"))
    estimator = ewsg.Exponential(batch_size, length, replace=replace)
    assert_law(frequencies(batches, visits(estimator, target)), chain_law(log_weight, length))


@pytest.mark.parametrize("choice", ["momentum", "zero", "one", "next_zero"])
def test_every_choice_of_x(target, choice):
    batches, log_weight = paper_law(target, 1, True, paper_x(choice))
    expected = chain_law(log_weight, 2)
    assert_law(frequencies(batches, visits(ewsg.Exponential(1, 2, x=choice), target)), expected)
    others = [chain_law(paper_law(target, 1, True, paper_x(o))[1], 2) for o in ("momentum", "zero", "one", "next_zero")]
    assert sum(np.abs(o - expected).max() < 0.01 for o in others) == 1  # the test can tell them apart


def test_a_user_function_of_the_kick(target):
    batches, log_weight = paper_law(target, 1, True, 3 * paper_x("momentum"))
    estimator = ewsg.Exponential(1, 2, x=lambda kick: {"m": 3 * kick.decay["m"] / kick.noise_scale})
    assert_law(frequencies(batches, visits(estimator, target)), chain_law(log_weight, 2))


def test_overdamped_weights_use_the_injected_noise(target):
    """App. E: n a = √(h/2) n∇V at T = 1, which the kick's own scales give; x is the noise itself."""
    noise_scale = np.sqrt(2 * H)
    kick = the_kick()._replace(momentum=None, decay=None, noise_scale=noise_scale, temperature=1.0)
    data = np.asarray(target.data.arrays, np.float64)
    theta = np.asarray(POSITION["m"], np.float64)
    na = np.sqrt(H / 2) * N * (theta - data + 1.2 * theta / N)
    expected = chain_law(0.5 * np.sum((np.asarray(kick.noise["m"]) + na) ** 2, axis=1), 1)
    estimator = ewsg.Exponential(1, 1, x="noise")
    keys = jax.random.split(jax.random.key(5), DRAWS)
    chosen = jax.jit(jax.vmap(lambda k: estimator.estimate(k, target, kick, ())[2].indices))(keys)
    assert_law(frequencies(np.arange(N)[:, None], np.asarray(chosen)), expected)


def test_long_chain_tends_to_the_papers_weights(target):
    """As M grows the law tends to p_i of eq. 4, and `exact=True` draws from it directly."""
    batches, log_weight = paper_law(target, 1, True, paper_x("momentum"))
    limit = np.exp(log_weight - log_weight.max())
    limit /= limit.sum()
    distances = [np.abs(chain_law(log_weight, m) - limit).sum() for m in (0, 1, 3, 10, 40)]
    assert all(a > b for a, b in itertools.pairwise(distances))
    assert distances[-1] < 1e-3
    assert_law(frequencies(batches, visits(ewsg.Exponential(1, 40), target)), limit)
    assert_law(frequencies(batches, visits(ewsg.Exponential(1, exact=True), target)), limit)


@pytest.mark.parametrize("replace", [True, False])
def test_exact_enumerates_minibatches(target, replace):
    batches, log_weight = paper_law(target, 2, replace, paper_x("momentum"))
    limit = np.exp(log_weight - log_weight.max())
    limit /= limit.sum()
    assert_law(frequencies(batches, visits(ewsg.Exponential(2, exact=True, replace=replace), target)), limit)


def test_a_carried_chain_starts_where_it_was(target):
    """With restart=False the first minibatch is the carried one: its law is that row of the matrix power."""
    _, log_weight = paper_law(target, 1, True, paper_x("momentum"))
    accept = np.minimum(1, np.exp(log_weight[None, :] - log_weight[:, None])) / N
    matrix = accept - np.diag(np.diag(accept))
    matrix += np.diag(1 - matrix.sum(1))
    chosen = visits(ewsg.Exponential(1, 2, restart=False), target, carried=jnp.array([3]))
    assert_law(frequencies(np.arange(N)[:, None], chosen), np.linalg.matrix_power(matrix, 2)[3])


def test_carried_state_is_the_chosen_minibatch_and_its_force_is_recomputed(target):
    estimator = ewsg.Exponential(2, 3, restart=False)
    force, state, info = estimator.estimate(jax.random.key(0), target, the_kick(), jnp.array([1, 4]))
    np.testing.assert_array_equal(state, info.indices)
    np.testing.assert_allclose(force["m"], target.force(POSITION, state)["m"], rtol=1e-5)
    assert estimator.cost(N) == (8, 0)


def test_chain_of_length_zero_is_uniform_draw_for_draw(gaussian):
    integrator = ewsg.Underdamped(step_size=0.02, friction=5.0)
    runs = [
        ewsg.sample(gaussian, estimator, integrator, init=jnp.zeros(2), num_chains=3, num_steps=50, discard=0, thin=1)
        for estimator in (ewsg.Uniform(4), ewsg.Exponential(4, 0))
    ]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)


@pytest.mark.parametrize("restart", [pytest.param(True, marks=pytest.mark.slow), False])
def test_ways_of_evaluation_give_the_same_chain(gaussian, restart):
    integrator = ewsg.Underdamped(step_size=0.02, friction=5.0)
    unrolled, stacked, streamed = (
        ewsg.sample(
            gaussian,
            ewsg.Exponential(2, 4, restart=restart, evaluate=way),
            integrator,
            init=jnp.zeros(2),
            num_chains=20,
            num_steps=30,
            discard=0,
            thin=1,
        ).draws
        for way in ("unrolled", "stacked", "streamed")
    )
    np.testing.assert_allclose(stacked, unrolled, atol=2e-4)
    np.testing.assert_allclose(streamed, unrolled, atol=2e-4)


@pytest.mark.slow
def test_streamed_memory_does_not_grow_with_the_chain(gaussian):
    """O(d) on request: the compiled step's temporaries at M = 40 are those at M = 4."""
    wide = ewsg.Target(lambda w, x: -0.5 * jnp.sum((w - x) ** 2), None, np.zeros((10, 1), np.float32))
    position = jnp.zeros(50_000)

    def temporaries(length, evaluate):
        estimator = ewsg.Exponential(1, length, evaluate=evaluate)
        sampler = ewsg.compose(wide, estimator, ewsg.Underdamped(step_size=1e-3, friction=5.0))
        state = sampler.init(jax.random.key(0), position)
        compiled = jax.jit(sampler.step).lower(jax.random.key(1), state).compile()
        return compiled.memory_analysis().temp_size_in_bytes / position.nbytes

    assert temporaries(40, "streamed") < 1.5 * temporaries(4, "streamed") < 15
    assert temporaries(40, "stacked") > 30
