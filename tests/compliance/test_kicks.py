"""Kicks tell the truth, integrators have their temperature, and wrappers hand on the whole kick."""

import dataclasses
import math
from typing import Any

import components
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract import COLD, ESTIMATORS, HERE, INTEGRATORS, METRIC, START, WRAPPED, H, N, potential, reference, refusal

import ewsg
from ewsg.interface import Cost, EstimateInfo, Kick


@pytest.fixture(autouse=True)
def _one_primitive_at_a_time():
    with jax.disable_jit(), jax.debug_key_reuse(False):
        yield


def steps_under(force: Any, integrator: str, temperature: float, steps: int) -> tuple[Any, list[Kick]]:
    """Where a few steps of size H lead under a constant force, and the kicks that asked for it."""
    move = dataclasses.replace(INTEGRATORS[integrator].in_sum_units(N), step_size=H, temperature=temperature)
    phase, kicks = move.init(jax.random.key(2), START), []

    def ask(key, kick, state):
        kicks.append(kick._replace(position=phase.position))
        return force + 0 * kick.position, state, EstimateInfo(None, Cost(0), {})

    for t in range(steps):
        phase, _, _ = move.step(jax.random.key(3 + t), phase, jnp.int32(t), ask, ())
        np.testing.assert_allclose(move.scales(jnp.int32(t)), (kicks[-1].step_size, kicks[-1].noise_scale), rtol=1e-6)
    return phase, kicks


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_an_integrator_has_its_temperature(integrator):
    """Without a force all that a step does to a chain of temperature T is √T times what it does at T = 1."""
    still = jnp.zeros(2)
    (one, _), (cold, kicks) = (steps_under(still, integrator, temperature, 1) for temperature in (1.0, COLD))
    assert np.abs(one.position - START).min() > 1e-4
    root = math.sqrt(COLD)
    np.testing.assert_allclose(cold.position - START, root * (one.position - START), rtol=1e-3)
    if one.momentum is not None:
        np.testing.assert_allclose(cold.momentum, root * one.momentum, rtol=1e-5)
    assert kicks[0].temperature == COLD


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_kick_describes_the_update_that_it_asks_a_force_for(integrator):
    """Δ = h·P·force − decay + noise_scale·√P·ξ; the second step, as a metric of past forces is right by then."""
    force = jnp.array([1.0, -2.0])
    phase, (_, kick) = steps_under(force, integrator, COLD, 2)
    assert (kick.temperature, int(kick.step)) == (COLD, 1)
    assert kick.step_size == pytest.approx(H, rel=2e-3)  # ABOBA's damping lies between two halves of the kick
    if kick.noise is None:  # drawn elsewhere in the step, or not added
        assert kick.momentum is not None or not INTEGRATORS[integrator].adds_noise
        return
    metric = 1.0 if kick.metric is None else kick.metric
    before, after = (kick.position, phase.position) if kick.momentum is None else (kick.momentum, phase.momentum)
    decay = 0.0 if kick.decay is None else kick.decay
    update = kick.step_size * metric * force - decay + kick.noise_scale * jnp.sqrt(metric) * kick.noise
    np.testing.assert_allclose(after - before, update, rtol=1e-4)


HEARD: list[Kick] = []


class Listener(ewsg.Uniform):
    """Notes the kicks that it is asked with."""

    def estimate(self, key, target, kick, state):
        HEARD.append(kick)
        return super().estimate(key, target, kick, state)


@pytest.mark.parametrize("estimator", sorted({name.partition("(")[0] for name in WRAPPED}))
def test_a_wrapper_hands_on_the_whole_kick(estimator):
    part, target, r = ESTIMATORS[estimator], potential(HERE), jnp.array([0.7, -1.1])
    settings = {setting: Listener(2) for setting in components.inner_settings(part)}
    prepared, _ = dataclasses.replace(part, **settings).prepare(target)
    kick = Kick(START + 0.1, r, 0.2 * r, 0.3 * r, H, 0.4, COLD, jnp.int32(1), METRIC, 0.6)
    HEARD.clear()
    prepared.estimate(jax.random.key(9), target, kick, prepared.init(jax.random.key(8), target, START))
    assert len(HEARD) == len(settings)
    for heard in HEARD:
        for field, given, found in zip(Kick._fields, kick, heard, strict=True):
            np.testing.assert_array_equal(found, given, err_msg=field)


@pytest.mark.parametrize("estimator", WRAPPED)
def test_the_factor_gets_through_a_wrapper(estimator):
    if refusal(estimator, "BAOAB"):
        return
    asked, target = reference(estimator, "BAOAB")[-1], potential(HERE)
    prepared = WRAPPED[estimator].prepare(target)[0]
    (none, _, _), (much, _, info) = (
        prepared.estimate(asked.key, target, asked.kick._replace(factor=factor), asked.state) for factor in (0.0, 1e3)
    )
    heeds = any(getattr(part, "factor", 1.0) is None for part in (prepared, prepared.inner))
    if info.drag is not None and not np.any(info.drag):
        return  # near the anchor all corrected forces are alike: no covariance, and no friction to scale
    assert (np.abs(much - none).max() > 0) == heeds
