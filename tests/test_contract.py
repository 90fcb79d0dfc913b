"""The contract as a matrix: every estimator × every integrator honours every field of `Kick`, or refuses the pair.

Nothing here is kept by hand (`components.py`). An integrator asks for forces in its own world; a view translates the
kick to another world, where the estimator is asked, and the force back. An estimator that honours the kick gives the
same chain through any view: another metric with other coordinates, another temperature with another potential.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import components
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg import _random
from ewsg.contract import Kick
from ewsg.errors import InputError

N, H, COLD = 12, 0.05, 0.3
START = jnp.array([0.3, -0.2])
DATA = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
METRIC = jnp.array([4.0, 0.25])
ROOT = jnp.sqrt(METRIC)

ESTIMATORS = components.estimators(START)
INTEGRATORS = components.integrators()
PLAIN = {cls.__name__ for cls in components.registered(ewsg.estimators.AbstractEstimator)}
FEW = (
    "BAOAB",
    "Preconditioned",
)  # for the variants of an estimator: one with a momentum and a factor, one with a metric
PAIRS = [
    pytest.param(e, i, id=f"{e} x {i}")
    for e, i in itertools.product(ESTIMATORS, INTEGRATORS)
    if (e in PLAIN and "(" not in i) or i in FEW or e == "Uniform"
]
matrix = pytest.mark.parametrize(("estimator", "integrator"), PAIRS)


class View(NamedTuple):
    """The estimator's world: its potential V'(θ') = scale · V(θ'/stretch), where it starts, and how a kick looks there."""

    scale: float
    stretch: Any
    kick: Callable[[Kick], Kick]
    force: Callable[[Any], Any]


def under_a_metric(kick: Kick) -> Kick:
    """θ' = √P θ."""
    stretch = functools.partial(jax.tree.map, lambda leaf: ROOT * leaf)
    metric = METRIC if kick.metric is None else METRIC * kick.metric
    return kick._replace(
        position=stretch(kick.position), momentum=stretch(kick.momentum), decay=stretch(kick.decay), metric=metric
    )


def when_cold(kick: Kick) -> Kick:
    """V' = T V at temperature T: the same law, with r' = √T r and time in units of √T; without momentum, in units of T."""
    kick = kick._replace(temperature=COLD * kick.temperature)
    if kick.momentum is None:
        return kick._replace(step_size=kick.step_size / COLD)
    root = np.sqrt(COLD).item()
    return kick._replace(
        momentum=root * kick.momentum,
        decay=root * kick.decay,
        step_size=kick.step_size / root,
        noise_scale=root * kick.noise_scale,
    )


HERE = View(1.0, jnp.ones(2), lambda kick: kick, lambda force: force)
STRETCHED = View(1.0, ROOT, under_a_metric, lambda force: ROOT * force)
COLDER = View(COLD, jnp.ones(2), when_cold, lambda force: force / COLD)


def potential(view: View, dtype=jnp.float32) -> ewsg.Target:
    """A regression without symmetry, so that no two data have the same gradient."""

    def log_likelihood(theta, x):
        z = theta / view.stretch.astype(dtype)
        return -view.scale * (jnp.log(jnp.cosh(z[0] - x[0])) + 0.5 * (z[1] - z[0] * x[1]) ** 2)

    def log_prior(theta):
        return -0.5 * view.scale * jnp.sum((theta / view.stretch.astype(dtype)) ** 2)

    return ewsg.Target(log_likelihood, log_prior, DATA.astype(dtype))


class Asked(NamedTuple):
    """What an estimator was asked at a step, and where the chain went."""

    key: Any
    kick: Kick
    state: Any
    position: Any


def chain(view: View, estimator, integrator_at, steps: int = 2) -> list[Asked]:
    """A few steps, one primitive at a time: nothing is compiled."""
    target, place, trail = potential(view), view.stretch * START, []
    estimator, _ = estimator.prepare(target)
    state, phase = estimator.init(jax.random.key(1), target, place), integrator_at(0).init(jax.random.key(2), START)
    for t in range(steps):

        def ask(key, kick, state):
            trail.append([key, kick, state])
            force, state, info = estimator.estimate(key, target, view.kick(kick), state)
            return view.force(force), state, info

        phase, state, _ = integrator_at(t).step(jax.random.key(3 + t), phase, jnp.int32(t), ask, state)
        trail[-1].append(phase.position)
    return [Asked(*entry) for entry in trail]


@pytest.fixture(autouse=True)
def _one_primitive_at_a_time():
    with jax.disable_jit(), jax.debug_key_reuse(False):
        yield


@functools.cache
def built(estimator: str, integrator: str) -> tuple[Any, Any]:
    """The pair as it is composed; skips a pair that is refused, in one sentence."""
    parts = ESTIMATORS[estimator], INTEGRATORS[integrator]
    try:
        ewsg.compose(potential(HERE), *parts)
    except InputError as refusal:
        assert "\n" not in str(refusal)
        assert len(str(refusal)) > 30
        return None, str(refusal)
    return parts[0], parts[1].in_sum_units(N)


def pair_of(estimator: str, integrator: str) -> tuple[Any, Any]:
    parts = built(estimator, integrator)
    if parts[0] is None:
        pytest.skip(f"refused: {parts[1]}")
    return parts


@functools.cache
def reference(estimator: str, integrator: str) -> list[Asked]:
    part, move = pair_of(estimator, integrator)
    return chain(HERE, part, lambda t: move)


def moved(trail: list[Asked]) -> np.ndarray:
    return np.stack([np.asarray(asked.position) for asked in trail])


def in_world(part, view: View):
    """The estimator with the points that it was given moved to the view's coordinates."""
    if getattr(part, "anchor", None) is None:
        return part
    return dataclasses.replace(part, anchor=view.stretch * part.anchor)


@matrix
@pytest.mark.parametrize("view", [STRETCHED, COLDER], ids=["metric", "temperature"])
def test_the_chain_is_the_same_through_every_view(estimator, integrator, view):
    part, move = pair_of(estimator, integrator)
    found = chain(view, in_world(part, view), lambda t: move)
    np.testing.assert_allclose(moved(found), moved(reference(estimator, integrator)), rtol=2e-4, atol=2e-5)


@matrix
def test_a_schedule_is_a_step_size_per_step(estimator, integrator):
    part, move = pair_of(estimator, integrator)
    scheduled = dataclasses.replace(move, step_size=lambda t: H * (1.0 + t.astype(float)))
    each = [dataclasses.replace(move, step_size=H * (1.0 + t)) for t in range(2)]
    found, expected = (moved(chain(HERE, part, at)) for at in (lambda t: scheduled, lambda t: each[t]))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[0], moved(reference(estimator, integrator))[0])
    assert np.abs(found[1] - moved(reference(estimator, integrator))[1]).max() > 1e-4


def answers(part, asked: Asked, factor: float) -> np.ndarray:
    """Forces for the same kick and several keys, were this the integrator's factor."""
    target = potential(HERE)
    part, _ = part.prepare(target)
    kick = asked.kick._replace(factor=factor)
    return np.stack([part.estimate(jax.random.fold_in(asked.key, k), target, kick, asked.state)[0] for k in range(4)])


@matrix
def test_the_factor_scales_the_friction_that_an_estimator_brings(estimator, integrator):
    """What has a setting of that name takes the integrator's factor for its default; all else is blind to it."""
    part, _ = pair_of(estimator, integrator)
    asked = reference(estimator, integrator)[-1]
    none, one, large = (answers(part, asked, factor) for factor in (0.0, 1.0, 1e3))
    own = 1.0 if getattr(part, "rule", None) == "sequential" else getattr(part, "factor", 1.0)  # see Paired
    if own is not None:
        np.testing.assert_array_equal(one, none)
        np.testing.assert_array_equal(large, none)
        return
    assert np.abs(large - none).max() > 1e-3
    np.testing.assert_allclose(answers(dataclasses.replace(part, factor=0.5), asked, 1.0), answers(part, asked, 0.5))
    if getattr(part, "rule", None) != "select" and getattr(part, "bound", None) is None:
        half = answers(part, asked, 0.5)
        np.testing.assert_allclose(half - none, (one - none) / 2, rtol=1e-2, atol=2e-5)


@matrix
def test_double_precision(estimator, integrator, monkeypatch):
    """Asked in float64, an estimator answers in float64, and what it answers in float32 to its precision."""
    uniform, categorical = _random.uniform, _random.categorical
    monkeypatch.setattr(_random, "uniform", lambda key, shape, dtype: uniform(key, shape, jnp.float32).astype(dtype))
    monkeypatch.setattr(_random, "categorical", lambda key, w: categorical(key, w.astype(jnp.float32)))
    part, move = pair_of(estimator, integrator)
    asked = reference(estimator, integrator)[-1]

    def forces(dtype):
        target = potential(HERE, dtype)
        kick, state = jax.tree.map(lambda leaf: to(leaf, dtype), (asked.kick, asked.state))
        return part.prepare(target)[0].estimate(asked.key, target, kick, state)[0]

    def to(leaf, dtype):
        return leaf.astype(dtype) if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    with jax.enable_x64(True):
        double, single = forces(jnp.float64), forces(jnp.float32)
        phase = move.init(jax.random.key(0), START.astype(jnp.float64))
    assert double.dtype == jnp.float64
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-4)
    assert all(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(phase))


def without_replacement() -> list:
    """Every estimator that has the setting, with each of its rules."""
    found = []
    for name, part in ESTIMATORS.items():
        if hasattr(part, "replace"):
            found.append(pytest.param(dataclasses.replace(part, replace=False), id=name))
    return found


@pytest.mark.parametrize("part", without_replacement())
def test_without_replacement_no_datum_comes_twice(part):
    _, kick, state, _ = reference("Full", "Overdamped" if getattr(part, "x", None) == "noise" else "BAOAB")[-1]
    part = dataclasses.replace(part, batch_size=5)
    target = potential(HERE)
    state = part.init(jax.random.key(8), target, START)
    for k in range(6):
        indices = np.asarray(part.estimate(jax.random.key(k), target, kick, state)[2].indices)
        assert len(set(indices.tolist())) == len(indices) > 1


@pytest.mark.parametrize("part", [p for p in without_replacement() if not p.values[0].__dict__.get("exact")])
def test_all_data_without_replacement_are_the_full_force(part):
    """Where nothing is left to chance there is no noise, no friction against it, and the noise factor says so."""
    _, kick, _, _ = reference("Full", "Overdamped" if getattr(part, "x", None) == "noise" else "BAOAB")[-1]
    target, full = potential(HERE), np.asarray(potential(HERE).full_force(kick.position))
    for batch_size in (N // 2, N):
        whole = dataclasses.replace(part, batch_size=batch_size)
        try:
            whole.check(N, kick.momentum is not None)
        except InputError:
            continue
        state = whole.init(jax.random.key(8), target, START)
        force = whole.estimate(jax.random.key(9), target, kick, state)[0]
        exact = np.abs(np.asarray(force) - full).max() < 1e-3
        assert exact == (whole.noise_factor(N) == 0)
