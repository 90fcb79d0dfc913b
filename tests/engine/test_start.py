"""The door of `sample`: seeds and settings, and what is refused before any work."""

import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood
from short_runs import METHOD, equal, sample

import ewsg
from ewsg import _random
from ewsg.errors import InputError
from ewsg.estimators.base import AbstractMinibatch


def test_seeds_that_agree_modulo_2_32_differ(gaussian):
    runs = [sample(gaussian, seed=seed, rng=rng).draws for rng in ("fast", "threefry") for seed in (5, 2**32 + 5)]
    assert len({draws.tobytes() for draws in runs}) == 4
    words = jax.random.key_data(_random.make_key(2**32 + 5, "threefry"))
    np.testing.assert_array_equal(words, [1, 5])


@pytest.mark.parametrize("seed", [-1, 2**64, 2**70])
def test_seeds_out_of_range(gaussian, seed):
    with pytest.raises(InputError, match=r"from 0 to 2\^64"):
        sample(gaussian, seed=seed)


@pytest.mark.untyped
def test_numpy_integers_are_settings_like_any_other(gaussian, tmp_path):
    plain = sample(gaussian, seed=3)
    run = sample(
        gaussian,
        num_chains=np.int64(2),
        seed=np.int64(3),
        num_steps=np.int32(40),
        thin=np.uint8(4),
        discard=np.float32(0.5),
        save_to=tmp_path / "run.npz",
    )
    equal(run.draws, plain.draws)
    assert run.settings["seed"] == 3
    equal(ewsg.load(tmp_path / "run.npz").draws, plain.draws)


def test_versions_name_the_library_itself(gaussian):
    assert sample(gaussian).settings["versions"]["ewsg"] == ewsg.__version__


class Unprepared(AbstractMinibatch):
    batch_size: int = eqx.field(static=True, default=4)

    def prepare(self, target):
        raise AssertionError("work was done before the arguments were checked")

    def estimate(self, key, target, kick, state): ...

    def cost(self, num_data): ...

    def noise_factor(self, num_data): ...


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_chains": 0}, "num_chains must be"),
        ({"seed": "today"}, "seed must be"),
        ({"devices": 99}, "devices=99"),
        ({"init": None}, "sample needs init="),
        ({"init": jnp.zeros(2, int)}, "must be floating-point"),
        ({"init": {1: jnp.zeros(1), "a": jnp.zeros(1)}}, "keys JAX cannot sort"),
        ({"save_to": "no/such/folder/run.npz"}, "does not exist"),
        ({"discard": 1.0}, r"share from 0.0 to below 1.0"),
        ({"thin": 0}, "thin must be"),
        ({"num_steps": 5, "data_passes": 3}, "not both"),
        ({"divergence_limit": -1}, "divergence_limit must be"),
        ({"collect": "moments"}, r"ewsg.collect.Moments\(\), not 'moments'"),
        ({"collect": 3}, "collect must be None"),
        ({"collect": ewsg.collect.Moments}, r"write Moments\(\)"),
        ({"collect": lambda theta: theta @ jnp.zeros(3)}, "collect failed"),
        ({"collect": lambda theta: "text"}, "collect failed"),
        ({"collect": lambda theta: jax.random.key(0)}, "a file holds numbers only"),
        ({"num_chains": 10**9}, "num_chains=1,000,000,000 needs .* run fewer chains"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_arguments_are_checked_before_any_work(gaussian, options, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        ewsg.sample(gaussian, Unprepared(), METHOD[1], **{"init": jnp.zeros(2)} | options)
    assert "\n" not in str(caught.value)


def test_a_forked_process_is_refused(gaussian, monkeypatch):
    monkeypatch.setattr("ewsg._core.process._owner", os.getpid() + 1)
    with pytest.raises(InputError, match="forked"):
        sample(gaussian)


class Line(eqx.Module):
    """A module that can be called, as the parameters of a network can."""

    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


def test_a_module_of_arrays_is_a_starting_point_and_no_function(centres):
    parameters, _ = eqx.partition(Line(jnp.ones(2)), eqx.is_inexact_array)
    target = ewsg.Target(lambda line, centre: gaussian_log_likelihood(line.weight, centre), None, centres)
    run = ewsg.sample(target, *METHOD, init=parameters, num_chains=2, num_steps=2, discard=0)
    assert run.draws.weight.shape == (2, 2, 2)


def test_steps_beyond_what_can_be_counted(gaussian, tmp_path):
    path = tmp_path / "run.npz"
    sample(gaussian, save_to=path)
    with pytest.raises(InputError, match="more than the 2,147,483,647"):
        ewsg.resume(path, gaussian, num_steps=2**31 - 40)
    with pytest.raises(InputError, match="start a new run"):
        sample(gaussian, num_steps=2**31)
