"""Stratified minibatches: their law by enumeration, the stationary law they lead to, and how clusters are found."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from chains import assert_covariance, last_draws
from gaussian import gaussian_log_likelihood
from index_chain import assert_law

import ewsg
from ewsg.errors import InputError
from ewsg.estimators.clustered import Clustered
from ewsg.estimators.svrg import SVRG
from ewsg.interface import Kick

UNDERDAMPED = ewsg.Underdamped(step_size=0.02, friction=4.0)
LABELS = np.array([7, -2, 7, 100, -2, 7])
STRATA = [[1, 4], [0, 2, 5], [3]]
POSITION = {"m": jnp.array([0.2, -0.4])}


@pytest.fixture(scope="module")
def small():
    """Six data, nothing quadratic, with a prior that must be counted once."""
    data = np.array([[0.1, 0.0], [0.4, -0.3], [-0.2, 0.5], [1.5, 0.2], [-0.1, -0.9], [0.3, 2.0]], np.float32)
    return ewsg.Target(lambda p, x: -jnp.sum(jnp.cosh(p["m"] - x)), lambda p: -0.6 * jnp.sum(p["m"] ** 4), data)


def gradients(target):
    """∇ℓ_i and ∇ log π at POSITION, written out in float64."""
    theta = np.asarray(POSITION["m"], float)
    return -np.sinh(theta - np.asarray(target.data.arrays, float)), -2.4 * theta**3


def the_kick(position=POSITION):
    return Kick(position, None, None, None, 0.01, 0.1, 1.0)


def prepared(estimator, target):
    return estimator.prepare(target)[0]


def test_law_and_force_by_enumeration(small):
    """Every choice of m = 2 data of each stratum is equally likely, and the mean of their forces is the full force."""
    estimator, draws = prepared(Clustered(draws_per_cluster=2, labels=LABELS), small), 60_000
    each, prior = gradients(small)

    def force(choice):
        return sum(len(s) / 2 * each[list(pair)].sum(0) for s, pair in zip(STRATA, choice, strict=True)) + prior

    choices = list(itertools.product(*(itertools.product(stratum, repeat=2) for stratum in STRATA)))
    forces = np.array([force(choice) for choice in choices])
    np.testing.assert_allclose(forces.mean(0), each.sum(0) + prior, rtol=1e-12)
    estimate = jax.jit(jax.vmap(lambda key: estimator.estimate(key, small, the_kick(), ())))
    found, _, info = estimate(jax.random.split(jax.random.key(0), draws))
    lookup = {tuple(itertools.chain(*choice)): i for i, choice in enumerate(choices)}
    chosen = np.array([lookup[tuple(row)] for row in np.asarray(info.indices).tolist()])
    assert_law(np.bincount(chosen, minlength=len(choices)) / draws, np.full(len(choices), 1 / len(choices)), draws)
    np.testing.assert_allclose(found["m"], forces[chosen], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(small.full_force(POSITION)["m"], forces.mean(0), rtol=1e-5)


def test_one_cluster_is_uniform_draw_for_draw(gaussian):
    options = {"init": jnp.zeros(2), "num_chains": 3, "num_steps": 60, "discard": 0, "thin": 1}
    uniform = ewsg.sample(gaussian, ewsg.Uniform(7), UNDERDAMPED, **options)
    for estimator in (Clustered(1, 7), Clustered(draws_per_cluster=7, labels=np.full(50, 3))):
        found = ewsg.sample(gaussian, estimator, UNDERDAMPED, **options)
        np.testing.assert_array_equal(found.draws, uniform.draws)
        assert found.cost.datum_gradients == uniform.cost.datum_gradients


def test_one_datum_a_cluster_is_the_full_gradient(small):
    force, _, info = prepared(Clustered(labels=np.arange(6)[::-1]), small).estimate(
        jax.random.key(0), small, the_kick(), ()
    )
    np.testing.assert_allclose(force["m"], small.full_force(POSITION)["m"], rtol=1e-5)
    np.testing.assert_array_equal(info.indices, np.arange(6)[::-1])


@pytest.fixture(scope="module")
def grouped():
    """Three groups of unequal size and spread, far apart."""
    rng = np.random.default_rng(2)
    sizes, places, spreads = (4, 10, 16), ([4.0, 0.0], [-3.0, 2.0], [0.0, -4.0]), (1.0, 0.3, 0.6)
    labels = np.repeat([0, 1, 2], sizes)
    rows = np.array(places)[labels] + np.array(spreads)[labels][:, None] * rng.normal(size=(30, 2)) * [1.0, 0.5]
    mixed = rng.permutation(30)
    centres = rows[mixed].astype(np.float32)
    return ewsg.Target(gaussian_log_likelihood, None, centres), centres.astype(float), labels[mixed]


def within_covariance(centres, labels, draws):
    """Σ_k (n_k²/m) Cov_k."""
    groups = [centres[labels == label] for label in np.unique(labels)]
    return sum(len(g) ** 2 / draws * np.cov(g.T, bias=True) for g in groups)


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("kind", ["underdamped", "overdamped"])
def test_stationary_law(grouped, kind, temperature):
    """S = A S Aᵀ + Q, where only the covariance within clusters is added; between them it would be 20 times that."""
    target, centres, labels = grouped
    n, eye, noise = len(centres), np.eye(2), within_covariance(centres, labels, 2)
    assert np.trace(np.cov(centres.T, bias=True)) * n**2 / 6 > 10 * np.trace(noise)
    if kind == "underdamped":
        h, gamma = 0.02, 4.0
        a = np.block([[eye, h * eye], [-h * n * eye, (1 - h * gamma) * eye]])
        q = scipy.linalg.block_diag(0 * eye, 2 * gamma * temperature * h * eye + h**2 * noise)
        exact = scipy.linalg.solve_discrete_lyapunov(a, q)[:2, :2]
        integrator, steps = ewsg.Underdamped(step_size=h, friction=gamma, temperature=temperature), 300
    else:
        h, steps = 0.01, 60
        exact = (2 * h * temperature * eye + h**2 * noise) / (1 - (1 - h * n) ** 2)
        integrator = ewsg.Overdamped(step_size=h, temperature=temperature)
    draws, _ = last_draws(target, Clustered(3, draws_per_cluster=2), integrator, steps)
    assert_covariance(draws, exact)
    assert np.all(np.abs(draws.mean(0) - centres.mean(0)) < 4.5 * np.sqrt(np.diag(exact) / len(draws)))


def test_noise_trace_is_that_within_clusters(grouped):
    target, centres, labels = grouped
    for estimator, labels_used, draws in ((Clustered(3, 2), labels, 2), (Clustered(1, 3), 0 * labels, 3)):
        exact = np.trace(within_covariance(centres, labels_used, draws))
        trace = prepared(estimator, target).noise_trace
        keys = jax.random.split(jax.random.key(4), 20_000)
        traces = np.asarray(jax.jit(jax.vmap(lambda key, f=trace: f(key, target, jnp.ones(2), ())))(keys))
        assert abs(traces.mean() - exact) < 4.5 * traces.std() / np.sqrt(20_000)
        assert exact <= np.trace(np.cov(centres.T, bias=True)) * 900 * estimator.noise_factor(30) * (1 + 1e-9)


def test_k_means_finds_the_groups(grouped):
    target, centres, labels = grouped

    def groups(estimator, target):
        order, first, sizes, _ = (np.asarray(part) for part in prepared(estimator, target).strata)
        assert sorted(order) == list(range(30))
        return {frozenset(order[f : f + s].tolist()) for f, s in zip(first, sizes, strict=True)}

    truth = {frozenset(np.flatnonzero(labels == k).tolist()) for k in range(3)}
    assert groups(Clustered(3), target) == truth
    assert groups(Clustered(3, seed=5), target) == truth
    assert groups(Clustered(labels=labels), target) == truth
    data = {"half": centres[:, :1].astype(np.float32), "other": centres[:, 1].astype(np.float32), "id": np.arange(30)}
    parts = ewsg.Target(lambda p, d: -jnp.sum((p - d["half"]) ** 2) - jnp.sum((p - d["other"]) ** 2), None, data)
    assert groups(Clustered(3), parts) == truth  # the floating-point arrays, side by side; not the numbers of the rows
    halves = {frozenset(range(15)), frozenset(range(15, 30))}
    assert groups(Clustered(2, features=np.arange(30) > 14), target) == halves


def test_empty_clusters_are_dropped(gaussian):
    """Four distinct rows in seven clusters: four strata, and the cost is theirs."""
    data = np.repeat(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0]], np.float32), 5, axis=0)
    target = ewsg.Target(gaussian_log_likelihood, None, data)
    found = ewsg.sample(target, Clustered(7, 2), UNDERDAMPED, init=jnp.zeros(2), num_chains=2, data_passes=4)
    assert found.cost.datum_gradients == 2 * 10 * 8
    assert found.settings["num_steps"] == 10
    assert np.abs(found.stats["noise_ratio"]).max() < 1e-10


@pytest.mark.parametrize(("clusters", "draws"), [(5, 1), (3, 4)])
def test_cost_is_counted_by_hand(gaussian, clusters, draws):
    run = ewsg.sample(gaussian, Clustered(clusters, draws), UNDERDAMPED, init=jnp.zeros(2), num_chains=3, data_passes=3)
    steps = 150 // (clusters * draws)
    assert run.settings["num_steps"] == steps
    assert run.cost.datum_gradients == 3 * steps * clusters * draws
    assert Clustered(labels=[0, 1, 1, 9], draws_per_cluster=2).cost(4) == (6, 0)


@pytest.mark.parametrize(
    "estimator", [Clustered(3, features=np.sin(np.arange(50.0))), SVRG(Clustered(4, 2), 7)], ids=["features", "svrg"]
)
def test_resume_equals_continuous(gaussian, tmp_path, estimator):
    options = {"init": jnp.ones(2), "num_chains": 3, "discard": 4, "thin": 3, "seed": 5}
    whole = ewsg.sample(gaussian, estimator, UNDERDAMPED, num_steps=40, **options)
    ewsg.sample(gaussian, estimator, UNDERDAMPED, num_steps=17, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=23)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    for stat, values in whole.stats.items():
        np.testing.assert_array_equal(resumed.stats[stat], values)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Clustered(51), "num_clusters 51 is larger than the number of data 50"),
        (lambda: Clustered(0), "num_clusters must be a whole number of at least 1"),
        (lambda: Clustered(draws_per_cluster=0), "draws_per_cluster must be a whole number of at least 1"),
        (lambda: Clustered(seed=-1), "seed must be a whole number of at least 0"),
        (lambda: Clustered(labels=np.zeros(49, int)), "labels has shape (49,) for 50 data"),
        (lambda: Clustered(labels=np.zeros((50, 2), int)), "labels has shape (50, 2)"),
        (lambda: Clustered(labels=np.zeros(50)), "labels must be whole numbers"),
        (lambda: Clustered(labels=["a"] * 50), "labels must be whole numbers"),
        (lambda: Clustered(features=np.zeros((3, 50))), "features has shape (3, 50) for 50 data"),
        (lambda: Clustered(features=np.full(50, np.nan)), "features must be finite numbers"),
        (lambda: Clustered(features=["a"] * 50), "features must be finite numbers"),
        (lambda: Clustered(labels=np.zeros(50, int), features=np.zeros(50)), "labels= or features=, not both"),
        (lambda: Clustered(clusters=3), "did you mean 'num_clusters'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(gaussian, build, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ewsg.sample(gaussian, build(), UNDERDAMPED, init=jnp.zeros(2), num_steps=3)


def test_data_without_numbers_to_cluster_by(gaussian):
    target = ewsg.Target(lambda p, i: -0.5 * jnp.sum((p - i.astype(p.dtype)) ** 2), None, np.arange(20))
    with pytest.raises(InputError, match="no floating-point array"):
        ewsg.compose(target, Clustered(3), UNDERDAMPED)
    with pytest.raises(InputError, match="not prepared"):
        Clustered(3).estimate(jax.random.key(0), gaussian, the_kick(jnp.zeros(2)), ())
