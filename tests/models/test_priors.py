"""Priors of the regressions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from regressions import CASES, assert_close, prior_force

from ewsg import models


def test_gaussian_prior_is_the_normal_density_up_to_its_constant(tolerance):
    params = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}
    prior = models.GaussianPrior(4.0)
    density = scipy.stats.norm(0, 0.5).logpdf(np.array([1.0, -2.0, 0.5, 0.0]))
    assert_close(prior(params), density[:3].sum() - 3 * density[3], tolerance)
    force = jax.jit(jax.grad(prior))(params)
    assert_close(force, {"a": np.array([-4.0, 8.0]), "b": np.array(-2.0)}, tolerance)


def test_the_prior_is_on_the_coefficients_alone(case):
    params = case.params()
    assert_close(jax.jit(jax.grad(case.target().log_prior))(params), prior_force(params), 1e-6)


def test_scale_precision_and_default_describe_the_prior():
    x, y = CASES["logistic"].data(5)
    assert models.logistic(x, y, prior_scale=0.5).log_prior.precision == pytest.approx(4.0)
    assert models.logistic(x, y, prior_precision=10).log_prior.precision == 10
    assert models.logistic(x, y).log_prior.precision == pytest.approx(1 / 2.5**2)
    assert models.flat(jnp.ones(2)) == models.logistic(x, y, prior_precision=0).log_prior(jnp.ones(2)) == 0


def test_the_prior_is_a_leaf_so_a_sweep_is_a_vmap():
    x, y = CASES["logistic"].data(20)
    theta = CASES["logistic"].params()
    precisions = jnp.array([0.1, 1.0, 10.0])
    swept = jax.vmap(lambda p: models.logistic(x, y, prior_precision=p).prior_force(theta))(precisions)
    assert_close(swept, -np.outer(precisions, theta), 1e-6)
