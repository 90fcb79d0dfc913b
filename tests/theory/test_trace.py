"""Theorem 3: the trace along a run."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from theorems import MU, as_if_collected, chains

import ewsg
from ewsg import theory
from ewsg.errors import InputError
from ewsg.theory.local import trace_of, weights_of


def test_mean_trace_of_a_run(monkeypatch):
    monkeypatch.setattr("ewsg.theory.trace._BLOCK_ENTRIES", 256 * 8)  # two blocks
    trace = theory.mean_trace(chains(), theory.quadratic_target(MU))
    assert abs(trace.value - np.var(MU)) < 4 * trace.standard_error
    assert trace.standard_error < 0.1 * trace.value


@pytest.mark.parametrize(
    ("estimator", "factor"),
    [(ewsg.Uniform(4, replace=False), 8 / 11 / 4), (ewsg.Full(), 0.0)],
)
def test_mean_trace_of_another_estimator_at_the_draws_of_a_run(estimator, factor):
    trace = theory.mean_trace(chains(), theory.quadratic_target(MU), estimator=estimator)
    assert abs(trace.value - factor * np.var(MU)) < 4 * trace.standard_error + 1e-10


def test_force_traces_of_ewsg_are_those_of_its_weights_over_thermal_momenta():
    target, h, temperature = theory.quadratic_target(MU), 0.4, 0.3
    integrator = ewsg.Underdamped(step_size=h, friction=1.0, temperature=temperature, momentum="zero")
    sampler = ewsg.compose(target, ewsg.Exponential(1, exact=True), integrator)
    traces = theory.force_traces(sampler, jnp.full(600, -1.0), jax.random.key(0))
    gradients = theory.datum_gradients(target, jnp.array(-1.0))
    momenta = math.sqrt(temperature) * np.random.default_rng(0).standard_normal((600, 1))
    noise = math.sqrt(2 * temperature)
    exact = [trace_of(gradients, weights_of(gradients, math.sqrt(h) / noise * r, h, noise)) for r in momenta]
    error = math.hypot(np.std(traces), np.std(exact)) / math.sqrt(600)
    assert abs(np.mean(traces) - np.mean(exact)) < 4 * error
    assert abs(np.mean(exact) / np.var(MU) - 1) > 0.2


def test_mean_trace_refuses_runs_that_do_not_hold_what_it_needs():
    target = theory.quadratic_target(MU)
    with pytest.raises(InputError, match="needs the positions themselves"):
        theory.mean_trace(as_if_collected(chains()), target)
    with pytest.raises(InputError, match="has no estimator"):
        theory.force_traces(object(), jnp.zeros(3), jax.random.key(0))
    with pytest.raises(InputError, match="carries a state"):
        theory.mean_trace(chains(), target, estimator=ewsg.Exponential(1, restart=False))
