"""The loop: what is no divergence, what diagnostics cost, how much is compiled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from short_runs import METHOD, sample

import ewsg


def far_likelihood(theta, datum):
    return -0.5 * jnp.sum(((theta - datum) / 100.0) ** 2)


@pytest.mark.parametrize("integrator", [ewsg.BAOAB(20.0, 0.02), ewsg.Overdamped(100.0)], ids=["BAOAB", "Overdamped"])
def test_a_posterior_far_from_the_origin_is_no_divergence(integrator):
    """Centre 3·10⁶, posterior sd 100/√10, from a start at 0: the chain is hot on its way, and in order there."""
    target = ewsg.Target(far_likelihood, None, np.full((10, 2), 3e6, np.float32))
    run = ewsg.sample(target, ewsg.Full(), integrator, init=jnp.zeros(2), num_chains=50, num_steps=2000, discard=1000)
    assert run.ok.all()
    assert run.draws.mean() == pytest.approx(3e6, abs=8)
    assert run.draws.std() == pytest.approx(100 / np.sqrt(10), rel=0.1)


@pytest.mark.parametrize("discard", [0, 10])
def test_a_chain_that_is_recorded_on_its_way_is_no_divergence(discard):
    """5,000 sd from the start, it is 10⁷ times too hot at first."""
    target = ewsg.Target(lambda theta, x: -0.05 * jnp.sum((theta - x) ** 2), None, np.full((10, 2), 5e3, np.float32))
    run = ewsg.sample(
        target, ewsg.Full(), ewsg.BAOAB(0.2, 1.0), init=jnp.zeros(2), num_chains=4, num_steps=200, discard=discard
    )
    assert run.stats["kinetic_temperature"].max() > 1e5
    assert run.ok.all()
    assert run.draws[:, -1].mean() == pytest.approx(5e3, abs=3)


def test_what_diagnostics_evaluate_is_counted(gaussian):
    """32 directional derivatives per probe: one for the first draw, one for every tenth step after it."""
    assert sample(gaussian, num_steps=50, discard=0, thin=1).cost.diagnostic_directional == 2 * 5 * 32
    assert sample(gaussian, num_steps=51, discard=0, thin=1).cost.diagnostic_directional == 2 * 6 * 32
    assert sample(gaussian, num_steps=60, discard=0, thin=20).cost.diagnostic_directional == 2 * 3 * 32
    full = ewsg.sample(gaussian, ewsg.Full(), METHOD[1], init=jnp.zeros(2), num_chains=2, num_steps=5)
    assert full.cost.diagnostic_directional == full.cost.datum_directional == 0


def test_a_small_run_compiles_few_programs(centres):
    compiled = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    jax.clear_caches()
    target = ewsg.Target(lambda t, c: -0.3 * jnp.sum((t - c) ** 2), None, centres)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        sample(target, init=np.zeros(2, np.float32))
    finally:
        jax.monitoring.clear_event_listeners()
    assert 0 < len(compiled) <= 6
