"""Paired selection on whole chains: the heat of subsampling is gone, and nothing is too cold."""

import jax.numpy as jnp
import numpy as np
import pytest
from chains import stationary

import ewsg
from ewsg.estimators.paired import Paired
from ewsg.integrators.baoab import BAOAB


@pytest.mark.parametrize("pairs", [8, 10])
def test_distinct_data_are_not_over_cooled(pairs):
    """20 data, 16 or all of them per step: position and momentum as the full gradient has them (weight: 0.9988)."""
    data = np.linspace(-1.5, 1.5, 20, dtype=np.float32)[:, None]
    line = ewsg.Target(lambda t, x: -0.5 * jnp.sum((t - x) ** 2), None, data)
    run = ewsg.sample(
        line,
        Paired(pairs, "sequential", replace=False),
        BAOAB(step_size=0.1, friction=3.0),
        init=jnp.zeros(1),
        num_chains=10_000,
        num_steps=100,
        discard=0,
        thin=100,
    )
    exact = stationary(BAOAB, 20.0, 0.1, 3.0, 1.0)
    momentum = np.asarray(run.checkpoint.carry.chains.state.phase.momentum, np.float64)
    tolerance = 4.5 * np.sqrt(2 / 10_000) + (0 if pairs == 10 else 0.02)
    assert run.draws[:, -1].var() == pytest.approx(exact[0, 0], rel=tolerance)
    assert momentum.var() == pytest.approx(exact[1, 1], rel=tolerance)


@pytest.mark.slow
def test_paired_removes_the_heat_of_subsampling(gaussian, centres):
    """Position variance on the paper's Gaussian, where SGHMC with the same 10 data a step is far too wide."""
    options = {"init": jnp.zeros(2), "num_chains": 10_000, "num_steps": 400, "discard": 0, "thin": 400}
    integrator = BAOAB(step_size=0.02, friction=10.0)
    hot = ewsg.sample(gaussian, ewsg.Uniform(10), integrator, **options).draws[:, -1].var(0)
    right = ewsg.sample(gaussian, Paired(5, "sequential"), integrator, **options).draws[:, -1].var(0)
    assert np.all(hot * 50 > 1.15)
    assert np.all(np.abs(right * 50 - 1) < 4.5 * np.sqrt(2 / 10_000) + 0.01)
