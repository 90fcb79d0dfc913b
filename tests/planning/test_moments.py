"""Coordinates: from a curvature, and from the draws of a pilot that is short and too hot."""

import numpy as np
import pytest

from ewsg.planning.moments import root_of_inverse, shrunk_moments


def pilot(seed, cov, chains=32, draws=25, temperature=1.0):
    """Independent draws, of which a pilot has as many as it has correlated ones of that effective number."""
    rng = np.random.default_rng(seed)
    dimension = len(cov)
    noise = rng.normal(size=(chains, draws, dimension)) @ np.linalg.cholesky(cov).T
    return 0.3 + np.sqrt(temperature) * noise


def spread(cov, estimate):
    """Smallest and largest variance of N(0, cov) in coordinates that whiten the estimate."""
    inverse = np.linalg.inv(np.linalg.cholesky(estimate))
    return np.linalg.eigvalsh(inverse @ cov @ inverse.T)[[0, -1]]


def test_the_root_of_an_inverse():
    factor = np.random.default_rng(0).normal(size=(4, 4))
    precision = factor @ factor.T + np.diag([1e-6, 1.0, 1e6, 1.0])
    root = root_of_inverse(precision)
    np.testing.assert_allclose(root.T @ precision @ root, np.eye(4), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_not_taken_for_structure(seed):
    """Of N(0, I), the covariance of 800 draws in 30 dimensions has eigenvalues from 0.65 to 1.4: I is better."""
    mean, cov = shrunk_moments(pilot(seed, np.eye(30)), np.ones(30))
    np.testing.assert_allclose(mean, 0.3, atol=4 / np.sqrt(800))
    low, high = spread(np.eye(30), cov)
    assert low > 0.8
    assert high < 1.25


@pytest.mark.parametrize("seed", range(3))
def test_structure_is_kept(seed):
    truth = np.diag([9.0, 0.1, 1.0]) + 0.2 * np.ones((3, 3))
    _, cov = shrunk_moments(pilot(seed, truth), np.ones(3))
    low, high = spread(truth, cov)
    assert low > 0.75
    assert high < 1.35


def test_heat_is_taken_off_coordinate_by_coordinate():
    """Draws at temperature 2 have the covariance of the posterior times 2; colder ones than 1 are left as they are."""
    truth = np.diag([4.0, 1.0])
    hot = shrunk_moments(pilot(0, truth, draws=400, temperature=2.0), np.array([2.0, 2.0]))[1]
    np.testing.assert_allclose(hot, truth, atol=0.25)
    cold = shrunk_moments(pilot(0, truth, draws=400), np.array([0.5, 0.9]))[1]
    np.testing.assert_allclose(cold, truth, atol=0.25)


def test_the_weight_is_that_of_least_square_error():
    """w = 1 − noise/‖S − I‖², by brute force over 200 pilots: no fixed weight does better by more than a little."""
    truth = np.diag(np.linspace(0.7, 1.5, 8))
    samples = [pilot(seed, truth, chains=16, draws=8) for seed in range(200)]
    own = np.mean([np.sum((shrunk_moments(z, np.ones(8))[1] - truth) ** 2) for z in samples])

    def fixed(weight):
        found = ((z - z.mean((0, 1))).reshape(-1, 8) for z in samples)
        covs = (weight * x.T @ x / len(x) + (1 - weight) * np.eye(8) for x in found)
        return np.mean([np.sum((cov - truth) ** 2) for cov in covs])

    assert own < 1.15 * min(fixed(weight) for weight in np.linspace(0, 1, 21))
    assert own < 0.8 * fixed(1.0)


def test_one_coordinate_that_is_far_off_is_seen():
    """In 60 dimensions nothing but chance speaks for ‖S − I‖; a variance of 0.2 is clear all the same."""
    truth = np.eye(60)
    truth[7, 7] = 0.2
    _, cov = shrunk_moments(pilot(0, truth, draws=12), np.ones(60))
    assert cov[7, 7] < 0.3
    assert np.abs(np.delete(np.diag(cov), 7) - 1).max() < 0.35
