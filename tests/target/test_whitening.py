"""Whitened coordinates of a Gaussian posterior: standard normal, and mapped back to where they came from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.target.whitening import whitened

PRECISION = np.array([[4.0, 1.5], [1.5, 1.0]], np.float32)
CENTRES = np.random.default_rng(0).normal(size=(10, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def found():
    def log_likelihood(params, centre):
        apart = jnp.stack([params["a"], params["b"]]) - centre
        return -0.5 * apart @ jnp.asarray(PRECISION) @ apart

    target = ewsg.Target(log_likelihood, lambda params: -0.5 * params["a"] ** 2, CENTRES)
    return target, *whitened(target, {"a": jnp.array(0.0), "b": jnp.array(0.0)})


def test_the_density_is_standard_normal(found):
    """V(z) − V(0) = ½‖z‖², exactly, as the posterior is Gaussian."""
    _, white, _ = found
    places = jnp.array([[1.0, 0.0], [0.0, 1.0], [-2.0, 1.5]])
    drop = [float(white.log_density(z) - white.log_density(jnp.zeros(2))) for z in places]
    np.testing.assert_allclose(drop, -0.5 * np.sum(np.square(places), 1), rtol=2e-3)


def test_places_are_mapped_to_mode_and_covariance(found):
    target, white, place = found
    precision = 10 * PRECISION + np.diag([1.0, 0.0])
    mode = np.linalg.solve(precision, PRECISION @ CENTRES.sum(0))
    at = place(jnp.zeros(2))
    np.testing.assert_allclose([at["a"], at["b"]], mode, atol=1e-3)
    root = np.stack([np.asarray(jax.tree.leaves(jax.tree.map(jnp.subtract, place(e), at))) for e in jnp.eye(2)], axis=1)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(precision), rtol=1e-3)
    z = jnp.array([0.3, -0.7])
    assert float(white.log_density(z)) == pytest.approx(float(target.log_density(place(z))), rel=1e-5)
