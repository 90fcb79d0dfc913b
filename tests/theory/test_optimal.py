"""Theorem 1: weights of the smallest trace."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from theorems import gaussian_gradients, linear_target, origin

import ewsg
from ewsg import theory
from ewsg.errors import InputError


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
