"""FlyMC by hand: data, chains of states, their indicators."""

import jax
import jax.numpy as jnp
import numpy as np

import ewsg

ROWS = np.array([[1.0], [2.5], [-1.5]], np.float32)
TANGENT = jnp.array([4.0])


def logistic(n, d, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)).astype(np.float32)
    truth = rng.normal(size=d) / np.sqrt(d)
    return ewsg.models.logistic(features, rng.uniform(size=n) < 1 / (1 + np.exp(-features @ truth)))


def run_by_hand(sampler, init, num_chains, num_steps, seed=0):
    """The states of all chains after some steps; temperatures and numbers of steps share one compiled program."""
    keys = [jax.random.split(key, num_chains) for key in jax.random.split(jax.random.key(seed), 3)]
    return _run(sampler, keys[0], jax.vmap(init)(keys[1]), keys[2], num_steps)


@jax.jit
def _run(sampler, keys_state, positions, keys_steps, num_steps):
    def chain(key_state, position, key_steps):
        def step(t, state):
            return sampler.step(jax.random.fold_in(key_steps, t), state)[0]

        return jax.lax.fori_loop(0, num_steps, step, sampler.init(key_state, position))

    return jax.vmap(chain)(keys_state, positions, keys_steps)


def indicators(state):
    """z of every chain, one row each."""
    table = state.estimator.table
    return np.asarray(table.place < table.num_bright[:, None])


def assert_mean(values, expected, deviations=4.5):
    error = max(values.std(), 1e-12) / np.sqrt(len(values))
    assert abs(values.mean() - expected) < deviations * error, (values.mean(), expected, error)


def normal_data(n=40, seed=1):
    return np.exp(np.random.default_rng(seed).normal(size=n))
