"""The wall: what is refused, and that nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg

TARGET = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, np.zeros((1, 3), np.float32))


def steps(integrator, state, count, target=TARGET):
    sampler = ewsg.compose(target, ewsg.Full(), integrator)
    key = jax.random.key(0)
    if state is None:
        state = sampler.init(key, jnp.array([0.5, 0.0, 0.0]))
    states, info = [state], None
    for k in range(count):
        state, info = sampler.step(jax.random.fold_in(key, k), state)
        states.append(state)
    return states, info


def test_a_far_wall_changes_nothing():
    walled, _ = steps(ewsg.Walled(0.3, 1.0, radius=1e6), None, 5)
    free, _ = steps(ewsg.BAOAB(0.3, 1.0), None, 5)
    np.testing.assert_array_equal(walled[-1].phase.position, free[-1].phase.position)
    np.testing.assert_array_equal(walled[-1].phase.momentum, free[-1].phase.momentum)


def test_a_step_beyond_is_refused_and_the_momentum_turned():
    start = steps(ewsg.BAOAB(0.3, 1.0), None, 0)[0][0]
    phase = start.phase._replace(position=jnp.array([0.9, 0.0, 0.0]), momentum=jnp.array([5.0, 1.0, 0.0]))
    (_, end), info = steps(ewsg.Walled(0.3, 1.0, radius=1.0), start._replace(phase=phase), 1)
    np.testing.assert_array_equal(end.phase.position, phase.position)
    np.testing.assert_array_equal(end.phase.momentum, -phase.momentum)
    assert float(info.estimate.stats["refused"]) == 1.0


def test_a_force_that_is_not_finite_is_refused():
    target = ewsg.Target(lambda mu, x: jnp.sum(jnp.sqrt(mu - x)), None, np.zeros((1, 3), np.float32))
    start = steps(ewsg.BAOAB(0.3, 1.0), None, 0, target)[0][0]
    phase = start.phase._replace(position=jnp.array([-1.0, 1.0, 1.0]))
    (_, end), info = steps(ewsg.Walled(0.3, 1.0), start._replace(phase=phase), 1, target)
    np.testing.assert_array_equal(end.phase.position, phase.position)
    assert float(info.estimate.stats["refused"]) == 1.0
    np.testing.assert_array_equal(info.force, 0.0)


def test_the_truncated_law():
    """N(0, 1) within |θ| ≤ 1: the share of |θ| ≤ ½ is erf(½/√2)/erf(1/√2) = 0.5609."""
    target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, np.zeros(1, np.float32))
    run = ewsg.sample(
        target,
        ewsg.Full(),
        ewsg.Walled(0.05, 1.0, radius=1.0),
        init=jnp.array(0.0),
        num_chains=500,
        num_steps=4000,
        thin=40,
    )
    assert np.abs(run.draws).max() <= 1.0
    share = (np.abs(run.draws) <= 0.5).mean(1)
    assert abs(share.mean() - 0.5609) < 4 * share.std(ddof=1) / np.sqrt(500) + 0.01
    assert 0.001 < run.stats["refused"].mean() < 0.1


def test_a_bad_radius():
    with pytest.raises(ewsg.errors.InputError, match="radius must be positive"):
        ewsg.Walled(0.1, 1.0, radius=0.0)
