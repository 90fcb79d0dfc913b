"""The gradients of single data."""

import jax.numpy as jnp
import numpy as np
from theorems import gaussian_gradients, linear_target, origin

import ewsg
from ewsg import theory


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
