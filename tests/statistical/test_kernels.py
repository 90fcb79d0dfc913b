"""Random-walk Metropolis and NUTS have the law of a skewed posterior."""

import jax.numpy as jnp
import numpy as np
import pytest
from skewed import START, assert_skewed_law, last_draws, quadrature

from ewsg.kernels import NUTS, RandomWalk, adapt_nuts


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("step_size", [0.8, jnp.array([1.2, 0.4])], ids=["isotropic", "by parameter"])
def test_random_walk_has_the_skewed_law(skewed, step_size, temperature):
    scale = np.sqrt(temperature)
    draws, run = last_draws(skewed, RandomWalk(scale * step_size, temperature=temperature), 150)
    assert_skewed_law(draws, temperature)
    assert 0.2 < run.stats["acceptance"].mean() < 0.6
    assert run.temperature == temperature


@pytest.mark.parametrize(
    ("mass", "temperature"),
    [(None, 1.0), (None, 0.3), (jnp.array([2.0, 0.2]), 0.3), (jnp.array([[2.0, 0.1], [0.1, 0.2]]), 0.3)],
    ids=["1.0", "0.3", "diagonal", "dense"],
)
def test_nuts_has_the_skewed_law(skewed, mass, temperature):
    step_size = 0.4 * np.sqrt(temperature) if mass is None else 0.6 * np.sqrt(temperature)
    draws, run = last_draws(skewed, NUTS(step_size, mass, temperature=temperature), 15, num_chains=10_000)
    assert_skewed_law(draws, temperature)
    assert run.stats["divergent"].mean() < 0.01
    assert run.stats["acceptance"].mean() > 0.6


def test_adapted_nuts(skewed):
    temperature = 0.3
    kernel = adapt_nuts(skewed, START, temperature=temperature, num_warmup=500)
    assert kernel == adapt_nuts(skewed, START, temperature=temperature, num_warmup=500)
    _, sd, _, _ = quadrature(temperature)
    np.testing.assert_allclose(np.sqrt(kernel.inverse_mass_matrix), sd, rtol=0.25)
    draws, run = last_draws(skewed, kernel, 15, num_chains=8_000)
    assert_skewed_law(draws, temperature)
    assert 0.7 < run.stats["acceptance"].mean() < 0.97
    assert kernel.warmup_gradients > 5 * 4 * 500
    in_chains = run.cost.datum_gradients - kernel.warmup_gradients
    assert in_chains == 5 * round(8_000 * (1 + 15 * run.stats["leapfrogs"].mean(dtype=np.float64)))
