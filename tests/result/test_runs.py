"""Runs on disk: resumed = uninterrupted, bit for bit; damage is named and leaves the old file alone."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.errors import InputError
from ewsg.result.file import header

METHODS = {
    "paired": (ewsg.Paired(3), ewsg.BAOAB(step_size=0.01, friction=5.0)),
    "full": (ewsg.Full(), ewsg.Underdamped(step_size=0.01, friction=5.0)),
    "carried": (
        ewsg.Exponential(2, 3, restart=False),
        ewsg.Underdamped(ewsg.schedules.Polynomial(0.1), friction=5.0, units="mean"),
    ),
}


def equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("method", METHODS)
def test_resumed_equals_uninterrupted(gaussian, tmp_path, method):
    """Steps that do not fill a window, a schedule and a carried minibatch all go on where they were."""
    estimator, integrator = METHODS[method]
    options = {"init": jnp.zeros(2), "num_chains": 3, "discard": 10, "thin": 7}
    whole = ewsg.sample(gaussian, estimator, integrator, num_steps=96, **options)
    ewsg.sample(gaussian, estimator, integrator, num_steps=40, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=56)
    equal(resumed.draws, whole.draws)
    equal(resumed.stats, whole.stats)
    assert resumed.cost.datum_gradients == whole.cost.datum_gradients
    assert resumed.settings["num_steps"] == 96
    equal(resumed.checkpoint.carry, whole.checkpoint.carry)


def test_resume_by_data_passes_and_twice(gaussian, tmp_path):
    options = {"init": jnp.zeros(2), "discard": 0, "thin": 1}
    method = ewsg.recipes.sghmc(batch_size=5, step_size=0.01, friction=5.0)
    path = tmp_path / "run.npz"
    whole = ewsg.sample(gaussian, method, data_passes=6, **options)
    ewsg.sample(gaussian, method, data_passes=2, save_to=path, **options)
    ewsg.resume(path, gaussian, data_passes=1, save_to=path)
    resumed = ewsg.resume(path, gaussian, data_passes=3)
    equal(resumed.draws, whole.draws)
    assert resumed.cost.data_passes == 6


def test_resume_moments(gaussian, tmp_path):
    options = {"init": jnp.zeros(2), "discard": 4, "thin": 3, "collect": ewsg.collect.Moments()}
    method = ewsg.recipes.sgld(batch_size=5, step_size=1e-3)
    whole = ewsg.sample(gaussian, method, num_steps=60, **options)
    ewsg.sample(gaussian, method, num_steps=29, **options).save(tmp_path / "run.npz")
    equal(ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=31).collected, whole.collected)


class Pair(NamedTuple):
    second: jax.Array
    first: dict


def pair_likelihood(params, centre):
    return gaussian_log_likelihood(params.first["b"], centre) - params.second**2 - params.first["a"] ** 2


def test_classes_of_the_users_own(centres, tmp_path):
    """Parameters in a named tuple: given back as such with `like`, by name without."""
    target = ewsg.Target(pair_likelihood, None, centres)
    start = Pair(jnp.array(0.5), {"b": jnp.zeros(2), "a": jnp.array(1.0)})
    method = ewsg.recipes.sgld(batch_size=5, step_size=1e-3)
    options = {"init": start, "discard": 0, "thin": 1}
    whole = ewsg.sample(target, method, num_steps=20, **options)
    ewsg.sample(target, method, num_steps=8, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", target, num_steps=12, like=start)
    assert isinstance(resumed.draws, Pair)
    equal(resumed.draws, whole.draws)
    plain = ewsg.load(tmp_path / "run.npz").draws
    np.testing.assert_array_equal(plain[".second"], whole.draws.second[:, :8])


@pytest.fixture
def saved(gaussian, tmp_path):
    run = ewsg.sample(gaussian, ewsg.recipes.sgld(5, 1e-3), init={"t": jnp.zeros(2)}["t"], num_steps=20)
    run.save(tmp_path / "run.npz")
    return run, tmp_path / "run.npz"


def test_load_gives_back_what_was_saved(saved):
    run, path = saved
    loaded = ewsg.load(path)
    equal(loaded.draws, run.draws)
    equal(loaded.stats, run.stats)
    assert list(loaded.status) == list(run.status)
    assert loaded.cost == run.cost
    assert loaded.settings == run.settings
    assert str(loaded.summary()) == str(run.summary())


def test_truncated_file_is_named(saved, gaussian):
    _, path = saved
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ewsg.errors.FileFormatError, match="not a complete file"):
        ewsg.load(path)
    with pytest.raises(ewsg.errors.FileFormatError, match="not a complete file"):
        ewsg.resume(path, gaussian, num_steps=5)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 not really a zip"])
def test_foreign_file_is_named(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(ewsg.errors.FileFormatError, match="not a complete file"):
        ewsg.load(path)


def test_foreign_archives_and_other_formats_are_named(saved, tmp_path, monkeypatch):
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    with pytest.raises(ewsg.errors.FileFormatError, match="of another kind"):
        ewsg.load(tmp_path / "foreign.npz")
    with pytest.raises(ewsg.errors.InputError, match="no saved run at"):
        ewsg.load(tmp_path / "missing.npz")
    first = np.frombuffer(b'{"format": "ewsg-run", "version": 1, "settings": {}}', np.uint8)
    np.savez(tmp_path / "first.npz", header=first, draws=np.zeros((4, 10, 2)))
    with pytest.raises(ewsg.errors.FileFormatError, match=r"\(format 1\), whose files are no longer read"):
        ewsg.load(tmp_path / "first.npz")
    monkeypatch.setattr(header, "VERSION", 1)
    with pytest.raises(ewsg.errors.FileFormatError, match="newer ewsg"):
        ewsg.load(saved[1])


def test_resume_with_another_target_is_refused(saved, gaussian, centres):
    _, path = saved
    others = {
        "40 data|50 data": ewsg.Target(gaussian_log_likelihood, None, centres[:40]),
        "its data differ": ewsg.Target(gaussian_log_likelihood, None, centres + np.float32(1e-3)),
        "log_likelihood or log_prior": ewsg.Target(gaussian_log_likelihood, lambda t: -(jnp.sum(t - 1) ** 2), centres),
        "do not fit": ewsg.Target(lambda t, c: t["a"] * c[0], None, centres),
    }
    for sentence, target in others.items():
        with pytest.raises(ewsg.errors.InputError, match="a different target") as caught:
            ewsg.resume(path, target, num_steps=5)
        assert any(part in str(caught.value) for part in sentence.split("|"))


def test_resume_needs_what_a_file_cannot_hold(gaussian, tmp_path):
    estimator = ewsg.Exponential(2, x=lambda kick: kick.decay)
    integrator = ewsg.Underdamped(step_size=0.01, friction=5.0)
    options = {"init": jnp.zeros(2), "discard": 0, "thin": 1}
    whole = ewsg.sample(gaussian, estimator, integrator, num_steps=30, **options)
    ewsg.sample(gaussian, estimator, integrator, num_steps=10, save_to=tmp_path / "run.npz", **options)
    with pytest.raises(ewsg.errors.InputError, match="pass estimator= again"):
        ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=20)
    equal(ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=20, estimator=estimator).draws, whole.draws)
    with pytest.raises(ewsg.errors.InputError, match="so it was made with another estimator"):
        ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=20, estimator=ewsg.Reshuffled(2))


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"estimator": ewsg.Uniform(7)}, "estimator= has batch_size 7 and the saved run has 5"),
        ({"integrator": ewsg.Underdamped(0.02, 5.0)}, "integrator= has step_size 0.02 and the saved run has 0.01"),
        ({"integrator": ewsg.Underdamped(lambda t: 0.01, 5.0)}, "has step_size '.*lambda>' and the saved run has 0.01"),
        ({"integrator": ewsg.UBU(0.01, 5.0)}, "integrator= has integrator 'UBU' and the saved run has 'Underdamped'"),
        ({"estimator": ewsg.recipes.sghmc(5, 0.02, 5.0)}, "integrator= has step_size 0.02"),
        ({"collect": lambda theta: theta}, "so it was made with another collect: pass the same one"),
    ],
)
def test_resume_with_other_settings_is_refused(gaussian, tmp_path, other, sentence):
    """Seen before: the run went on with them, and its record said that they were the old ones."""
    method, options = (ewsg.Uniform(5), ewsg.Underdamped(0.01, 5.0)), {"init": jnp.zeros(2), "discard": 0, "thin": 1}
    run = ewsg.sample(gaussian, *method, num_steps=3, save_to=tmp_path / "run.npz", **options)
    with pytest.raises(ewsg.errors.InputError, match=sentence):
        ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=2, **other)
    again = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=2, estimator=ewsg.recipes.sghmc(5, 0.01, 5.0))
    equal(again.draws[:, :3], run.draws)


@pytest.mark.parametrize("kind", [dict, list, tuple, Pair])
def test_settings_that_are_pytrees(centres, tmp_path, kind):
    """A starting point among the settings of an estimator comes back as it was, or the estimator has to be given."""

    def log_likelihood(params, centre):
        return -jnp.log1p(sum(jnp.sum((leaf - centre[0]) ** 2) for leaf in jax.tree.leaves(params)))

    target = ewsg.Target(log_likelihood, None, centres)
    a, b = jnp.array(1.0), {"c": jnp.array([2.0])}
    start = {dict: {"a": a, "b": b}, list: [a, b], tuple: (a, b), Pair: Pair(a, b)}[kind]
    estimator = ewsg.ControlVariate(ewsg.Uniform(3), start=start)
    options = {"init": start, "num_chains": 2, "discard": 0, "thin": 1}
    integrator = ewsg.Underdamped(step_size=0.02, friction=4.0)
    whole = ewsg.sample(target, estimator, integrator, num_steps=30, **options)
    ewsg.sample(target, estimator, integrator, num_steps=17, **options).save(tmp_path / "run.npz")
    again = {"like": start, "estimator": estimator} if kind is Pair else {}
    equal(ewsg.resume(tmp_path / "run.npz", target, num_steps=13, **again).draws, whole.draws)


def test_large_arrays_among_the_settings_stay_out_of_the_file(tmp_path):
    labels = np.arange(300_000) % 3  # more than a matrix of 512 × 512
    target = ewsg.Target(lambda p, x: -0.5 * (p - x) ** 2, None, np.zeros(300_000, np.float32))
    integrator = ewsg.Underdamped(1e-3, 50.0)
    options = {"init": jnp.array(0.0), "num_chains": 1, "discard": 0, "thin": 1}
    run = ewsg.sample(target, ewsg.Clustered(labels=labels), integrator, num_steps=5, **options)
    run.save(tmp_path / "run.npz")
    with pytest.raises(ewsg.errors.InputError, match="pass estimator= again"):
        ewsg.resume(tmp_path / "run.npz", target, num_steps=5)
    again = ewsg.resume(tmp_path / "run.npz", target, num_steps=5, estimator=ewsg.Clustered(labels=labels))
    assert again.draws.shape == (1, 10)


def test_preparation_is_paid_once(gaussian, tmp_path):
    """20 + 20 data passes with a mode search cost 40, not 40 less the search."""
    estimator = ewsg.ControlVariate(ewsg.Uniform(5), start=jnp.zeros(2))
    options = {"init": jnp.zeros(2), "discard": 0, "thin": 1}
    run = ewsg.sample(gaussian, estimator, ewsg.Underdamped(0.01, 5.0), data_passes=20, **options)
    run.save(tmp_path / "run.npz")
    assert run.cost.data_passes == 20
    assert ewsg.resume(tmp_path / "run.npz", gaussian, data_passes=20).cost.data_passes == 40


def test_arguments_of_resume_are_checked_before_any_work(saved, gaussian, monkeypatch):
    """Seen before: a mode search was done, and then the number of devices refused."""
    monkeypatch.setattr("ewsg.sampling.compose", lambda *_: pytest.fail("work was done"))
    for options, sentence in (
        ({"num_steps": 1, "devices": 99}, "devices=99"),
        ({"num_steps": 2**31}, "that a run can count"),
        ({}, "the saved run is complete"),
        ({"num_steps": 0}, "num_steps must be"),
        ({"num_steps": 1, "save_to": "no/such/folder/run.npz"}, "does not exist"),
    ):
        with pytest.raises(InputError, match=sentence):
            ewsg.resume(saved[1], gaussian, **options)


def test_half_precision_survives(centres, tmp_path):
    target = ewsg.Target(lambda t, c: -0.5 * jnp.sum((t.astype(jnp.float32) - c) ** 2), None, centres)
    run = ewsg.sample(target, ewsg.recipes.sgld(5, 1e-3), init=jnp.zeros(2, jnp.bfloat16), num_steps=8)
    run.save(tmp_path / "run.npz")
    loaded = ewsg.load(tmp_path / "run.npz")
    assert loaded.draws.dtype == jnp.bfloat16
    equal(loaded.draws, run.draws)
