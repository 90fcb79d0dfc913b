"""Settings at the door: one number where there is one, in Python's own types."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError

START = jnp.array([0.3, -0.2])


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
