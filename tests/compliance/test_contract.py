"""The contract as a matrix: every estimator × every integrator honours every field of `Kick`, or refuses the pair.

Nothing here is kept by hand (`components.py`). An integrator asks for forces in its own world; a view translates the
kick to another world, where the estimator is asked, and the force back. An estimator that honours the kick gives the
same chain through the view: a metric with coordinates to match, a temperature with a potential to match. Steps are
taken one primitive at a time, as one compiled program per pair would cost minutes.
"""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract import (
    DATA,
    ESTIMATORS,
    FEW,
    HERE,
    INTEGRATORS,
    NESTED,
    ROOT,
    START,
    THERE,
    WRAPPED,
    Curve,
    H,
    N,
    accepting,
    chain,
    drawn_alike,
    moved,
    plain,
    potential,
    reference,
    refusal,
    samplers,
    warm_up,
)

import ewsg
from ewsg import _random
from ewsg.errors import InputError

PAIRS = [
    pytest.param(e, i, id=f"{e} x {i}")
    for e, i in itertools.product(ESTIMATORS, INTEGRATORS)
    if (plain(e) and plain(i)) or (not plain(e) and i in FEW) or e == "Uniform"
] + [pytest.param(e, "BAOAB", id=f"{e} x BAOAB") for e in WRAPPED]


def test_the_closed_form_is_the_gradient():
    curve, there = Curve(0.3, ROOT), jnp.array([0.4, 0.7])
    for datum, found in zip(DATA, curve.gradients(there, jnp.asarray(DATA)), strict=True):
        np.testing.assert_allclose(found, jax.grad(curve)(there, datum), rtol=1e-4, atol=1e-6)


@pytest.fixture(autouse=True)
def _one_primitive_at_a_time():
    with jax.disable_jit(), jax.debug_key_reuse(False):
        yield


@pytest.mark.parametrize(("estimator", "integrator"), PAIRS)
def test_a_pair_honours_metric_temperature_and_schedule_or_is_refused(estimator, integrator):
    if sentence := refusal(estimator, integrator):
        assert "\n" not in sentence
        assert ":" in sentence  # what was wrong: what to do
        return
    part, move = drawn_alike((ESTIMATORS | WRAPPED)[estimator]), INTEGRATORS[integrator].in_sum_units(N)
    if getattr(part, "anchor", None) is not None:
        part = dataclasses.replace(part, anchor=THERE.stretch * part.anchor)
    found = chain(THERE, part, lambda t: dataclasses.replace(move, step_size=H * (1 + t)))
    np.testing.assert_allclose(moved(found), moved(reference(estimator, integrator)), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_schedule_is_a_step_size_per_step(integrator):
    """To rounding, as eager constants are Python's and a schedule's values float32; and it makes a difference."""
    move = INTEGRATORS[integrator].in_sum_units(N)
    found = moved(reference("Full", integrator))
    constants = chain(HERE, ewsg.Full(), lambda t: dataclasses.replace(move, step_size=H * (1 + t)))
    np.testing.assert_allclose(found, moved(constants), rtol=3e-6, atol=1e-7)
    same = chain(HERE, ewsg.Full(), lambda t: dataclasses.replace(move, step_size=H))
    np.testing.assert_allclose(found[0], moved(same)[0], rtol=3e-6, atol=1e-7)
    assert np.abs(found[1] - moved(same)[1]).max() > 1e-3


@pytest.mark.parametrize("estimator", ESTIMATORS | NESTED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_schedule_leaves_the_dtypes_of_a_state_alone(estimator, dtype):
    """Parameters narrower than a schedule's value, float64 or float32, stay so, and so do forces; nothing is run."""
    with jax.enable_x64(dtype == "float32"), jax.disable_jit(False), jax.numpy_dtype_promotion("strict"):
        some = INTEGRATORS if estimator == "Uniform" else filter(plain, INTEGRATORS)
        pairs = samplers(estimator, some, ewsg.schedules.Polynomial(H), dtype)
        for name, sampler in pairs.items():
            before = jax.eval_shape(sampler.init, jax.random.key(0), START.astype(dtype))
            after, info = jax.eval_shape(sampler.step, jax.random.key(1), before)
            assert jax.tree.structure(before) == jax.tree.structure(after), name
            assert jax.tree.leaves(before) == jax.tree.leaves(after), name
            assert info.force.dtype == info.evaluated_at.dtype == dtype, name
        assert jax.eval_shape(sampler.noise_ratio, jax.random.key(2), before).shape == ()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_step_of_size_zero_goes_nowhere(estimator):
    """As the first of a linear warm-up: the position stays, and no force, state or stat is NaN."""
    some = INTEGRATORS if estimator == "Uniform" else ("UBU", "Preconditioned")
    for name, sampler in samplers(estimator, some, warm_up).items():
        after, info = sampler.step(jax.random.key(1), sampler.init(jax.random.key(0), START))
        np.testing.assert_array_equal(after.phase.position, START)
        assert not any(np.isnan(leaf).any() for leaf in jax.tree.leaves((after, info))), name


def test_a_step_of_size_zero_has_no_noise_and_the_factor_of_its_limit():
    for sampler in samplers("Paired", ("Overdamped", "UBU"), warm_up).values():
        assert sampler.noise_ratio(jax.random.key(2), sampler.init(jax.random.key(0), START)) == 0
    assert chain(HERE, ewsg.Full(), lambda t: ewsg.UBU(warm_up, 1.0), 1)[0].kick.factor == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_factor_scales_the_friction_that_an_estimator_brings(estimator):
    """What has a setting of that name takes the integrator's factor for its default; all else is blind to it.

    Who brings friction has the setting. (`Exponential` is the paper's, whose weights are those of Euler–Maruyama.)
    """
    asked, target = reference(estimator, accepting(estimator))[-1], potential(HERE)
    prepared = ESTIMATORS[estimator].prepare(target)[0]

    def forces(factor, part=prepared, keys=1):
        kick = asked.kick._replace(factor=factor)
        each = [part.estimate(jax.random.fold_in(asked.key, k), target, kick, asked.state)[0] for k in range(keys)]
        return np.stack(each)

    if not hasattr(prepared, "factor") and not isinstance(prepared, ewsg.Exponential):
        faster = jax.tree.map(lambda leaf: 9 * leaf, (asked.kick.momentum, asked.kick.decay, asked.kick.noise))
        hurried = asked.kick._replace(**dict(zip(("momentum", "decay", "noise"), faster, strict=True)))
        force, _, info = prepared.estimate(jax.random.fold_in(asked.key, 0), target, hurried, asked.state)
        np.testing.assert_array_equal(force, forces(1.0)[0])
        assert info.drag is None
    rule = getattr(prepared, "rule", None)
    if rule == "sequential" or getattr(prepared, "factor", 1.0) is not None:  # of sequential, see Paired
        np.testing.assert_array_equal(forces(1e3), forces(0.0))
    elif rule == "select":
        assert np.abs(forces(1e3, keys=6) - forces(0.0, keys=6)).max() > 0.1
    else:
        none, half, one = forces(0.0), forces(0.5), forces(1.0)
        assert np.abs(one - none).max() > 1e-3
        np.testing.assert_array_equal(forces(1.0, dataclasses.replace(prepared, factor=0.5)), half)
        if getattr(prepared, "bound", None) is None:
            np.testing.assert_allclose(half - none, (one - none) / 2, rtol=1e-2, atol=2e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_double_precision(estimator, monkeypatch):
    """Asked in float64, an estimator answers in float64, and in float32 the same to its precision."""
    uniform, categorical = _random.uniform, _random.categorical
    monkeypatch.setattr(_random, "uniform", lambda key, shape, dtype: uniform(key, shape, jnp.float32).astype(dtype))
    monkeypatch.setattr(_random, "categorical", lambda key, weights: categorical(key, weights.astype(jnp.float32)))
    asked = reference(estimator, accepting(estimator))[-1]

    def force(dtype):
        def to(leaf):
            real = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
            return leaf.astype(dtype) if real else leaf

        target, (kick, state) = potential(HERE, dtype), jax.tree.map(to, (asked.kick, asked.state))
        part = jax.tree.map(to, ESTIMATORS[estimator])
        return part.prepare(target)[0].estimate(asked.key, target, kick, state)[0]

    with jax.enable_x64(True):
        single, double = force(jnp.float32), force(jnp.float64)
    assert (single.dtype, double.dtype) == (jnp.float32, jnp.float64)
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_double_precision_of_a_step(integrator):
    with jax.enable_x64(True):
        target, move = potential(HERE, jnp.float64), INTEGRATORS[integrator].in_sum_units(N)
        phase = move.init(jax.random.key(0), START.astype(jnp.float64))

        def ask(key, kick, state):
            return ewsg.Full().estimate(key, target, kick, state)

        after = move.step(jax.random.key(1), phase, jnp.int32(0), ask, ())[0]
    assert {leaf.dtype for leaf in jax.tree.leaves((phase, after))} == {np.dtype(np.float64)}


DISTINCT = {name: part for name, part in ESTIMATORS.items() if hasattr(part, "replace")}


@pytest.mark.parametrize("estimator", DISTINCT)
def test_without_replacement(estimator):
    """No datum comes twice; where all n make the force, it is the full one without friction, and only there."""
    kick, target = reference(estimator, accepting(estimator))[-1].kick, potential(HERE)
    full = np.asarray(target.full_force(kick.position))
    for batch_size in (2, N // 2, N):
        part = dataclasses.replace(DISTINCT[estimator], replace=False, batch_size=batch_size)
        try:
            part.check(N, kick.momentum is not None)
        except InputError:
            continue
        state = part.init(jax.random.key(8), target, START)
        force, _, info = part.estimate(jax.random.key(9), target, kick, state)
        indices = np.asarray(info.indices).tolist()
        assert len(set(indices)) == len(indices) > 1
        exact = np.abs(np.asarray(force) - full).max() < 1e-4
        assert exact == (part.noise_factor(N) == 0)
