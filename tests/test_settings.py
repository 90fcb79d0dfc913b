"""Settings at the door, mean units, what the noise ratio sees and costs, and a step that does not swallow the data."""

import re
from pathlib import Path

import components
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import gaussian_log_likelihood
from test_splitting import stationary

import ewsg
from ewsg.errors import InputError
from ewsg.estimators import AbstractEstimator
from ewsg.likelihood import AbstractLikelihood

ROOT = Path(__file__).parents[1]
START = jnp.array([0.3, -0.2])
DIRECTIONAL = []


class Counted(AbstractLikelihood):
    """Counts the directional derivatives that are asked for."""

    def __call__(self, params, datum):
        return gaussian_log_likelihood(params, datum)

    def directional(self, params, batch, direction):
        DIRECTIONAL.append(batch.shape[0])
        return super().directional(params, batch, direction)


@pytest.mark.parametrize(
    "build",
    [
        lambda: ewsg.Uniform(np.int64(10), replace=np.bool_(False)),
        lambda: ewsg.Reshuffled(np.array(10)),
        lambda: ewsg.SMS(jnp.int32(10)),
        lambda: ewsg.Exponential(np.uint8(10), np.int32(2), restart=np.bool_(False), exact=np.bool_(False)),
        lambda: ewsg.Paired(np.int16(10), factor=np.float64(0.5)),
        lambda: ewsg.Clustered(np.int64(2), np.int64(3), seed=np.int64(1)),
        lambda: ewsg.SVRG(ewsg.Uniform(2), np.int64(5)),
        lambda: ewsg.ControlVariate(ewsg.Uniform(2), anchor=START, max_passes=np.int64(5), tolerance=np.float32(0.1)),
        lambda: ewsg.CovarianceFriction(ewsg.Uniform(2), period=np.int64(5), decay=np.array(0.5), bound=jnp.float32(1)),
        lambda: ewsg.CovarianceFriction(ewsg.Uniform(2), form="low_rank", rank=np.int64(1), passes=np.float64(2)),
        lambda: ewsg.Underdamped(np.float64(0.1), np.int64(2), np.array(0.3)),
        lambda: ewsg.Thermostat(np.float32(0.1), 1.0, per_coordinate=np.bool_(True), inertia=jnp.array(2.0)),
        lambda: ewsg.Preconditioned(jnp.array(0.1), np.float64(0.9), curvature=np.bool_(True), num_data=np.int64(3)),
        lambda: ewsg.schedules.Polynomial(np.float64(0.1), np.int64(10)),
    ],
)
def test_numbers_of_numpy_and_jax_become_pythons(build):
    """Warnings are errors here: a static setting must not be an array."""
    part = build()
    for name, value in vars(part).items():
        if name not in ("inner", "anchor", "labels", "features"):
            assert value is None or type(value) in (bool, int, float, str), name
    assert hash(jax.tree.structure(part)) == hash(jax.tree.structure(build()))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: ewsg.BAOAB(np.array([0.1, 0.2]), 1.0),
            "BAOAB: step_size must be one number, not an array of shape",
        ),
        (lambda: ewsg.Underdamped(0.1, np.ones(3)), "Underdamped: friction must be one number, not an array of shape"),
        (lambda: ewsg.Overdamped(0.1, jnp.ones((2, 1))), r"temperature must be one number, not .* shape \(2, 1\)"),
        (lambda: ewsg.Paired(2, factor=np.ones(2)), "Paired: factor must be one number"),
        (lambda: ewsg.schedules.Polynomial(np.ones(2)), "Polynomial: initial must be one number"),
        (lambda: ewsg.NUTS(np.array([0.1, 0.2])), "NUTS: step_size must be one number"),
        (lambda: ewsg.NUTS(0.1, temperature=np.ones(2)), "NUTS: temperature must be one number"),
        (lambda: ewsg.CovarianceFriction(ewsg.Uniform(2), decay=np.ones(2)), "decay must be one number"),
        (lambda: ewsg.Underdamped(0.1, [[1], [1, 2]]), r"friction must be a number, not \[\[1\], \[1, 2\]\]"),
        (lambda: ewsg.Uniform(4, replace="no"), "Uniform: replace must be True or False, not 'no'"),
        (lambda: ewsg.Uniform(np.float64(4)), "batch_size must be a whole number of at least 1, not 4.0"),
        (lambda: ewsg.Uniform(np.array([4])), "batch_size must be a whole number"),
    ],
)
def test_what_is_not_one_number_is_refused(build, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["divergence_limit", "data_passes"])
def test_options_of_sample_that_are_not_one_number_are_refused(gaussian, option):
    with pytest.raises(InputError, match=f"sample: {option} must be one number, not an array"):
        ewsg.sample(gaussian, ewsg.Full(), ewsg.BAOAB(0.1, 1.0), init=START, **{option: np.array([10.0, 20.0])})


def test_arrays_are_taken_where_there_is_one_number_per_parameter():
    assert ewsg.RandomWalk(np.ones(2)).step_size.shape == (2,)
    assert ewsg.NUTS(0.1, np.ones(2)).inverse_mass_matrix.shape == (2,)
    with pytest.raises(InputError, match="RandomWalk: step_size must be positive"):
        ewsg.RandomWalk(np.array([1.0, 0.0]))


@pytest.mark.parametrize("matrix", ["dense", 2.0, [["a"]], [[1.0], [1.0, 2.0]], np.ones((2, 2, 2))], ids=str)
def test_what_is_no_mass_matrix_is_refused(matrix):
    """Seen before: the text went on to JAX, and came back as its traceback."""
    with pytest.raises(InputError, match="NUTS: inverse_mass_matrix must be a vector or a matrix of numbers") as caught:
        ewsg.NUTS(0.1, matrix)
    assert "\n" not in str(caught.value)
    assert ewsg.NUTS(0.1, [1.0, 2.0]).inverse_mass_matrix == [1.0, 2.0]


def test_a_bad_target_is_told_how_to_make_one():
    with pytest.raises(InputError, match=r"target must be an ewsg target, not 3: make one with ewsg.Target\(log_l"):
        ewsg.compose(3, ewsg.Full(), ewsg.BAOAB(0.1, 1.0))
    with pytest.raises(InputError, match=r"must be an ewsg integrator, not 3: see the module ewsg.integrators$"):
        ewsg.compose(ewsg.Target(gaussian_log_likelihood, None, np.ones((2, 2))), ewsg.Full(), 3)


@pytest.mark.parametrize(
    ("schedule", "sentence"),
    [
        (lambda step: "0.1", "at step 0 it returned '0.1'"),
        (lambda step: None, "at step 0 it returned None"),
        (lambda step: jnp.full(3, 0.1), r"at step 0 it returned an array of shape \(3,\)"),
        (lambda step: step, "at step 0 it returned an array of shape .* int32"),
        (lambda step: jnp.nan, "step_size at step 0 must be zero or positive and finite, not nan"),
        (lambda step: -0.1, "step_size at step 0 must be zero or positive"),
        (lambda step, more: 0.1, "at step 0 it failed: TypeError"),
        (lambda step: [][0], "at step 0 it failed: IndexError"),
        (lambda step: 0.01 if step < 100 else 0.001, "cannot be compiled .*: use jnp.where in place of if"),
        (lambda step: [0.01, 0.02][step % 2], "cannot be compiled .*: use jnp.where .* or take an optax schedule"),
    ],
)
def test_a_schedule_that_gives_no_step_size_is_refused(gaussian, schedule, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        ewsg.sample(gaussian, ewsg.Full(), ewsg.BAOAB(schedule, 1.0), init=START, num_steps=3)
    assert str(caught.value).startswith("BAOAB: step_size")
    assert "\n" not in str(caught.value)


def last(sampler, steps=5):
    """Where a chain is after a few steps."""
    state, step = sampler.init(jax.random.key(0), START), jax.jit(type(sampler).step)
    for t in range(steps):
        state, _ = step(sampler, jax.random.key(t), state)
    return np.asarray(state.phase.position)


def heavy_ball():
    text = (ROOT / "docs/extending.md").read_text()
    names = {"__name__": "heavy_ball"}
    exec(re.search(r"```python\n(import equinox.*?)^```", text, re.DOTALL | re.MULTILINE)[1], names)
    return names["HeavyBall"]


@pytest.mark.parametrize("kind", [ewsg.Overdamped, ewsg.Underdamped, None], ids=["overdamped", "underdamped", "guide"])
def test_mean_units_are_for_the_mean_at_temperature_t_over_n(gaussian, centres, kind):
    """By definition: on V in mean units = on V/n at temperature T/n; for the integrator of the guide too."""
    kind = kind or heavy_ball()
    friction = {"friction": 0.7} if kind.has_momentum else {}
    mean = ewsg.Target(lambda t, c: gaussian_log_likelihood(t, c) / 50, None, centres)
    one = last(ewsg.compose(gaussian, ewsg.Full(), kind(0.1, **friction, temperature=0.3, units="mean")))
    other = last(ewsg.compose(mean, ewsg.Full(), kind(0.1, **friction, temperature=0.3 / 50)))
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    plain = last(ewsg.compose(gaussian, ewsg.Full(), kind(0.1, **friction, temperature=0.3)))
    assert np.abs(one - plain).max() > 0.01


def test_a_momentum_without_a_friction_does_not_ignore_mean_units(gaussian):
    class Frictionless(ewsg.integrators.AbstractIntegrator):
        has_momentum = True
        step_size: float
        temperature: float = 1.0
        units: str = "sum"

        def init(self, key, position): ...

        def step(self, *args): ...

        def scales(self, step): ...

    with pytest.raises(InputError, match="Frictionless has no friction to translate from units='mean'"):
        ewsg.compose(gaussian, ewsg.Full(), Frictionless(0.1, units="mean"))


@pytest.mark.parametrize("kind", components.registered(AbstractEstimator), ids=lambda kind: kind.__name__)
def test_probe_cost_is_what_the_noise_ratio_evaluates(centres, kind):
    part = dict(components.variants(kind, START, ("slope",)))[kind.__name__]
    sampler = ewsg.compose(ewsg.Target(Counted(), None, centres), part, ewsg.BAOAB(0.01, 1.0))
    state = sampler.init(jax.random.key(0), START)
    DIRECTIONAL.clear()
    sampler.noise_ratio(jax.random.key(1), state)
    assert sum(DIRECTIONAL) == sampler.probe_cost()
    assert sampler.probe_cost() == {"Full": 0, "Clustered": 30, "ControlVariate": 64, "SVRG": 64}.get(kind.__name__, 32)


def test_probes_of_all_data_or_of_whole_methods_cost_nothing(gaussian):
    everything = ewsg.compose(gaussian, ewsg.Uniform(50, replace=False), ewsg.BAOAB(0.01, 1.0))
    assert everything.probe_cost() == ewsg.compose(gaussian, ewsg.RandomWalk(0.1)).probe_cost() == 0


def test_the_noise_ratio_sees_the_metric(gaussian, centres):
    """h² Tr √P Cov √P / (2hT·d), P of the state; by the mean over 4,000 probes."""
    h, temperature, b = 1e-3, 0.5, 4
    sampler = ewsg.compose(gaussian, ewsg.Uniform(b), ewsg.Preconditioned(h, temperature=temperature))
    state = sampler.init(jax.random.key(0), START)
    phase = state.phase._replace(second_moment=jnp.array([0.04, 4.0]))
    state = state._replace(phase=phase, step=jnp.int32(7))
    keys = jax.random.split(jax.random.key(1), 4000)
    ratios = np.asarray(jax.jit(jax.vmap(sampler.noise_ratio, (0, None)))(keys, state), np.float64)
    metric = 1 / (1e-5 + np.sqrt([0.04, 4.0]))
    exact = h * np.sum(metric * 50**2 * centres.astype(np.float64).var(0) / b) / (2 * temperature * 2)
    assert np.mean(ratios) == pytest.approx(exact, abs=4.5 * np.std(ratios) / np.sqrt(4000))


def test_a_compiled_step_does_not_hold_the_data():
    """As the documentation compiles it, the program is as long for 20,000 data as for 20."""

    def length(n):
        target = ewsg.Target(gaussian_log_likelihood, None, np.ones((n, 2), np.float32))
        sampler = ewsg.compose(target, ewsg.Uniform(4), ewsg.BAOAB(0.01, 1.0))
        state = sampler.init(jax.random.key(0), START)
        return len(jax.jit(type(sampler).step).lower(sampler, jax.random.key(1), state).as_text())

    assert length(20_000) < 1.02 * length(5_000)


@pytest.mark.parametrize("path", ["docs/extending.md", "ewsg/sampler.py", "README.md", "docs/guide.md"])
def test_the_documentation_compiles_steps_that_way(path):
    lines = [line for line in (ROOT / path).read_text().splitlines() if "jit(sampler.step)" in line]
    assert all("would" in line for line in lines)


def test_kinetic_temperature_is_per_dimension():
    """The mean of ‖r‖²/d over stationary chains, d = 3, is the exact variance of a momentum under BAOAB."""
    data = np.zeros((4, 3), np.float32)
    target = ewsg.Target(gaussian_log_likelihood, None, data)
    run = ewsg.sample(
        target,
        ewsg.Full(),
        ewsg.BAOAB(step_size=0.4, friction=2.0, temperature=0.3),
        init=lambda key: jax.random.normal(key, (3,)) * np.sqrt(0.3 / 4).astype(np.float32),
        num_chains=1000,
        num_steps=100,
        discard=20,
        thin=80,
    )
    found = np.asarray(run.stats["kinetic_temperature"], np.float64)
    exact = stationary(ewsg.BAOAB, 4.0, 0.4, 2.0, 0.3)[1, 1]
    assert found.mean() == pytest.approx(exact, abs=4.5 * found.std() / np.sqrt(found.size))
