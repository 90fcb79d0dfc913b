"""SVRG: where its anchor is, when it moves, and what that costs."""

import jax
import jax.numpy as jnp
import numpy as np
from anchors import ANCHOR, POSITION, UNDERDAMPED, N, Rows, Watched, close, corrected_forces, flat, kick_at
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.estimators.svrg import SVRG
from ewsg.target.anchored import slope_at


def test_svrg_moves_its_anchor_every_period(curved):
    """Eight steps with period 3: every force from the formula, with the anchors of steps 0, 3 and 6."""
    estimator = SVRG(ewsg.Uniform(2), period=3)
    rng = np.random.default_rng(1)
    positions = [{"w": jnp.asarray(rng.normal(size=3), jnp.float32), "b": jnp.float32(rng.normal())} for _ in range(8)]
    state = estimator.init(jax.random.key(0), curved, positions[0])
    estimate = jax.jit(estimator.estimate)
    for step, position in enumerate(positions):
        force, state, info = estimate(jax.random.key(step), curved, kick_at(position, step), state)
        expected = corrected_forces(curved, position, positions[step - step % 3])[np.asarray(info.indices)].mean(0)
        np.testing.assert_allclose(flat(force), expected, rtol=1e-4, atol=1e-4)
        close(flat(state.anchor), flat(positions[step - step % 3]))
        assert info.cost == (4 + N * (step % 3 == 0), 0)


def test_svrg_of_all_data_is_the_full_gradient(curved):
    estimator = SVRG(ewsg.Uniform(N, replace=False), period=4)
    state = estimator.init(jax.random.key(0), curved, ANCHOR)
    _, state, _ = estimator.estimate(jax.random.key(1), curved, kick_at(ANCHOR, 0), state)
    force, state, _ = estimator.estimate(jax.random.key(2), curved, kick_at(POSITION, 1), state)
    close(flat(force), flat(curved.full_force(POSITION)))


def test_full_gradients_only_where_the_anchor_moves(centres):
    """Counted while `sample` runs: with a true branch 3 chains × ⌈25/10⌉, with a select it would be 3 × 25."""
    seen = Rows()
    target = ewsg.Target(Watched(gaussian_log_likelihood, seen), None, centres)
    run = ewsg.sample(target, SVRG(ewsg.Uniform(4), 10), UNDERDAMPED, init=jnp.zeros(2), num_chains=3, num_steps=25)
    jax.effects_barrier()
    assert seen.count(50) == 3 * 3
    assert seen.count(4) == 3 * 25 * 2
    assert set(seen) == {50, 4}
    assert run.cost.datum_gradients == sum(seen)


def test_num_steps_is_the_largest_that_the_budget_pays_for():
    for period, batch, n in ((1, 1, 6), (3, 2, 6), (7, 5, 10), (50, 1, 10), (4, 3, 1000)):
        estimator = SVRG(ewsg.Uniform(batch), period)
        spent = np.cumsum([2 * batch + n * (step % period == 0) for step in range(400)])
        for budget in (*range(60), 500, 1999, 2000, 2001):
            if budget < spent[-1]:
                assert estimator.num_steps(budget, n) == np.searchsorted(spent, budget, side="right")


def test_chains_keep_their_own_anchors(bent):
    run = ewsg.sample(bent, SVRG(ewsg.Uniform(3), 7), UNDERDAMPED, init=jnp.ones(2), num_chains=3, num_steps=20)
    state = run.checkpoint.carry.chains.state.estimator
    assert np.unique(np.asarray(state.anchor), axis=0).shape == (3, 2)
    expected = jax.vmap(lambda a: slope_at(bent, a))(state.anchor)
    np.testing.assert_allclose(state.slope, expected, rtol=1e-4, atol=1e-4)
