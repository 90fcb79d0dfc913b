"""The theorems: what holds, what does not, and that the code computes it."""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import ewsg
from ewsg import theory
from ewsg._core.component import describe
from ewsg.errors import InputError
from ewsg.interface import Kick
from ewsg.theory.local import trace_of, weights_of


def linear_target(gradients: np.ndarray) -> ewsg.Target:
    """A posterior whose n∇V_i are the rows given, wherever it is looked at."""
    rows = np.asarray(gradients, np.float32) / len(gradients)
    return ewsg.Target(lambda theta, row: -jnp.dot(row, theta), None, rows)


def gaussian_gradients(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def origin(d: int) -> jax.Array:
    return jnp.zeros(d)


# ---------------------------------------------------------------- gradients


def test_gradients_are_those_of_the_potential_with_the_prior_shared_out():
    data = np.array([0.5, -1.0, 2.0], np.float32)

    def log_likelihood(params, x):
        return -0.5 * (x - params["a"] - params["b"][0]) ** 2

    target = ewsg.Target(log_likelihood, lambda params: -2.0 * params["b"][0] ** 2, data)
    position = {"a": jnp.array(0.3), "b": jnp.array([1.0])}
    gradients = theory.datum_gradients(target, position)
    residual = 0.3 + 1.0 - data
    np.testing.assert_allclose(gradients, np.stack([3 * residual, 3 * residual + 4.0], axis=1), rtol=1e-5)
    full = target.full_force(position)
    np.testing.assert_allclose(gradients.mean(axis=0), [-full["a"], -full["b"][0]], rtol=1e-5)


def test_gradients_do_not_depend_on_the_blocks(monkeypatch):
    target = linear_target(gaussian_gradients(23, 3))
    whole = theory.datum_gradients(target, origin(3))
    monkeypatch.setattr("ewsg.theory.gradients._BLOCK_ENTRIES", 15)
    np.testing.assert_array_equal(theory.datum_gradients(target, origin(3)), whole)


# ---------------------------------------------------------------- Theorem 1


@pytest.mark.parametrize(
    ("n", "d", "scale"), [(50, 1, 1.0), (60, 4, 1e6), (300, 20, 1.0), (12, 11, 1.0), (8, 30, 1e-4)]
)
def test_optimal_weights_are_unbiased_sparse_and_no_worse_than_uniform(n, d, scale):
    spread = np.geomspace(1, 1e-3, d)
    target = linear_target(scale * spread * (gaussian_gradients(n, d) + 1.0))
    best = theory.optimal_weights(target, origin(d))
    gradients = theory.datum_gradients(target, origin(d))
    errors = gradients - gradients.mean(axis=0)
    costs = np.sum(errors**2, axis=1)
    p = best.probabilities
    assert np.all(p >= 0)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert np.all(np.abs(p @ errors) <= 1e-8 * np.std(errors, axis=0))
    assert best.support == np.count_nonzero(p) <= min(d + 1, n)
    assert best.trace == pytest.approx(p @ costs)
    assert best.trace <= costs.mean() * (1 + 1e-9)
    if n > 2 * d:
        assert best.trace < 0.9 * costs.mean()


@pytest.mark.parametrize("seed", range(5))
def test_optimal_trace_equals_brute_force_over_all_small_supports(seed):
    n, d = 7, 2
    target = linear_target(gaussian_gradients(n, d, seed))
    best = theory.optimal_weights(target, origin(d))
    gradients = theory.datum_gradients(target, origin(d))
    errors = gradients - gradients.mean(axis=0)
    feasible = []
    for subset in map(list, itertools.combinations(range(n), d + 1)):
        p = np.linalg.solve(np.vstack([errors[subset].T, np.ones(d + 1)]), [0.0, 0.0, 1.0])
        if np.all(p >= 0):
            feasible.append(p @ np.sum(errors[subset] ** 2, axis=1))
    assert best.trace == pytest.approx(min(feasible), rel=1e-10)


def test_optimal_weights_of_identical_gradients_cost_nothing():
    best = theory.optimal_weights(linear_target(np.full((6, 3), 0.1)), origin(3))
    assert best.support == 1
    assert best.trace == 0


def test_optimal_weights_ignore_redundant_and_constant_coordinates():
    z = gaussian_gradients(40, 1)
    best = theory.optimal_weights(linear_target(np.hstack([z, 2 * z, 0 * z + 0.3])), origin(3))
    assert best.support == 2


def test_optimal_weights_of_a_single_datum():
    best = theory.optimal_weights(linear_target([[1.0, 2.0]]), origin(2))
    assert best.probabilities.tolist() == [1.0]


def test_optimal_weights_refuse_a_program_that_is_too_large():
    target = ewsg.Target(lambda theta, x: -jnp.sum(theta) * x, None, np.ones(6_000, np.float32))
    with pytest.raises(InputError, match=r"n·d = 6,000,000 is above 5,000,000"):
        theory.optimal_weights(target, jnp.zeros(1_000))


def test_optimal_weights_say_when_highs_fails(monkeypatch):
    class Failed:
        status, message = 4, "numerical difficulties"

    monkeypatch.setattr("ewsg.theory.optimal.linprog", lambda *args, **kwargs: Failed)
    with pytest.raises(RuntimeError, match=r"HiGHS did not solve.*numerical difficulties"):
        theory.optimal_weights(linear_target(gaussian_gradients(5, 2)), origin(2))


# ---------------------------------------------------------------- Theorem 2

FRICTION = 1.5
STEP = 0.3


def kick_at(position: jax.Array, momentum: jax.Array, temperature: float) -> Kick:
    noise_scale = math.sqrt(2 * FRICTION * temperature * STEP)
    decay = STEP * FRICTION * momentum
    return Kick(position, momentum, decay, jnp.zeros_like(position), STEP, noise_scale, temperature)


@pytest.mark.parametrize(
    ("temperature", "choice", "settings"),
    [
        (1.0, "momentum", {"exact": True}),
        (0.3, "zero", {"exact": True}),
        (0.3, "momentum", {"chain_length": 40, "evaluate": "streamed"}),
    ],
)
def test_ewsg_weights_are_the_law_of_the_estimator(temperature, choice, settings):
    target = linear_target(1.5 * gaussian_gradients(6, 2) + 0.5)
    position, momentum = origin(2), jnp.array([0.7, -1.1])
    estimator = ewsg.Exponential(batch_size=1, x=choice, **settings)
    kick = kick_at(position, momentum, temperature)
    draws = 20_000
    keys = jax.random.split(jax.random.key(1), draws)
    chosen = jax.jit(jax.vmap(lambda key: estimator.estimate(key, target, kick, ())[2].indices[0]))(keys)
    x = theory.momentum_x(momentum, STEP, FRICTION, temperature) if choice == "momentum" else jnp.zeros(2)
    weights = theory.ewsg_weights(target, position, x, STEP, FRICTION, temperature)
    assert weights.max() > 1.5 * weights.min()
    assert stats.chisquare(np.bincount(chosen, minlength=6), draws * weights).pvalue > 1e-4


def test_ewsg_weights_do_not_overflow():
    gradients = np.array([[0.0], [1e4], [1e4 + 1e-3]])
    weights = weights_of(gradients, np.zeros(1), step_size=1.0, noise=1.0)
    np.testing.assert_allclose(weights, [0, 1 / (1 + math.exp(10)), 1 / (1 + math.exp(-10))], rtol=1e-3)


def test_local_covariance_is_about_the_mean_under_the_weights():
    target = linear_target(gaussian_gradients(9, 3) + 2.0)
    weights = np.random.default_rng(3).dirichlet(np.ones(9))
    gradients = theory.datum_gradients(target, origin(3))
    covariance = theory.local_covariance(target, origin(3), weights)
    np.testing.assert_allclose(covariance, np.cov(gradients.T, aweights=weights, ddof=0), rtol=1e-10)
    with pytest.raises(InputError, match="9 probabilities"):
        theory.local_covariance(target, origin(3), np.ones(9))


def test_local_traces_agree_with_their_parts():
    target = linear_target(gaussian_gradients(30, 2) + 0.4)
    momentum = jnp.array([1.0, -0.5])
    traces = theory.local_traces(target, origin(2), momentum, STEP, FRICTION, 0.7)
    gradients = theory.datum_gradients(target, origin(2))
    x = theory.momentum_x(momentum, STEP, FRICTION, 0.7)
    weights = theory.ewsg_weights(target, origin(2), x, STEP, FRICTION, 0.7)
    assert traces.uniform == pytest.approx(np.var(gradients, axis=0).sum())
    assert traces.exponential == pytest.approx(np.trace(theory.local_covariance(target, origin(2), weights)))
    assert traces.optimal == theory.optimal_weights(target, origin(2)).trace < traces.uniform
    assert traces.bias == pytest.approx(np.linalg.norm(weights @ gradients - gradients.mean(axis=0)))
    assert math.isnan(theory.local_traces(target, origin(2), momentum, STEP, FRICTION, 0.7, False).optimal)


def test_local_functions_refuse_vectors_unlike_the_position_and_bad_settings():
    target = linear_target(gaussian_gradients(5, 2))
    with pytest.raises(InputError, match="must look like the position"):
        theory.ewsg_weights(target, origin(2), jnp.zeros(3), STEP, FRICTION)
    with pytest.raises(InputError, match="step_size must be positive"):
        theory.local_traces(target, origin(2), origin(2), -1.0, FRICTION)


def changes(draw, step_size: float, repeats: int) -> np.ndarray:
    """Theorem 2's Δ over the uniform trace, for i.i.d. n∇V_i ~ draw, thermal momenta and x = √h γ r/σ."""
    rng = np.random.default_rng(5)
    results = []
    for _ in range(repeats):
        gradients = draw(rng)
        uniform = np.full(len(gradients), 1 / len(gradients))
        x = math.sqrt(step_size * FRICTION / 2) * rng.standard_normal(gradients.shape[1])
        weights = weights_of(gradients, x, step_size, math.sqrt(2 * FRICTION))
        before = trace_of(gradients, uniform)
        results.append((trace_of(gradients, weights) - before) / before)
    return np.array(results)


def z_score(values: np.ndarray) -> float:
    return np.mean(values) / (np.std(values) / math.sqrt(len(values)))


def test_theorem_2_as_its_proof_has_it_weights_independent_of_the_gradients():
    """E[Δ] = −½ E‖b_i − b_j‖² (Σ p_i² − 1/n) < 0 when p is chosen before the gradients are drawn."""
    rng = np.random.default_rng(0)
    n, d = 12, 3
    weights = rng.dirichlet(np.full(n, 2.0))
    draws = [rng.uniform(-1, 1, (n, d)) for _ in range(4_000)]
    delta = np.array([trace_of(g, weights) - trace_of(g, np.full(n, 1 / n)) for g in draws])
    expected = -0.5 * (2 * d / 3) * (np.sum(weights**2) - 1 / n)
    assert z_score(delta - expected) == pytest.approx(0, abs=4)
    assert z_score(delta) < -20


def test_theorem_2_holds_for_gradients_whose_errors_are_equally_long():
    delta = changes(lambda rng: rng.choice([-1.0, 1.0], (20, 3)), step_size=1.0, repeats=800)
    assert z_score(delta) < -10


def test_theorem_2_holds_when_the_tilt_leaves_few_data():
    delta = changes(lambda rng: rng.uniform(-1, 1, (20, 3)), step_size=20.0, repeats=300)
    assert z_score(delta) < -10


@pytest.mark.parametrize("step_size", [0.01, 0.1])
def test_theorem_2_fails_for_bounded_symmetric_gradients_and_small_steps(step_size):
    """A counterexample to E[Δ] < 0: EWSG's weights depend on the gradients, they prefer long ones."""
    delta = changes(lambda rng: rng.uniform(-1, 1, (20, 3)), step_size, repeats=1_500)
    assert z_score(delta) > 10


def test_theorem_2_sign_follows_skewness():
    def left_skewed(rng):
        return 1 - 2 * (rng.beta(0.5, 2.0, (20, 3)) - 0.2)

    def right_skewed(rng):
        return 1 + 2 * (rng.beta(0.5, 2.0, (20, 3)) - 0.2)

    assert z_score(changes(left_skewed, 0.05, 1_000)) < -10
    assert z_score(changes(right_skewed, 0.05, 1_000)) > 10


@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_change_is_of_first_order_in_the_step_with_the_stated_coefficient(temperature):
    target = linear_target(np.random.default_rng(2).gamma(2.0, size=(25, 2)))
    momentum = jnp.array([0.4, -1.3])
    steps = np.array([1e-4, 3e-4, 1e-3])
    settings = [(target, origin(2), momentum, h, FRICTION, temperature) for h in steps]
    traces = [theory.local_traces(*setting, with_optimal=False) for setting in settings]
    delta = np.array([t.exponential - t.uniform for t in traces])
    predicted = [theory.first_order_change(*setting) for setting in settings]
    np.testing.assert_allclose(delta, predicted, rtol=0.02)
    assert theory.fit_slope(steps, np.abs(delta)).value == pytest.approx(1, abs=0.01)
    assert theory.fit_slope(steps, [t.bias for t in traces]).value == pytest.approx(1, abs=0.01)


# ---------------------------------------------------------------- Theorem 3: slopes


def test_slope_of_an_exact_power_law():
    x = np.geomspace(0.1, 10, 7)
    slope = theory.fit_slope(x, 3 * x**-1.5, error=0.1 * x**-1.5)
    assert slope.value == pytest.approx(-1.5)
    assert slope.low < -1.5 < slope.high
    exact = theory.fit_slope(x, 3 * x**2)
    assert exact.high - exact.low < 1e-6


@pytest.mark.parametrize("kind", ["independent", "correlated", "unknown"])
def test_slope_interval_covers_at_its_confidence(kind):
    rng = np.random.default_rng(4)
    x = np.geomspace(1, 100, 8)
    y = 2 / x
    relative = np.linspace(0.02, 0.08, 8) if kind != "unknown" else np.full(8, 0.05)
    correlation = 0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    correlation = correlation if kind == "correlated" else np.eye(8)
    covariance = correlation * np.outer(relative * y, relative * y)
    error = {"independent": relative * y, "correlated": covariance, "unknown": None}[kind]
    slopes = [theory.fit_slope(x, sample, error) for sample in rng.multivariate_normal(y, covariance, 600)]
    covered = np.mean([s.low < -1 < s.high for s in slopes])
    assert 0.92 < covered < 0.995
    assert np.mean([s.value for s in slopes]) == pytest.approx(-1, abs=0.01)


def test_slope_trusts_points_by_their_errors():
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    y = np.array([1.0, 0.1, 0.01, 0.1])  # the last one is worthless, and says so
    assert theory.fit_slope(x, y, error=y * [0.001, 0.001, 0.001, 10.0]).value == pytest.approx(-1, abs=1e-4)


def test_slope_widens_where_the_points_leave_the_line():
    x = np.geomspace(1, 100, 6)
    bent = 1 / x * (1 + 0.3 * (np.arange(6) % 2))
    slope = theory.fit_slope(x, bent, error=1e-4 * bent)
    assert slope.high - slope.low > 0.05


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ([1.0, 2.0], [1.0, -1.0], [0.1, 0.1], "every y must be positive"),
        ([1.0, 1.0], [1.0, 1.0], [0.1, 0.1], "two different x"),
        ([1.0, 2.0], [1.0, 1.0], None, "three points"),
        ([1.0, 2.0], [1.0, 1.0], [0.1, 0.0], "every error must be positive"),
        ([1.0, 2.0], [1.0, 1.0], [0.1, 0.1, 0.1], "must have shape"),
    ],
)
def test_slope_refuses_what_has_no_logarithm_or_no_line(x, y, error, message):
    with pytest.raises(InputError, match=message):
        theory.fit_slope(x, y, error)


# ---------------------------------------------------------------- Theorem 3: errors of time averages


def autoregression(num_chains: int, num_draws: int, coefficient: float, mean: float) -> np.ndarray:
    """Stationary chains of variance one."""
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((num_draws, num_chains))
    values = np.empty((num_draws, num_chains))
    values[0] = noise[0]
    for k in range(1, num_draws):
        values[k] = coefficient * values[k - 1] + math.sqrt(1 - coefficient**2) * noise[k]
    return mean + values.T


def test_running_errors_of_an_autoregression():
    coefficient, shift, step = 0.9, 0.2, 0.05
    values = autoregression(4_000, 1_000, coefficient, mean=1.0 + shift)
    errors = theory.running_errors(values, exact=1.0, time_step=step)
    counts = errors.time / step
    assert counts[0] == 1
    assert counts[-1] == pytest.approx(1_000)
    c = coefficient
    variance = ((1 + c) / (1 - c) - 2 * c * (1 - c**counts) / (counts * (1 - c) ** 2)) / counts
    assert np.all(np.abs(errors.mse - variance - shift**2) < 4 * errors.standard_error)
    assert np.all(np.abs(errors.bias - shift) < 4 * errors.bias_error)
    np.testing.assert_allclose(errors.bias_error, np.sqrt(variance / 4_000), rtol=0.1)
    np.testing.assert_allclose(errors.squared_bias[-1], shift**2, atol=8 * shift * errors.bias_error[-1])
    np.testing.assert_allclose(np.diag(errors.covariance), errors.standard_error**2)
    assert errors.covariance[-2, -1] > 0.8 * errors.covariance[-1, -1]


def test_running_errors_fall_as_one_over_time():
    values = autoregression(2_000, 2_000, 0.5, mean=0.0)
    errors = theory.running_errors(values, exact=0.0)
    late = errors.time > 30
    slope = theory.fit_slope(errors.time[late], errors.mse[late], errors.covariance[np.ix_(late, late)])
    assert slope.low < -1 < slope.high
    assert slope.high - slope.low < 0.15


def test_running_errors_need_chains():
    with pytest.raises(InputError, match="two chains or more"):
        theory.running_errors(np.zeros((1, 5)), 0.0)


MU = np.random.default_rng(8).gamma(1.0, size=12).astype(np.float32)
MU -= MU.mean()


NUM_CHAINS, NUM_DRAWS = 10_000, 60  # one shape for all runs: each estimator is compiled once


def square(theta):
    return theta**2


@functools.cache
def chains(estimator=None, scale=1.0, step_size=0.05, thin=4, units="sum") -> ewsg.Run:
    """Chains on the appendix's potential from θ = 3, SGHMC unless another estimator is given."""
    return ewsg.sample(
        theory.quadratic_target(scale * MU),
        estimator or ewsg.Uniform(1),
        ewsg.Underdamped(step_size=step_size, friction=1.0, units=units),
        init=jnp.array(3.0),
        num_chains=NUM_CHAINS,
        num_steps=NUM_DRAWS * thin,
        discard=0,
        thin=thin,
        seed=2,
    )


def as_if_collected(run: ewsg.Run) -> ewsg.Run:
    """What the run would be with collect=square."""
    settings = run.settings | {"collect": describe(ewsg.collect.Draws(square))}
    return dataclasses.replace(run, draws=square(run.draws), settings=settings)


def test_squared_errors_of_a_run_are_those_of_its_values():
    errors = theory.squared_errors(chains(), square, exact=1.0)
    expected = theory.running_errors(chains().draws.astype(float) ** 2, 1.0, time_step=0.2)
    np.testing.assert_allclose(errors.mse, expected.mse, rtol=1e-4)
    assert errors.time[-1] == pytest.approx(NUM_DRAWS * 4 * 0.05)
    collected = theory.squared_errors(as_if_collected(chains()), None, exact=1.0)
    np.testing.assert_allclose(collected.mse, errors.mse, rtol=1e-5)


def test_squared_errors_count_time_in_sum_units():
    errors = theory.squared_errors(chains(units="mean"), square, exact=0.0)
    assert errors.time[-1] == pytest.approx(NUM_DRAWS * 4 * 0.05 / math.sqrt(12))


def test_squared_errors_refuse_failed_chains_schedules_and_vectors():
    with pytest.raises(InputError, match="10000 of 10000 chains failed"):
        theory.squared_errors(chains(step_size=5.0), square, 0.0)
    scheduled = chains().settings | {"integrator_in_sum_units": {"step_size": {"component": "Polynomial"}}}
    with pytest.raises(InputError, match="constant step size"):
        theory.squared_errors(dataclasses.replace(chains(), settings=scheduled), square, 0.0)
    with pytest.raises(InputError, match="one scalar for each draw"):
        theory.squared_errors(chains(), lambda theta: (theta, theta), 0.0)
    with pytest.raises(InputError, match=r"shape \(chain, draw\)"):
        theory.squared_errors(chains(), lambda theta: jnp.stack([theta, theta]), 0.0)


# ---------------------------------------------------------------- Theorem 3: the trace along a run


def test_mean_trace_of_a_run(monkeypatch):
    monkeypatch.setattr("ewsg.theory.trace._BLOCK_ENTRIES", 256 * 8)  # two blocks
    trace = theory.mean_trace(chains(), theory.quadratic_target(MU))
    assert abs(trace.value - np.var(MU)) < 4 * trace.standard_error
    assert trace.standard_error < 0.1 * trace.value


@pytest.mark.parametrize(
    ("estimator", "factor"),
    [(ewsg.Uniform(4, replace=False), 8 / 11 / 4), (ewsg.Full(), 0.0)],
)
def test_mean_trace_of_another_estimator_at_the_draws_of_a_run(estimator, factor):
    trace = theory.mean_trace(chains(), theory.quadratic_target(MU), estimator=estimator)
    assert abs(trace.value - factor * np.var(MU)) < 4 * trace.standard_error + 1e-10


def test_force_traces_of_ewsg_are_those_of_its_weights_over_thermal_momenta():
    target, h, temperature = theory.quadratic_target(MU), 0.4, 0.3
    integrator = ewsg.Underdamped(step_size=h, friction=1.0, temperature=temperature, momentum="zero")
    sampler = ewsg.compose(target, ewsg.Exponential(1, exact=True), integrator)
    traces = theory.force_traces(sampler, jnp.full(600, -1.0), jax.random.key(0))
    gradients = theory.datum_gradients(target, jnp.array(-1.0))
    momenta = math.sqrt(temperature) * np.random.default_rng(0).standard_normal((600, 1))
    noise = math.sqrt(2 * temperature)
    exact = [trace_of(gradients, weights_of(gradients, math.sqrt(h) / noise * r, h, noise)) for r in momenta]
    error = math.hypot(np.std(traces), np.std(exact)) / math.sqrt(600)
    assert abs(np.mean(traces) - np.mean(exact)) < 4 * error
    assert abs(np.mean(exact) / np.var(MU) - 1) > 0.2


def test_mean_trace_refuses_runs_that_do_not_hold_what_it_needs():
    target = theory.quadratic_target(MU)
    with pytest.raises(InputError, match="needs the positions themselves"):
        theory.mean_trace(as_if_collected(chains()), target)
    with pytest.raises(InputError, match="has no estimator"):
        theory.force_traces(object(), jnp.zeros(3), jax.random.key(0))
    with pytest.raises(InputError, match="carries a state"):
        theory.mean_trace(chains(), target, estimator=ewsg.Exponential(1, restart=False))


# ---------------------------------------------------------------- Theorem 3: the three terms


def planted(constants, noise: float):
    time, step_size = (a.ravel() for a in np.meshgrid(np.geomspace(1, 1e3, 8), [0.01, 0.03, 0.1, 0.3]))
    trace = np.full_like(time, 40.0)
    c1, c2, c3 = constants
    terms = np.stack([c1 / time, c2 * step_size * trace / time, c3 * step_size**2])
    mse = terms.sum(axis=0)
    error = noise * mse
    observed = mse + error * np.random.default_rng(9).standard_normal(len(mse))
    return (time, step_size, trace, observed, error), terms


def test_three_terms_are_recovered_from_planted_constants():
    constants = (2.0, 0.5, 0.03)
    observations, terms = planted(constants, noise=0.02)
    fit = theory.mse_terms(*observations)
    np.testing.assert_allclose(fit.constants, constants, rtol=0.05)
    assert all(low < c < high for low, c, high in zip(fit.low, constants, fit.high, strict=True))
    assert all(high - low < 0.3 * c for low, c, high in zip(fit.low, constants, fit.high, strict=True))
    np.testing.assert_allclose([fit.dynamics, fit.subsampling, fit.bias], terms, rtol=0.05)
    assert 0.4 < fit.misfit < 1.8
    time, step_size, trace, mse, error = observations
    bent = mse * np.where(step_size == 0.03, 1.3, 1.0)
    assert theory.mse_terms(time, step_size, trace, bent, error).misfit > 5


def test_a_missing_term_is_fitted_as_zero_and_full_gradients_leave_c2_open():
    observations, _ = planted((2.0, 0.0, 0.03), noise=0.02)
    fit = theory.mse_terms(*observations)
    assert fit.constants.subsampling < 0.01
    assert fit.low.subsampling == 0
    time, step_size, _, mse, error = observations
    without = theory.mse_terms(time, step_size, 0.0, mse, np.diag(error**2))
    assert math.isnan(without.constants.subsampling)
    assert without.constants.dynamics == pytest.approx(2.0, rel=0.05)


def test_terms_that_the_design_cannot_tell_apart_are_refused():
    (time, _, trace, mse, error), _ = planted((2.0, 0.5, 0.03), noise=0.02)
    with pytest.raises(InputError, match="vary both T and h"):
        theory.mse_terms(time, 0.1, trace, mse, error)


# ---------------------------------------------------------------- appendix: convergence of the mean


def test_quadratic_target_is_the_appendix_s():
    target = theory.quadratic_target(MU)
    np.testing.assert_allclose(theory.datum_gradients(target, jnp.array(0.7))[:, 0], 0.7 - MU, rtol=1e-5)
    assert target.full_force(jnp.array(0.7)) == pytest.approx(-0.7, abs=1e-5)
    with pytest.raises(InputError, match="must sum to zero"):
        theory.quadratic_target(MU + 1)
    with pytest.raises(InputError, match="vector of constants"):
        theory.quadratic_target(np.zeros((2, 2)))


@pytest.mark.parametrize("friction", [0.1, 1.0, 1.9])
@pytest.mark.parametrize("step_size", [0.01, 0.05])
def test_contraction_has_the_paper_s_closed_form(step_size, friction):
    radius = theory.contraction(step_size, friction)
    assert radius == pytest.approx(math.sqrt(1 - step_size * friction + step_size**2))
    assert radius < 1


def test_contraction_beyond_critical_friction_and_beyond_stability():
    slow = (3 - math.sqrt(5)) / 2  # the slower rate of λ² + 3λ + 1
    assert theory.contraction(0.1, 3.0) == pytest.approx(1 - 0.1 * slow)
    assert theory.contraction(1.0, 0.5) > 1


def test_mean_trajectory_is_a_matrix_power():
    path = theory.mean_trajectory([1.0, -0.5], 0.1, 0.8, 30)
    power = np.linalg.matrix_power(np.eye(2) + 0.1 * theory.mean_matrix(0.8), 30)
    assert path.shape == (31, 2)
    np.testing.assert_allclose(path[30], power @ [1.0, -0.5])
    with pytest.raises(InputError, match="pair of the means"):
        theory.mean_trajectory([1.0], 0.1, 0.8, 30)


def means_of(run: ewsg.Run) -> tuple[np.ndarray, np.ndarray]:
    """E θ at each kept draw, and its standard error."""
    theta = run.draws.astype(float)
    return theta.mean(axis=0), theta.std(axis=0) / math.sqrt(NUM_CHAINS)


def predicted_means(step_size: float, thin: int) -> np.ndarray:
    return theory.mean_trajectory([3.0, 0.0], step_size, 1.0, NUM_DRAWS * thin)[thin::thin, 0]


def test_mean_of_sghmc_follows_the_matrix_power():
    run = chains(step_size=0.1, thin=1)
    means, errors = means_of(run)
    assert np.all(np.abs(means - predicted_means(0.1, thin=1)) < 4.5 * errors + 1e-5)
    momentum = np.diff(run.draws.astype(float), axis=1) / 0.1  # r_k = (θ_{k+1} − θ_k)/h, exactly
    path = theory.mean_trajectory([3.0, 0.0], 0.1, 1.0, NUM_DRAWS)[1:-1, 1]
    assert np.all(np.abs(momentum.mean(axis=0) - path) < 4.5 * momentum.std(axis=0) / math.sqrt(NUM_CHAINS))


def test_mean_of_ewsg_stays_within_first_order_of_it():
    steps, thins, distances, relative = [0.1, 0.05, 0.025], [1, 2, 4], [], []
    for h, thin in zip(steps, thins, strict=True):
        means, errors = means_of(chains(ewsg.Exponential(1, exact=True), 2.0, h, thin))
        distances.append(np.max(np.abs(means - predicted_means(h, thin))))
        relative.append(errors.max() / distances[-1])
        assert relative[-1] < 1 / 6
    lever = np.log(steps) - np.mean(np.log(steps))
    error = np.linalg.norm(lever * relative) / np.sum(lever**2)
    assert theory.fit_slope(steps, distances).value == pytest.approx(1, abs=3 * error + 0.1)


def test_mean_of_ewsg_with_a_short_index_chain_stays_within_the_same_bound():
    h, thin = 0.05, 2
    means, errors = means_of(chains(ewsg.Exponential(1, chain_length=1), 2.0, h, thin))
    distance = np.max(np.abs(means - predicted_means(h, thin)))
    assert 6 * errors.max() < distance < 5 * h
