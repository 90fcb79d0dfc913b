"""The contract as a matrix: every estimator × every integrator honours every field of `Kick`, or refuses the pair.

Nothing here is kept by hand (`components.py`). An integrator asks for forces in its own world; a view translates the
kick to another world, where the estimator is asked, and the force back. An estimator that honours the kick gives the
same chain through the view: a metric with coordinates to match, a temperature with a potential to match. Steps are
taken one primitive at a time, as one compiled program per pair would cost minutes.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import components
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg import _random
from ewsg.contract import Cost, EstimateInfo, Kick
from ewsg.errors import InputError
from ewsg.likelihood import AbstractLikelihood

N, H, COLD = 12, 0.05, 0.3
START = jnp.array([0.3, -0.2])
DATA = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
METRIC = jnp.array([4.0, 0.25])
ROOT = jnp.sqrt(METRIC)

ESTIMATORS = components.estimators(START)
WRAPPED = components.wrapped(START)  # what wraps another hands it the whole kick
INTEGRATORS = components.integrators()
FEW = ("BAOAB", "Preconditioned")  # one with a momentum and a factor, one with a metric: for the variants


def plain(name: str) -> bool:
    return "(" not in name


PAIRS = [
    pytest.param(e, i, id=f"{e} x {i}")
    for e, i in itertools.product(ESTIMATORS, INTEGRATORS)
    if (plain(e) and plain(i)) or (not plain(e) and i in FEW) or e == "Uniform"
] + [pytest.param(e, "BAOAB", id=f"{e} x BAOAB") for e in WRAPPED]


class View(NamedTuple):
    """The estimator's world: its potential is V'(θ') = scale · V(θ'/stretch); how kicks get there and forces back."""

    scale: float
    stretch: Any
    kick: Callable[[Kick], Kick]
    force: Callable[[Any], Any]


def under_a_metric(kick: Kick) -> Kick:
    """θ' = √P θ."""
    position, momentum, decay = jax.tree.map(lambda leaf: ROOT * leaf, (kick.position, kick.momentum, kick.decay))
    metric = METRIC if kick.metric is None else METRIC * kick.metric
    return kick._replace(position=position, momentum=momentum, decay=decay, metric=metric)


def when_cold(kick: Kick) -> Kick:
    """V' = TV at temperature T: the same law, with r' = √T r and h' = h/√T, or h' = h/T without momentum."""
    kick = kick._replace(temperature=COLD * kick.temperature)
    if kick.momentum is None:
        return kick._replace(step_size=kick.step_size / COLD)
    root = math.sqrt(COLD)
    momentum, decay, noise_scale = jax.tree.map(lambda x: root * x, (kick.momentum, kick.decay, kick.noise_scale))
    return kick._replace(momentum=momentum, decay=decay, noise_scale=noise_scale, step_size=kick.step_size / root)


HERE = View(1.0, jnp.ones(2), lambda kick: kick, lambda force: force)
THERE = View(COLD, ROOT, lambda kick: when_cold(under_a_metric(kick)), lambda force: ROOT * force / COLD)


class Curve(AbstractLikelihood):
    """−scale · (log cosh(z₀ − x₀) + (z₁ − z₀x₁)²/2), z = θ/stretch: no two data have the same gradient.

    In closed form, as tracing derivatives for every primitive would take most of the time.
    """

    scale: float
    stretch: Any

    def __call__(self, params, datum):
        z = params / self.stretch.astype(params.dtype)
        return -self.scale * (jnp.log(jnp.cosh(z[0] - datum[0])) + 0.5 * (z[1] - z[0] * datum[1]) ** 2)

    def gradients(self, params, batch):
        stretch = self.stretch.astype(params.dtype)
        z, slope = params / stretch, -self.scale / stretch
        x, y = batch[:, 0], batch[:, 1]
        residual = z[1] - z[0] * y
        return jnp.stack([slope[0] * (jnp.tanh(z[0] - x) - y * residual), slope[1] * residual], axis=1)

    def gradient(self, params, batch, weights):
        return (weights @ self.gradients(params, batch).astype(weights.dtype)).astype(params.dtype)

    def directional(self, params, batch, direction):
        return self.gradients(params, batch) @ direction

    def datum_bytes(self, params, data):
        return 8


def potential(view: View, dtype=jnp.float32) -> ewsg.Target:
    def log_prior(theta):
        return -0.5 * view.scale * jnp.sum((theta / view.stretch.astype(dtype)) ** 2)

    return ewsg.Target(Curve(view.scale, view.stretch), log_prior, DATA.astype(dtype))


def test_the_closed_form_is_the_gradient():
    curve, there = Curve(0.3, ROOT), jnp.array([0.4, 0.7])
    for datum, found in zip(DATA, curve.gradients(there, jnp.asarray(DATA)), strict=True):
        np.testing.assert_allclose(found, jax.grad(curve)(there, datum), rtol=1e-4, atol=1e-6)


class Asked(NamedTuple):
    """What an estimator was asked at a step, and where the chain went."""

    key: Any
    kick: Kick
    state: Any
    position: Any


def chain(view: View, estimator: Any, integrator_at: Callable[[int], Any], steps: int = 2) -> list[Asked]:
    """A few steps of the integrator, the estimator being asked in its own world."""
    target, place, trail = potential(view), view.stretch * START, []
    estimator, _ = estimator.prepare(target)
    state, phase = estimator.init(jax.random.key(1), target, place), integrator_at(0).init(jax.random.key(2), START)

    def ask(key, kick, state):
        trail.append([key, kick, state])
        force, state, info = estimator.estimate(key, target, view.kick(kick), state)
        return view.force(force), state, info

    for t in range(steps):
        phase, state, _ = integrator_at(t).step(jax.random.key(3 + t), phase, jnp.int32(t), ask, state)
        trail[-1].append(phase.position)
    return [Asked(*entry) for entry in trail]


def moved(trail: list[Asked]) -> np.ndarray:
    return np.stack([np.asarray(asked.position) for asked in trail])


@pytest.fixture(autouse=True)
def _one_primitive_at_a_time():
    with jax.disable_jit(), jax.debug_key_reuse(False):
        yield


def refusal(estimator: str, integrator: str) -> str | None:
    """The sentence with which a pair is refused, if it is."""
    try:
        ewsg.compose(potential(HERE), (ESTIMATORS | WRAPPED)[estimator], INTEGRATORS[integrator])
    except InputError as error:
        return str(error)
    return None


@functools.cache
def reference(estimator: str, integrator: str) -> list[Asked]:
    """The chain of a pair, seen from here, with steps H and 2H by a schedule."""
    move = INTEGRATORS[integrator].in_sum_units(N)
    scheduled = dataclasses.replace(move, step_size=lambda t: H * (1.0 + t.astype(float)))
    return chain(HERE, (ESTIMATORS | WRAPPED)[estimator], lambda t: scheduled)


@pytest.mark.parametrize(("estimator", "integrator"), PAIRS)
def test_a_pair_honours_metric_temperature_and_schedule_or_is_refused(estimator, integrator):
    if sentence := refusal(estimator, integrator):
        assert "\n" not in sentence
        assert ":" in sentence  # what was wrong: what to do
        return
    part, move = (ESTIMATORS | WRAPPED)[estimator], INTEGRATORS[integrator].in_sum_units(N)
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
    assert kick.step_size == pytest.approx(H)
    if kick.noise is None:  # drawn elsewhere in the step
        assert kick.momentum is not None
        return
    metric = 1.0 if kick.metric is None else kick.metric
    before, after = (kick.position, phase.position) if kick.momentum is None else (kick.momentum, phase.momentum)
    decay = 0.0 if kick.decay is None else kick.decay
    update = kick.step_size * metric * force - decay + kick.noise_scale * jnp.sqrt(metric) * kick.noise
    np.testing.assert_allclose(after - before, update, rtol=1e-4)


NESTED = {
    f"SVRG({name})": ewsg.SVRG(part, 2)
    for name, part in ESTIMATORS.items()
    if getattr(part, "rule", None) == "sequential" or name == "CovarianceFriction"
}


def samplers(estimator: str, integrators: Iterable[str], step_size: Any, dtype=jnp.float32) -> dict[str, Any]:
    """The estimator, prepared once, with those of the integrators that it is not refused with."""
    part, target, found = (ESTIMATORS | NESTED)[estimator], potential(HERE, dtype), {}
    if getattr(part, "anchor", None) is not None:
        part = dataclasses.replace(part, anchor=part.anchor.astype(dtype))
    prepared, _ = part.prepare(target)
    for integrator in integrators:
        with contextlib.suppress(InputError):
            part.check(N, INTEGRATORS[integrator].has_momentum)
            move = dataclasses.replace(INTEGRATORS[integrator], step_size=step_size)
            found[integrator] = ewsg.sampler.Sampler(target, prepared, move.in_sum_units(N))
    return found


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


def warm_up(step):
    return H * step.astype(float)


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


def accepting(part: str) -> str:
    """An integrator that the estimator is not refused with."""
    return next(name for name in FEW if refusal(part, name) is None)


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
    none, much = (
        prepared.estimate(asked.key, target, asked.kick._replace(factor=factor), asked.state)[0]
        for factor in (0.0, 1e3)
    )
    heeds = any(hasattr(part, "factor") for part in (prepared, prepared.inner))
    assert (np.abs(much - none).max() > 0) == heeds


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
