"""Control variates: the anchored target, `SVRG` and `ControlVariate`, against formulas written out by hand."""

import re
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
from conftest import gaussian_log_likelihood
from test_exponential import assert_law, chain_law
from test_gaussian import CHAINS, assert_covariance, last_draws

import ewsg
from ewsg.errors import InputError
from ewsg.estimators.clustered import Clustered
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.exponential import enumerate_batches
from ewsg.estimators.svrg import SVRG
from ewsg.interface import Kick
from ewsg.target.anchored import anchored, slope_at
from ewsg.target.likelihood import AbstractLikelihood

N = 6
ANCHOR = {"w": jnp.array([0.1, 0.4, -0.3]), "b": jnp.array(-0.2)}
POSITION = {"w": jnp.array([0.3, -0.2, 0.5]), "b": jnp.array(0.4)}
UNDERDAMPED = ewsg.Underdamped(step_size=0.02, friction=4.0)


def log_likelihood(params, datum):
    return -jnp.cosh(datum["y"] - params["w"] @ datum["x"] - params["b"])


def log_prior(params):
    return -0.7 * jnp.sum(params["w"] ** 4) - params["b"] ** 2


@pytest.fixture(scope="module")
def curved():
    """Six data, two leaves, nothing quadratic: a likelihood and a prior whose gradients bend everywhere."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(N, 3)).astype(np.float32), "y": rng.normal(size=N).astype(np.float32)}
    return ewsg.Target(log_likelihood, log_prior, data)


def flat(tree):
    """{w, b} as one vector in float64, along the last axis."""
    return np.concatenate([np.asarray(tree["w"], float), np.asarray(tree["b"], float)[..., None]], axis=-1)


def each_gradient(target, point):
    """∇ℓ_i, one datum at a time, from the user's function itself."""
    rows = [jax.tree.map(lambda leaf, i=i: leaf[i], target.data.arrays) for i in range(N)]
    return np.stack([flat(jax.grad(log_likelihood)(point, row)) for row in rows])


def corrected_forces(target, position, anchor):
    """G_i(θ) − G_i(a) + F(a) for every datum, with the prior shared out."""
    prior, prior_there = flat(jax.grad(log_prior)(position)), flat(jax.grad(log_prior)(anchor))
    here, there = each_gradient(target, position), each_gradient(target, anchor)
    return N * (here - there) + prior - prior_there + (there.sum(0) + prior_there)


def close(found, expected, tolerance=2e-5):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def kick_at(position, step=0):
    momentum = jax.tree.map(lambda leaf: 0.5 * jnp.cos(leaf) - 0.3, position)
    decay = jax.tree.map(lambda leaf: 0.02 * 4.0 * leaf, momentum)
    return Kick(position, momentum, decay, None, 0.02, float(np.sqrt(2 * 4.0 * 0.02)), 1.0, jnp.int32(step))


# The anchored target


def test_anchored_forces_are_the_formula(curved):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    expected = corrected_forces(curved, POSITION, ANCHOR)
    indices = jnp.array([4, 1, 1, 5])
    close(flat(there.forces(POSITION, indices)), expected[indices])
    close(flat(there.force(POSITION, indices)), expected[indices].mean(0))
    weights = np.array([0.1, 0.7, -0.2, 0.9], np.float32)  # they do not sum to one
    close(
        flat(there.weighted_force(POSITION, indices, jnp.asarray(weights))), weights.astype(float) @ expected[indices]
    )
    direction = {"w": jnp.array([0.2, -1.0, 0.7]), "b": jnp.array(0.3)}
    close(there.directional(POSITION, indices, direction), expected[indices] @ flat(direction))
    assert isinstance(there, ewsg.Target)


def test_anchoring_changes_no_density_and_no_full_force(curved):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    for point in (POSITION, ANCHOR):
        close(there.log_density(point), curved.log_density(point))
        close(flat(there.full_force(point)), flat(curved.full_force(point)))
        datum = jax.tree.map(lambda leaf: leaf[2], curved.data.arrays)
        close(there.likelihood(point, datum), there.likelihood.values(point, curved.data.arrays)[2])
        close(
            flat(jax.grad(there.likelihood)(point, datum)),
            flat(there.likelihood.gradients(point, curved.data.arrays))[2],
        )


@pytest.mark.parametrize("replace", [True, False])
def test_unbiased_by_enumeration(curved, replace):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    batches = jnp.asarray(enumerate_batches(N, 2, replace))
    forces = flat(jax.vmap(there.force, (None, 0))(POSITION, batches))
    close(forces.mean(0), flat(curved.full_force(POSITION)))
    assert forces.std(0).min() > 0.05


def test_no_spread_at_the_anchor(curved):
    there = anchored(curved, ANCHOR, slope_at(curved, ANCHOR))
    forces = flat(there.forces(ANCHOR, jnp.arange(N)))
    close(forces, np.broadcast_to(flat(curved.full_force(ANCHOR)), forces.shape))


# SVRG


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


class Rows(list):
    """A list that JAX accepts as a static setting."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Watched(AbstractLikelihood):
    """A likelihood that notes how many rows each gradient is taken over, while it runs."""

    density: Callable = eqx.field(static=True)
    seen: Rows = eqx.field(static=True)

    def __call__(self, params, datum):
        return self.density(params, datum)

    def gradient(self, params, batch, weights):
        jax.debug.callback(lambda _: self.seen.append(batch.shape[0]), params)
        return super().gradient(params, batch, weights)


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


# Quadratic potentials: the correction is exact


SHORT = {"init": jnp.array([1.0, 2.0]), "num_chains": 3, "num_steps": 60, "discard": 0, "thin": 1}


def wrapped(kind, inner):
    return SVRG(inner, 7) if kind == "svrg" else ControlVariate(inner, start=jnp.array([3.0, -2.0]))


INNER = {
    "uniform": ewsg.Uniform(1),
    "distinct": ewsg.Uniform(3, replace=False),
    "reshuffled": ewsg.Reshuffled(3),
    "exponential": ewsg.Exponential(1, 4),
    "carried": ewsg.Exponential(2, 2, x="zero", restart=False),
    "clustered": Clustered(3, 2),
}


@pytest.fixture(scope="module")
def full_gradient(gaussian):
    return ewsg.sample(gaussian, ewsg.Full(), UNDERDAMPED, **SHORT).draws


@pytest.mark.parametrize(
    ("kind", "inner"), [*(("svrg", inner) for inner in INNER), ("fixed", "reshuffled"), ("fixed", "exponential")]
)
def test_the_chain_is_that_of_the_full_gradient(gaussian, full_gradient, kind, inner):
    found = ewsg.sample(gaussian, wrapped(kind, INNER[inner]), UNDERDAMPED, **SHORT)
    np.testing.assert_allclose(found.draws, full_gradient, atol=2e-4)
    assert np.abs(found.stats["noise_ratio"]).max() < 1e-6


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_underdamped_stationary_law(gaussian, centres, kind, temperature):
    """S = A S Aᵀ + Q without any minibatch covariance."""
    n, h, gamma, eye = len(centres), 0.02, 5.0, np.eye(2)
    a = np.block([[eye, h * eye], [-h * n * eye, (1 - h * gamma) * eye]])
    q = scipy.linalg.block_diag(0 * eye, 2 * gamma * temperature * h * eye)
    exact = scipy.linalg.solve_discrete_lyapunov(a, q)[:2, :2]
    integrator = ewsg.Underdamped(step_size=h, friction=gamma, temperature=temperature)
    draws, _ = last_draws(gaussian, wrapped(kind, ewsg.Uniform(1)), integrator, 300)
    assert_covariance(draws, exact)
    assert np.all(np.abs(draws.mean(0) - centres.mean(0)) < 4.5 * np.sqrt(np.diag(exact) / CHAINS))


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_overdamped_stationary_law(gaussian, centres, kind, temperature):
    n, h = len(centres), 0.005
    exact = 2 * h * temperature / (1 - (1 - h * n) ** 2) * np.eye(2)
    integrator = ewsg.Overdamped(step_size=h, temperature=temperature)
    draws, _ = last_draws(gaussian, wrapped(kind, ewsg.Uniform(1)), integrator, 80)
    assert_covariance(draws, exact)


def test_skewed_posterior_with_noise_left():
    """Ten Poisson counts with unequal exposures e_i, θ the log rate: e^θ ~ Gamma(Σy, Σe), skewed, and not quadratic.

    One datum a step heats it by half; with an anchor the chain is that of the full gradient, up to the noise left.
    """
    exposures = np.array([0.1, 0.2, 0.2, 0.3, 0.3, 0.5, 0.7, 1.2, 1.5, 3.0], np.float32)
    counts = np.array([0, 0, 0, 0, 0, 0, 0, 0, 4, 4], np.float32)
    data = {"e": exposures, "y": counts}
    target = ewsg.Target(lambda t, d: d["y"] * t[0] - d["e"] * jnp.exp(t[0]), None, data)
    shape = counts.sum()
    mean = scipy.special.digamma(shape) - np.log(exposures.sum())
    variance, third = scipy.special.polygamma([1, 2], shape)
    start = jnp.array([mean], jnp.float32)
    estimators = {
        "full": ewsg.Full(),
        "plain": ewsg.Uniform(1),
        "svrg": SVRG(ewsg.Uniform(1), 5),
        "fixed": ControlVariate(ewsg.Uniform(1), start=start),
    }
    found = {}
    for name, estimator in estimators.items():
        x = last_draws(target, estimator, ewsg.Underdamped(step_size=0.02, friction=3.0), 400, init=start)[0][:, 0]
        skewness = np.mean((x - x.mean()) ** 3) / x.std() ** 3
        found[name] = (x.mean() - mean) / np.sqrt(variance), x.var() / variance, skewness
    error = 4.5 * np.array([1, np.sqrt(3), np.sqrt(15)]) / np.sqrt(CHAINS)
    exact = np.array([0.0, 1.05, third / variance**1.5])  # 5 % from the step size
    assert np.all(np.abs(found["full"] - exact) < error), found
    assert np.all(np.abs(found["svrg"] - exact) < error), found
    assert np.all(np.abs(np.subtract(found["svrg"], found["full"])) < 0.01)  # they share their noise
    assert 1.05 < found["fixed"][1] < 1.15
    assert found["plain"][1] > 1.4


# EWSG on corrected gradients


@pytest.mark.parametrize("kind", ["svrg", "fixed"])
@pytest.mark.parametrize("batch_size", [1, 2])
def test_exponential_weights_use_the_corrected_gradients(curved, kind, batch_size):
    """The enumerated law of Alg. 1, with G_i(θ) − G_i(a) + F(a) for n∇V_i; the plain gradients give another law."""
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


# Noise, cost, search


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
    [(ewsg.Uniform(7), 14), (ewsg.Exponential(3, 4), 30), (ewsg.Full(), 100)],
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


def test_the_search_finds_the_mode_and_counts_every_evaluation(centres):
    """A sum of logistic terms of very unequal stiffness, from far away; the mode by root finding in float64."""
    scale, seen = np.array([1.0, 30.0]), Rows()

    def density(params, centre):
        return -jnp.sum(jnp.logaddexp(0.0, (params - centre) * jnp.asarray(scale)))

    def force(theta, k):
        return -scale[k] * scipy.special.expit((theta - centres[:, k]) * scale[k]).sum() - 0.1 * (theta - 9.0)

    target = ewsg.Target(Watched(density, seen), lambda p: -0.05 * jnp.sum((p - 9.0) ** 2), centres)
    prepared, cost = ControlVariate(ewsg.Uniform(2), start=jnp.array([40.0, -20.0])).prepare(target)
    jax.effects_barrier()
    assert cost == (sum(seen), 0)
    assert 5 * 50 < cost.datum_gradients < 60 * 50
    mode = [scipy.optimize.brentq(force, -50, 50, args=(k,)) for k in range(2)]
    np.testing.assert_allclose(prepared.anchor, mode, atol=0.02)
    few, cost = ControlVariate(ewsg.Uniform(2), start=jnp.array([40.0, -20.0]), max_passes=1).prepare(target)
    assert cost == (100, 0)
    np.testing.assert_array_equal(few.anchor, [40.0, -20.0])
    again, cost = ControlVariate(ewsg.Uniform(2), start=prepared.anchor).prepare(target)
    assert cost.datum_gradients < 40 * 50
    np.testing.assert_allclose(again.anchor, mode, atol=0.02)


def test_the_search_is_deterministic(curved):
    one, cost = ControlVariate(ewsg.Uniform(2), start=POSITION).prepare(curved)
    other, again = ControlVariate(ewsg.Uniform(2), start=POSITION).prepare(curved)
    jax.tree.map(np.testing.assert_array_equal, (one.anchor, one.slope), (other.anchor, other.slope))
    assert cost == again
    assert np.abs(flat(curved.full_force(one.anchor))).max() < 2e-3


# In the loop


ESTIMATORS = {
    "svrg": SVRG(ewsg.Uniform(3), 7),
    "svrg_reshuffled": SVRG(ewsg.Reshuffled(3), 7),
    "svrg_exponential": SVRG(ewsg.Exponential(2, 2, restart=False), 7),
    "searched": ControlVariate(ewsg.Uniform(3), start=jnp.array([3.0, -2.0]), max_passes=20),
    "given": ControlVariate(ewsg.Exponential(2, 1), anchor=np.array([0.3, -0.2], np.float32)),
}


def some(*quick):
    """All of ESTIMATORS as parameters, `quick` ones in the quick suite."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in ESTIMATORS]


@pytest.fixture(scope="module")
def bent(centres):
    """The paper's centres under a heavy tail, so that corrections leave noise."""
    return ewsg.Target(lambda theta, c: -jnp.log1p(jnp.sum((theta - c) ** 2)), None, centres)


@pytest.mark.parametrize("name", some("svrg_exponential", "searched"))
def test_resume_equals_continuous(bent, tmp_path, name):
    options = {"init": jnp.ones(2), "num_chains": 3, "discard": 4, "thin": 3, "seed": 5}
    whole = ewsg.sample(bent, ESTIMATORS[name], UNDERDAMPED, num_steps=40, **options)
    ewsg.sample(bent, ESTIMATORS[name], UNDERDAMPED, num_steps=17, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", bent, num_steps=23)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    for stat, values in whole.stats.items():
        np.testing.assert_array_equal(resumed.stats[stat], values)
    assert resumed.cost.datum_gradients == whole.cost.datum_gradients


@pytest.mark.parametrize("name", some("svrg", "given"))
def test_compiled_equals_eager(bent, compiled_and_eager, name):
    sampler = ewsg.compose(bent, ESTIMATORS[name], ewsg.Underdamped(step_size=0.01, friction=10.0))
    differs = np.any(
        [np.abs(one - other).max(1) > 1e-3 for one, other in zip(*compiled_and_eager(sampler), strict=True)], axis=0
    )
    assert differs.mean() <= 5e-4


@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_parameters_in_a_pytree(bent, centres, kind):
    """The same chain whether θ is one array or two named scalars."""
    split = ewsg.Target(lambda p, c: -jnp.log1p((p["a"] - c[0]) ** 2 + (p["b"][0] - c[1]) ** 2), None, centres)
    start = {"a": jnp.array(1.0), "b": jnp.array([2.0])}
    options = {"num_chains": 2, "num_steps": 30, "discard": 0, "thin": 1}
    if kind == "svrg":
        one, two = SVRG(ewsg.Uniform(3), 7), SVRG(ewsg.Uniform(3), 7)
    else:
        two = ControlVariate(ewsg.Uniform(3), anchor={"a": 0.3, "b": np.array([-0.2], np.float32)})
        one = ControlVariate(ewsg.Uniform(3), anchor=jnp.array([0.3, -0.2]))
    whole = ewsg.sample(bent, one, UNDERDAMPED, init=jnp.array([1.0, 2.0]), **options).draws
    parts = ewsg.sample(split, two, UNDERDAMPED, init=start, **options).draws
    np.testing.assert_allclose(parts["a"], whole[..., 0], atol=1e-4)
    np.testing.assert_allclose(parts["b"], whole[..., 1:], atol=1e-4)


def test_chains_keep_their_own_anchors(bent):
    run = ewsg.sample(bent, SVRG(ewsg.Uniform(3), 7), UNDERDAMPED, init=jnp.ones(2), num_chains=3, num_steps=20)
    state = run.checkpoint.carry.chains.state.estimator
    assert np.unique(np.asarray(state.anchor), axis=0).shape == (3, 2)
    expected = jax.vmap(lambda a: slope_at(bent, a))(state.anchor)
    np.testing.assert_allclose(state.slope, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: SVRG(ewsg.Uniform(2), 0), "period must be a whole number of at least 1, not 0"),
        (lambda: SVRG(ewsg.Uniform(2), 2.5), "period must be a whole number"),
        (lambda: SVRG(32, 5), "SVRG wraps an estimator, such as Uniform(32), not 32"),
        (lambda: SVRG(ewsg.Uniform(60, replace=False), 5), "larger than the number of data 50"),
        (lambda: SVRG(ewsg.Exponential(2, x="noise"), 5), "x='noise'"),
        (lambda: SVRG(ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(2)), 5), "would correct gradients twice"),
        (lambda: ControlVariate(SVRG(ewsg.Uniform(2), 5), anchor=jnp.zeros(2)), "would correct gradients twice"),
        (lambda: ControlVariate(ewsg.Uniform(2)), "needs an anchor: give anchor=, or start="),
        (lambda: ControlVariate(ewsg.Uniform(2), jnp.zeros(2), jnp.zeros(2)), "anchor= or start=, not both"),
        (
            lambda: ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(1)),
            "shapes [(1,)] and the parameters have [(2,)]",
        ),
        (lambda: ControlVariate(ewsg.Uniform(2), anchor=jnp.array([0, 1])), "anchor has dtype int32"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.array([0.0, jnp.nan])), "start has NaN"),
        (lambda: ControlVariate(ewsg.Uniform(2), start={"a": jnp.zeros(2)}), "at start, log_likelihood"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.full(2, 1e30)), "density is not finite at start"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.zeros(2), max_passes=0), "max_passes must be"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.zeros(2), tolerance=-1), "tolerance must be"),
        (lambda: ControlVariate(ewsg.Uniform(2), anchors=jnp.zeros(2)), "did you mean 'anchor'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(gaussian, build, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ewsg.sample(gaussian, build(), UNDERDAMPED, init=jnp.zeros(2), num_steps=3)


def test_an_unprepared_control_variate_says_so(gaussian):
    with pytest.raises(InputError, match="not prepared"):
        ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(2)).init(jax.random.key(0), gaussian, jnp.zeros(2))
