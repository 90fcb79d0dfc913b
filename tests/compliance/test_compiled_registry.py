"""Compiled = eager for every estimator and integrator of the package: a new one enters by existing."""

import components
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg

ESTIMATORS = {name: part for name, part in components.estimators(jnp.zeros(2)).items() if "(" not in name}
INTEGRATORS = {name: part for name, part in components.integrators().items() if "(" not in name}
UNDERDAMPED = ewsg.Underdamped(step_size=0.01, friction=10.0)


def check(sampler, compiled_and_eager):
    compiled, eager = compiled_and_eager(sampler)
    differs = np.any(
        [np.abs(one - other).reshape(len(one), -1).max(1) > 1e-3 for one, other in zip(compiled, eager, strict=True)],
        axis=0,
    )
    assert differs.mean() <= 5e-4  # a decision may fall on the other side of a rounding error


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators(gaussian, compiled_and_eager, name):
    check(ewsg.compose(gaussian, ESTIMATORS[name], UNDERDAMPED), compiled_and_eager)


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGRATORS)
def test_integrators(gaussian, compiled_and_eager, name):
    check(ewsg.compose(gaussian, ewsg.Uniform(2), INTEGRATORS[name]), compiled_and_eager)
