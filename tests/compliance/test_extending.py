"""The examples of docs/extending.md, run as they stand, by somebody who imports public names only."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg

ROOT = next(folder for folder in Path(__file__).parents if (folder / "CONTRIBUTING.md").exists())
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/extending.md").read_text(), re.DOTALL | re.MULTILINE)
POSITION = jnp.array([0.3, -0.2])


@pytest.fixture(scope="module")
def page(gaussian):
    """All examples, one after the other, in one namespace."""
    names = {"__name__": "extending", "target": gaussian, "params": POSITION}
    for block in BLOCKS:
        exec(block, names)
    return names


def test_only_public_names_are_imported():
    assert len(BLOCKS) == 4
    assert not re.findall(r"ewsg\._\w+|import _\w+|, _\w+", "".join(BLOCKS))


def test_the_estimator_is_unbiased(page, gaussian):
    n = gaussian.num_data
    probabilities = jnp.arange(1.0, n + 1) / (n * (n + 1) / 2)
    estimator = page["Importance"](probabilities, batch_size=2)
    weights = 1 / (n * probabilities)
    each = jax.vmap(lambda i: gaussian.weighted_force(POSITION, i[None], weights[i][None]))(jnp.arange(n))
    np.testing.assert_allclose(probabilities @ each, gaussian.full_force(POSITION), rtol=1e-4, atol=1e-4)
    sampler = ewsg.compose(gaussian, estimator, ewsg.BAOAB(step_size=1e-3, friction=5.0))
    drawn = jax.vmap(lambda key: sampler.step(key, sampler.init(jax.random.key(0), POSITION))[1].estimate.indices)(
        jax.random.split(jax.random.key(1), 4_000)
    )
    found = np.bincount(np.ravel(drawn), minlength=n) / np.size(drawn)
    np.testing.assert_allclose(found, probabilities, atol=5 * np.sqrt(0.04 / np.size(drawn)))


def test_the_integrator_honours_units(page, gaussian):
    """n data: h_sum = h_mean/√n and γ_sum = γ_mean·√n are the same chain."""
    root = np.sqrt(gaussian.num_data)
    ends = []
    for settings in ({"step_size": 0.01, "friction": 5.0}, {"step_size": 0.01 * root, "friction": 5.0 / root}):
        move = page["HeavyBall"](**settings, units="mean" if ends else "sum")
        sampler = ewsg.compose(gaussian, ewsg.Uniform(2), move)
        state = sampler.init(jax.random.key(0), POSITION)
        for t in range(3):
            state, _ = sampler.step(jax.random.key(t), state)
        ends.append(state.phase)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6), *ends)


def test_the_collector_keeps_the_largest(page, gaussian):
    settings = {"init": POSITION, "num_steps": 20, "discard": 0, "thin": 1, "num_chains": 2, "seed": 0}
    method = ewsg.recipes.sghmc(batch_size=2, step_size=0.01, friction=5.0)
    kept = ewsg.sample(gaussian, method, **settings, collect=page["Largest"]()).collected
    draws = ewsg.sample(gaussian, method, **settings).draws
    np.testing.assert_array_equal(kept, draws.max(1))


def test_the_loop_of_ones_own_ran(page):
    assert page["info"].estimate.indices.shape == (32,)


def test_an_integrator_without_its_settings_is_refused():
    """Seen before: an AttributeError from inside the base class."""

    class Bare(ewsg.AbstractIntegrator):
        has_momentum = False

        def init(self, key, position): ...

        def step(self, key, phase, step, force_function, estimator_state): ...

        def scales(self, step): ...

    with pytest.raises(ewsg.errors.InputError, match="Bare has no setting step_size"):
        Bare()
