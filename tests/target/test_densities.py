"""Densities at stacked positions: one function for the start of a run, the fingerprint and the full-data kernels."""

import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.target.density import densities, spaced
from ewsg.target.fingerprint import fingerprint, probed_rows

X = np.random.default_rng(0).normal(size=50).astype(np.float32)
POSITIONS = jnp.array([0.0, 0.5, -1.0])


@pytest.fixture(scope="module")
def target():
    return ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, lambda mu: -0.5 * mu**2, X)


def test_values_by_hand(target):
    rows = np.array([3, 0, 49], np.int32)
    prior, values = densities(target, POSITIONS, rows)
    np.testing.assert_allclose(prior, -0.5 * np.square(POSITIONS), rtol=1e-6)
    np.testing.assert_allclose(values, -0.5 * np.square(X[rows] - np.asarray(POSITIONS)[:, None]), rtol=1e-5)
    np.testing.assert_allclose(densities(target, POSITIONS, rows, summed=True)[1], np.sum(values, 1), rtol=1e-6)


def test_the_sum_over_all_data_is_the_log_density(target):
    prior, likelihood = densities(target, POSITIONS, np.arange(50, dtype=np.int32), summed=True)
    np.testing.assert_allclose(prior + likelihood, [float(target.log_density(p)) for p in POSITIONS], rtol=1e-5)


def test_a_fingerprint_takes_values_that_are_known(target):
    """Those at the start of a run, when its rows include the probed ones: no second program is compiled."""
    prior, values = densities(target, POSITIONS[:1], np.arange(50, dtype=np.int32))
    known = fingerprint(target, POSITIONS[0], (prior[0], values[0, probed_rows(target)]))
    alone = fingerprint(target, POSITIONS[0])
    assert known["data"] == alone["data"]
    np.testing.assert_allclose(known["values"], alone["values"], rtol=1e-6)


def test_spaced_rows():
    assert spaced(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert spaced(101, 3).tolist() == [0, 50, 100]
