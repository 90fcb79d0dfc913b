"""What is said of a chain that failed: right about the friction that acts, and never an error of its own."""

import jax.numpy as jnp
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.kernels import RandomWalk
from ewsg.result.failure import likely_cause

ORIGIN = jnp.zeros(2)


def cause(target, estimator, integrator=None, position=ORIGIN) -> str:
    return likely_cause(ewsg.compose(target, estimator, integrator), position)


def test_a_step_beyond_the_limit_is_measured(gaussian):
    said = cause(gaussian, ewsg.Uniform(2), ewsg.Underdamped(step_size=0.5, friction=5.0))  # λ_max = 50
    assert "5 times the stability limit" in said
    assert "λ_max is about 50" in said


def test_a_step_within_the_limit_names_the_rule_that_stopped_the_chain(gaussian):
    said = cause(gaussian, ewsg.Uniform(2), ewsg.Underdamped(step_size=0.01, friction=5.0), ORIGIN + 1e6)
    assert "within the stability limit" in said
    assert "divergence_limit=" in said
    assert "steeper" not in said


@pytest.mark.parametrize("wrap", [lambda inner: inner, lambda inner: ewsg.SVRG(inner, period=10)])
def test_covariance_friction_is_not_judged_by_the_friction_of_the_integrator(gaussian, wrap):
    euler = ewsg.Underdamped(step_size=0.5, friction=5.0)
    said = cause(gaussian, wrap(ewsg.CovarianceFriction(ewsg.Uniform(2))), euler)
    assert "times the stability limit" not in said
    assert "bound=" in said
    said = cause(gaussian, wrap(ewsg.CovarianceFriction(ewsg.Uniform(2), bound=1.0)), euler)
    assert "divergence_limit=" in said
    assert "bound=" not in said


def test_methods_without_a_limit(gaussian):
    assert "divergence_limit=" in cause(gaussian, RandomWalk(step_size=0.1))


def test_an_explanation_never_raises(gaussian):
    integrator = ewsg.Underdamped(step_size=0.01, friction=5.0)
    assert "divergence_limit=" in cause(gaussian, ewsg.Uniform(2), integrator, jnp.zeros((3, 7)))
    assert "divergence_limit=" in cause(gaussian, ewsg.Uniform(2), integrator, "nowhere")
    raising = ewsg.Target(lambda theta, x: 1 / 0, None, jnp.ones((3, 2)))
    assert "divergence_limit=" in cause(raising, ewsg.Uniform(2), integrator)
    inverted = ewsg.Target(lambda theta, x: -gaussian_log_likelihood(theta, x), None, jnp.ones((3, 2)))
    assert "within the stability limit" not in cause(inverted, ewsg.Uniform(2), integrator)
