"""Strict JAX for every test, the data beside the checkout, and the problems that many tests share."""

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if _SHARED.is_dir():
    os.environ.setdefault("EWSG_DATA", str(_SHARED))

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)


def gaussian_log_likelihood(theta, centre):
    return -0.5 * jnp.sum((theta - centre) ** 2)


@pytest.fixture(scope="session")
def centres() -> np.ndarray:
    """The paper's 50 centres in the plane."""
    return np.asarray(jax.random.normal(jax.random.key(42), (50, 2)))


@pytest.fixture(scope="session")
def gaussian(centres) -> ewsg.Target:
    """The paper's 2-D Gaussian: V(θ) = Σ ½‖θ − c_i‖²."""
    return ewsg.Target(gaussian_log_likelihood, None, centres)


@pytest.fixture(scope="module", autouse=True)
def _forget_compiled_programs():
    """Compiled programs of a finished test module are of no further use: without this a worker grows to 6 GiB."""
    yield
    jax.clear_caches()
