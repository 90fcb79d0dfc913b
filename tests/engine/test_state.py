"""The layout of the carried state, and what a snapshot says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg._engine import driver, loop, state
from ewsg._engine.plan import Plan
from ewsg._random import make_key
from ewsg._random.generator import seeded, seeded_on_host
from ewsg.collect import Draws


def test_axes_and_shardings_agree_by_name():
    specs = state.CARRY_SPECS.chains
    for name in ("status", "window", "recent", "anchor", "noise_ratio", "summary"):
        assert getattr(state.CHAIN_AXES, name) == 0
        assert getattr(specs, name) == state.EACH
    assert state.CHAIN_AXES.state.step is None
    assert specs.state.step == state.SAME
    assert (specs.gradients.every, specs.gradients.own) == (state.SAME, state.EACH)


@pytest.mark.parametrize("seed", [0, 7, 2**32, 2**64 - 1])
def test_keys_made_on_the_host_are_those_of_the_compiled_generator(seed):
    words = (jnp.uint32(seed & 0xFFFFFFFF), jnp.uint32(seed >> 32))
    np.testing.assert_array_equal(seeded_on_host(seed), jax.jit(seeded)(*words))


def test_a_driver_yields_a_snapshot_without_a_run():
    target = ewsg.Target(lambda theta, row: -0.5 * (theta - row) ** 2, None, np.arange(6.0, dtype=np.float32))
    sampler, collector = ewsg.compose(target, ewsg.Uniform(2), ewsg.Underdamped(0.01, 5.0)), Draws()
    carry, keys = loop.start(sampler, collector, make_key(0, "fast"), np.zeros(3, np.float32))
    limits = state.Limits(np.float32(1e6), np.float32(1e3), np.int32(1))
    plan = Plan(num_steps=20, discard=10, thin=2)
    calls = []
    found = driver.Driver(sampler, collector, plan, state.Checkpoint(carry, keys, limits)).run(
        lambda: False, lambda done, text: None, lambda: calls.append(1)
    )
    assert found.kept.draws.shape == (3, 5)
    assert found.status.tolist() == ["ok"] * 3
    assert found.num_steps == 20
    assert found.datum_gradients.tolist() == [40] * 3
    assert found.num_probes == 3 * 5
    assert calls
