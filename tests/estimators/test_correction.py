"""The anchored target, around every estimator: forces, weights, noise and cost against formulas written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from anchors import (
    ANCHOR,
    POSITION,
    UNDERDAMPED,
    N,
    close,
    corrected_forces,
    each_gradient,
    flat,
    kick_at,
    log_prior,
    wrapped,
)
from index_chain import assert_law, chain_law

import ewsg
from ewsg.estimators.clustered import Clustered
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.exponential import enumerate_batches
from ewsg.estimators.svrg import SVRG
from ewsg.target.anchored import anchored, slope_at


def test_anchored_forces_are_the_formula(curved):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    expected = corrected_forces(curved, POSITION, ANCHOR)
    indices = jnp.array([4, 1, 1, 5])
    weights = np.array([0.1, 0.7, -0.2, 0.9], np.float32)  # they do not sum to one
    direction = {"w": jnp.array([0.2, -1.0, 0.7]), "b": jnp.array(0.3)}

    @jax.jit
    def found(target, position, weights):
        each, mean = target.forces(position, indices), target.force(position, indices)
        weighted = target.weighted_force(position, indices, weights)
        return each, mean, weighted, target.directional(position, indices, direction)

    each, mean, weighted, along = found(there, POSITION, weights)
    close(flat(each), expected[indices])
    close(flat(mean), expected[indices].mean(0))
    close(flat(weighted), weights.astype(float) @ expected[indices])
    close(along, expected[indices] @ flat(direction))
    assert isinstance(there, ewsg.Target)


def test_anchoring_changes_no_density_and_no_full_force(curved):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))

    @jax.jit
    def found(target, point):
        data = target.data.arrays
        datum = jax.tree.map(lambda leaf: leaf[2], data)
        whole = target.log_density(point), target.full_force(point)
        one = target.likelihood(point, datum), jax.grad(target.likelihood)(point, datum)
        return whole, one, (target.likelihood.values(point, data), target.likelihood.gradients(point, data))

    for point in (POSITION, ANCHOR):
        (density, force), (value, gradient), (values, gradients) = found(there, point)
        expected, _, _ = found(curved, point)
        close(density, expected[0])
        close(flat(force), flat(expected[1]))
        close(value, values[2])
        close(flat(gradient), flat(gradients)[2])


@pytest.mark.parametrize("replace", [True, False])
def test_unbiased_by_enumeration(curved, replace):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    batches = jnp.asarray(enumerate_batches(N, 2, replace))
    forces = flat(jax.jit(jax.vmap(lambda position, batch: there.force(position, batch), (None, 0)))(POSITION, batches))
    close(forces.mean(0), flat(full_force(curved, POSITION)))
    assert forces.std(0).min() > 0.05


def test_no_spread_at_the_anchor(curved):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    forces = flat(jax.jit(lambda position: there.forces(position, jnp.arange(N)))(ANCHOR))
    close(forces, np.broadcast_to(flat(full_force(curved, ANCHOR)), forces.shape))


full_force = jax.jit(lambda target, position: target.full_force(position))


SHORT = {"init": jnp.array([1.0, 2.0]), "num_chains": 3, "num_steps": 60, "discard": 0, "thin": 1}


INNER = {
    "reshuffled": ewsg.Reshuffled(3),
    "exponential": ewsg.Exponential(1, 4),
    "carried": ewsg.Exponential(2, 2, x="zero", restart=False),
    "clustered": Clustered(3, 2),
}


@pytest.fixture(scope="module")
def full_gradient(gaussian):
    return ewsg.sample(gaussian, ewsg.Full(), UNDERDAMPED, **SHORT).draws


@pytest.mark.parametrize(
    ("kind", "inner"),
    [
        ("svrg", "reshuffled"),
        ("svrg", "carried"),
        ("svrg", "clustered"),
        ("fixed", "reshuffled"),
        ("fixed", "exponential"),
    ],
)
def test_the_chain_is_that_of_the_full_gradient(gaussian, full_gradient, kind, inner):
    found = ewsg.sample(gaussian, wrapped(kind, INNER[inner]), UNDERDAMPED, **SHORT)
    np.testing.assert_allclose(found.draws, full_gradient, atol=2e-4)
    assert np.abs(found.stats["noise_ratio"]).max() < 1e-6


@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_exponential_weights_use_the_corrected_gradients(curved, kind):
    """The enumerated law of Alg. 1, with G_i(θ) − G_i(a) + F(a) for n∇V_i; the plain gradients give another law."""
    batch_size = 2
    inner = ewsg.Exponential(batch_size, 2)
    kick, draws = kick_at(POSITION, 1), 100_000
    batches = enumerate_batches(N, batch_size, True)
    x = flat(kick.decay) / kick.noise_scale

    def law(forces):
        whitened = kick.step_size / kick.noise_scale * forces[batches].mean(1)
        return chain_law(0.5 * np.sum((x - whitened) ** 2, axis=1), 2)

    expected = law(corrected_forces(curved, POSITION, ANCHOR))
    plain = law(N * each_gradient(curved, POSITION) + flat(jax.grad(log_prior)(POSITION)))
    assert np.abs(expected - plain).max() * len(batches) > 0.1  # the test can tell them apart
    if kind == "svrg":
        estimator = SVRG(inner, 5)
        state = estimator.init(jax.random.key(0), curved, ANCHOR)
        state = estimator.estimate(jax.random.key(1), curved, kick_at(ANCHOR, 0), state)[1]
    else:
        estimator, state = ControlVariate(inner, anchor=ANCHOR).prepare(curved)[0], ()
    choose = jax.jit(jax.vmap(lambda key: estimator.estimate(key, curved, kick, state)[2].indices))
    chosen = np.asarray(choose(jax.random.split(jax.random.key(3), draws)))
    code = N ** np.arange(batch_size)
    lookup = {int(row @ code): i for i, row in enumerate(batches)}
    observed = np.bincount([lookup[int(c)] for c in chosen @ code], minlength=len(batches)) / draws
    assert_law(observed, expected, draws)


@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_noise_trace_is_that_of_the_corrected_forces(curved, kind):
    forces = corrected_forces(curved, POSITION, ANCHOR)
    exact = np.trace(np.cov(forces.T, bias=True)) / 3
    plain = np.trace(np.cov(N * each_gradient(curved, POSITION).T, bias=True)) / 3
    assert abs(exact / plain - 1) > 0.2
    if kind == "svrg":
        estimator = SVRG(ewsg.Uniform(3), 5)
        state = estimator.init(jax.random.key(0), curved, ANCHOR)
        state = estimator.estimate(jax.random.key(1), curved, kick_at(ANCHOR, 0), state)[1]
    else:
        estimator, state = ControlVariate(ewsg.Uniform(3), anchor=ANCHOR).prepare(curved)[0], ()
    keys = jax.random.split(jax.random.key(5), 40_000)
    traces = np.asarray(jax.jit(jax.vmap(lambda key: estimator.noise_trace(key, curved, POSITION, state)))(keys))
    assert abs(traces.mean() - exact) < 4.5 * traces.std() / 200


@pytest.mark.parametrize(
    ("inner", "per_step"),
    [(ewsg.Uniform(7), 14), (ewsg.Exponential(3, 4), 30)],
    ids=str,
)
def test_cost_is_counted_by_hand(gaussian, inner, per_step):
    options = {"init": jnp.zeros(2), "num_chains": 3, "data_passes": 9, "discard": 0, "thin": 1}
    run = ewsg.sample(gaussian, SVRG(inner, 4), UNDERDAMPED, **options)
    steps = run.settings["num_steps"]
    each = steps * per_step + 50 * -(-steps // 4)
    assert each <= 450 < each + per_step + 50 * (steps % 4 == 0)
    assert run.cost.datum_gradients == 3 * each
    assert run.cost.data_passes == each / 50
    run = ewsg.sample(gaussian, ControlVariate(inner, anchor=jnp.ones(2)), UNDERDAMPED, **options)
    steps = (450 - 50) // per_step
    assert run.settings["num_steps"] == steps
    assert run.cost.datum_gradients == 3 * steps * per_step + 50  # the anchor's full gradient serves all chains
    assert run.cost.data_passes == (steps * per_step + 50) / 50


@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_the_budget_of_corrections_around_calibrations_is_kept(gaussian, kind):
    inner = ewsg.CovarianceFriction(ewsg.Uniform(3), period=6)
    options = {"init": jnp.zeros(2), "num_chains": 2, "discard": 0, "thin": 1, "data_passes": 40}
    run = ewsg.sample(gaussian, wrapped(kind, inner), UNDERDAMPED, **options)
    steps = run.settings["num_steps"]
    each = 2 * (9 * steps + 50 * -(-steps // 6)) + (50 * -(-steps // 7) if kind == "svrg" else 0)
    prepared = run.cost.datum_gradients - 2 * each
    assert prepared == 0 if kind == "svrg" else prepared % 50 == 0
    next_step = 18 + 100 * (steps % 6 == 0) + 50 * (kind == "svrg" and steps % 7 == 0)
    assert each + prepared <= 2000 < each + prepared + next_step


def test_directional_derivatives_count_twice(gaussian):
    class Forward(ewsg.estimators.AbstractEstimator):
        """Reports directional derivatives as well."""

        def estimate(self, key, target, kick, state):
            force, state, info = ewsg.Uniform(2).estimate(key, target, kick, state)
            return force, state, info._replace(cost=self.cost(target.num_data))

        def cost(self, num_data):
            return ewsg.interface.Cost(2, 5)

        def noise_factor(self, num_data):
            return 0.5

    for estimator in (SVRG(Forward(), 4), ControlVariate(Forward(), anchor=jnp.zeros(2))):
        assert estimator.cost(50) == (4, 10)
        run = ewsg.sample(gaussian, estimator, UNDERDAMPED, init=jnp.zeros(2), num_chains=2, num_steps=8)
        assert run.cost.datum_directional == 2 * 8 * 10
        assert run.cost.datum_gradients == 2 * 8 * 4 + (2 * 2 * 50 if isinstance(estimator, SVRG) else 50)
