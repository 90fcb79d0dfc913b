"""Covariance friction in the loop: cost, branches, resume, compiled = eager, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.estimators.covariance_friction import CovarianceFriction
from ewsg.sampler import SamplerState


def test_without_covariance_it_is_ewsg(gaussian):
    """Equal data have no covariance; a factor of 0 takes it away: both give EWSG's chain, draw for draw."""
    integrator = ewsg.Underdamped(0.02, 5.0, temperature=0.3)

    def chain(target, estimator):
        sampler = ewsg.compose(target, estimator, integrator)
        step, state = jax.jit(sampler.step), sampler.init(jax.random.key(0), jnp.array([1.0, -0.5]))
        positions = []
        for t in range(60):
            state, _ = step(jax.random.key(t), state)
            positions.append(np.asarray(state.phase.position))
        return np.stack(positions)

    equal = ewsg.Target(gaussian_log_likelihood, None, np.full((50, 2), 0.3, np.float32))
    plain = ewsg.Exponential(2, 1)
    with_friction = chain(equal, CovarianceFriction(plain, period=1))
    np.testing.assert_allclose(with_friction, chain(equal, plain), rtol=1e-4, atol=2e-5)
    without = chain(gaussian, plain)
    np.testing.assert_allclose(chain(gaussian, CovarianceFriction(plain, factor=0.0)), without, rtol=1e-5, atol=1e-6)
    assert np.abs(chain(gaussian, CovarianceFriction(plain, factor=1.0)) - without).max() > 0.01


def test_cost_is_counted_by_hand(gaussian):
    """50 for a calibration, 25 steps of 3, then 50 and 8 steps of 3 more: 199 of a budget of 200."""
    estimator = CovarianceFriction(ewsg.Exponential(1, 1))
    options = {"init": jnp.zeros(2), "num_chains": 3, "discard": 0, "thin": 1}
    run = ewsg.sample(gaussian, estimator, ewsg.Underdamped(0.01, 5.0), data_passes=4, **options)
    assert (run.settings["num_steps"], run.cost.datum_gradients) == (33, 3 * 199)
    assert CovarianceFriction(ewsg.Exponential(1, 1), passes=2).num_steps(200, 50) == 50
    assert CovarianceFriction(ewsg.Uniform(3), period=4).num_steps(150, 50) == 5
    assert CovarianceFriction(ewsg.Uniform(3), mode="running").num_steps(150, 50) == 25


def test_number_of_steps_is_the_largest_that_the_budget_pays_for():
    for estimator in (CovarianceFriction(ewsg.Uniform(2), period=7), CovarianceFriction(ewsg.Exponential(1, 2))):
        each, n = int(estimator.cost(40).datum_gradients), 40
        period = 7 if estimator.period else 14
        for budget in range(0, 700, 3):
            steps = estimator.num_steps(budget, n)
            assert steps * each + -(-steps // period) * n <= budget
            assert (steps + 1) * each + -(-(steps + 1) // period) * n > budget


def test_calibration_is_a_true_branch_for_many_chains(gaussian):
    """With the loop's shared step counter the jaxpr keeps its `cond`; a batched one would compute both sides.

    Another `cond`, of no data, keeps the indices of a minibatch apart from what they gather.
    """
    sampler = ewsg.compose(gaussian, CovarianceFriction(ewsg.Uniform(1)), ewsg.Underdamped(0.01, 5.0))
    axes = SamplerState(0, 0, None)
    keys = jax.random.split(jax.random.key(0), 3)
    state = jax.vmap(sampler.init, out_axes=axes)(keys, jnp.zeros((3, 2)))
    shared = str(jax.make_jaxpr(jax.vmap(sampler.step, (0, axes)))(jax.random.clone(keys), state))
    apart = state._replace(step=jnp.zeros(3, jnp.int32))
    batched = str(jax.make_jaxpr(jax.vmap(sampler.step))(jax.random.clone(keys), apart))
    assert shared.count("cond[") == batched.count("cond[") + 1


FRICTIONS = {
    "svrg": CovarianceFriction(ewsg.Exponential(1, 1), period=5),
    "carried": CovarianceFriction(ewsg.Exponential(2, 1, restart=False), form="diagonal", passes=0.5, bound=0.5),
    "low_rank": CovarianceFriction(ewsg.Uniform(3), form="low_rank", rank=1),
    "running": CovarianceFriction(ewsg.Uniform(3), mode="running"),
    "batch": CovarianceFriction(ewsg.Uniform(3), mode="batch"),
}


@pytest.mark.parametrize("name", ["carried", "low_rank"])
def test_resumed_equals_uninterrupted(gaussian, tmp_path, name):
    options = {"init": jnp.zeros(2), "num_chains": 3, "discard": 10, "thin": 7}
    integrator = ewsg.Underdamped(0.01, 5.0, temperature=0.3)
    whole = ewsg.sample(gaussian, FRICTIONS[name], integrator, num_steps=96, **options)
    ewsg.sample(gaussian, FRICTIONS[name], integrator, num_steps=41, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=55)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    assert resumed.cost.datum_gradients == whole.cost.datum_gradients
    jax.tree.map(np.testing.assert_array_equal, resumed.checkpoint.carry, whole.checkpoint.carry)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period": 0}, "a calibration period of 0"),
        ({"passes": 0}, "a calibration period of 0"),
        ({"period": 5, "passes": 1}, "not both"),
        ({"period": -1}, "period must be a whole number"),
        ({"mode": "svgr"}, "did you mean 'svrg'"),
        ({"mode": "batch", "period": 5}, "never calibrates"),
        ({"inner": ewsg.Uniform(1), "mode": "batch"}, "batch_size of at least 2"),
        ({"inner": ewsg.Uniform(1), "mode": "running"}, "batch_size of at least 2"),
        ({"inner": ewsg.Reshuffled(5)}, "not Reshuffled"),
        ({"inner": ewsg.Full()}, "not Full"),
        ({"form": "low_rank"}, "go together"),
        ({"rank": 3}, "go together"),
        ({"form": "low_rank", "rank": 3, "mode": "running"}, "is for mode='svrg'"),
        ({"form": "low_rank", "rank": 0}, "rank must be a whole number"),
        ({"bound": 0.0}, "bound must be positive"),
        ({"mode": "running", "decay": 1.2}, "decay must be at most 1"),
        ({"factor": -1.0}, "factor must be zero or positive"),
    ],
    ids=str,
)
def test_bad_settings(settings, message):
    with pytest.raises(ewsg.errors.InputError, match=message):
        CovarianceFriction(**({"inner": ewsg.Uniform(4)} | settings))


def test_it_needs_a_momentum(gaussian):
    with pytest.raises(ewsg.errors.InputError, match="acts on a momentum"):
        ewsg.compose(gaussian, CovarianceFriction(ewsg.Uniform(2)), ewsg.Overdamped(1e-3))


def test_a_matrix_too_large_is_refused():
    target = ewsg.Target(lambda t, c: -0.5 * jnp.sum((t - c) ** 2), None, np.zeros((3, 2001), np.float32))
    integrator = ewsg.Underdamped(0.01, 5.0)
    with pytest.raises(ewsg.errors.InputError, match="2001 × 2001 matrix"):
        ewsg.sample(target, CovarianceFriction(ewsg.Uniform(2)), integrator, init=jnp.zeros(2001), num_steps=2)
    for settings in ({"mode": "batch"}, {"form": "diagonal"}, {"form": "low_rank", "rank": 4}):
        sampler = ewsg.compose(target, CovarianceFriction(ewsg.Uniform(2), **settings), integrator)
        assert sum(leaf.size for leaf in jax.tree.leaves(sampler.init(jax.random.key(0), jnp.zeros(2001)))) < 30_000
