"""Targets on which corrected gradients still differ."""

import jax.numpy as jnp
import numpy as np
import pytest
from anchors import N, log_likelihood, log_prior

import ewsg


@pytest.fixture(scope="module")
def curved():
    """Six data, two leaves, nothing quadratic: a likelihood and a prior whose gradients bend everywhere."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(N, 3)).astype(np.float32), "y": rng.normal(size=N).astype(np.float32)}
    return ewsg.Target(log_likelihood, log_prior, data)


@pytest.fixture(scope="module")
def bent(centres):
    """The paper's centres under a heavy tail, so that corrections leave noise."""
    return ewsg.Target(lambda theta, c: -jnp.log1p(jnp.sum((theta - c) ** 2)), None, centres)
