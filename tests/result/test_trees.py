"""Every pytree comes back from a file with each value under its own name."""

import collections
import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import assert_same

import ewsg
from ewsg._core.component import describe
from ewsg.collect import Moments, MomentsSummary
from ewsg.errors import InputError
from ewsg.result.file.trees import store


class Pair(NamedTuple):
    second: Any
    first: Any


class Affine(eqx.Module):
    weight: Any
    bias: Any


def leaf(value):
    return np.full((2, 3), value, np.float32)


PLAIN = {
    "slashes": {"a/b": leaf(1), "a": {"b": leaf(2)}},
    "integer keys": {2: leaf(1), 10: leaf(2), -1: leaf(3)},
    "one leaf": leaf(1),
    "nothing": (),
    "none": {"a": None, "b": leaf(1)},
    "mixed": {"z": [leaf(1), (leaf(2), {"b": leaf(3), "a": None})], "": leaf(4), "header": leaf(5)},
    "quotes": {"'": leaf(1), '"': leaf(2), "['a']": leaf(3)},
    "bfloat16": {"a": leaf(1).astype(jnp.bfloat16), "b": np.zeros((2, 3, 0), np.int8)},
}


OTHER = {
    "ordered dict": (collections.OrderedDict(b=leaf(1), a=leaf(2)), {"['b']": leaf(1), "['a']": leaf(2)}),
    "named tuple": (
        Pair(leaf(1), {"b": leaf(2), "a": leaf(3)}),
        {".second": leaf(1), ".first['b']": leaf(2), ".first['a']": leaf(3)},
    ),
    "module": (
        Affine(leaf(1), [leaf(2), leaf(3)]),
        {".weight": leaf(1), ".bias[0]": leaf(2), ".bias[1]": leaf(3)},
    ),
    "default dict": (
        collections.defaultdict(list, b=leaf(1), a=leaf(2)),
        {"['b']": leaf(1), "['a']": leaf(2)},
    ),
    "inside a dict": (
        {"z": collections.OrderedDict(b=leaf(1), a=(leaf(2), leaf(3))), "y": leaf(4)},
        {"z": {"['b']": leaf(1), "['a'][0]": leaf(2), "['a'][1]": leaf(3)}, "y": leaf(4)},
    ),
    "keys that are tuples": ({(2, 1): leaf(1), (1, 2): leaf(2)}, {"[(2, 1)]": leaf(1), "[(1, 2)]": leaf(2)}),
}


def make(run, draws):
    """A run with other draws, and settings that say that they are all it kept."""
    return dataclasses.replace(run, draws=draws, fingerprint=run.fingerprint | {"position": first(draws)})


def first(draws):
    return jax.tree.map(lambda array: array[0, 0], draws)


@pytest.fixture(scope="module")
def run(gaussian):
    """A run of two chains and three draws."""
    method = ewsg.recipes.sgld(5, 1e-3)
    return ewsg.sample(gaussian, method, init=jnp.zeros(2), num_chains=2, num_steps=3, discard=0, thin=1)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_trees_come_back_as_they_were(run, tmp_path, name):
    """Seen before: "a/b" and a nested b were one array; integer keys became the names of a dict."""
    make(run, PLAIN[name]).save(tmp_path / "run.npz")
    assert_same(ewsg.load(tmp_path / "run.npz").draws, PLAIN[name])


@pytest.mark.parametrize("name", OTHER)
def test_other_trees_come_back_by_name_or_like_an_example(run, tmp_path, name):
    """Seen before: of an ordered dict, `like` gave back a's draws as b's."""
    draws, by_name = OTHER[name]
    make(run, draws).save(tmp_path / "run.npz")
    assert_same(ewsg.load(tmp_path / "run.npz", like=first(draws)).draws, draws)
    assert_same(ewsg.load(tmp_path / "run.npz").draws, by_name)


@pytest.mark.parametrize("name", OTHER)
def test_a_run_loaded_by_name_is_saved_as_it_was(run, tmp_path, name):
    """Seen before: `load` dropped the chains, and saving the loaded run lost them for good."""
    make(run, OTHER[name][0]).save(tmp_path / "run.npz")
    ewsg.load(tmp_path / "run.npz").save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "run.npz").read_bytes()


NESTED = {"a": {"b": leaf(1)}, "c": leaf(2)}


MOMENTS = {
    "one array": (leaf(1), leaf(1), "theta[0]"),
    "nested": (NESTED, NESTED, "a.b[0]"),
    "named tuple": (*OTHER["named tuple"], ".first['a'][0]"),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_come_back_as_moments(run, tmp_path, name):
    """Seen before: a dict of paths without `.mean`, and a summary that called a parameter a']['b[0]."""
    mean, by_name, first_row = MOMENTS[name]
    position = jax.tree.map(lambda array: array[0], mean)
    made = dataclasses.replace(
        run,
        draws=(),
        collected=moments(mean),
        settings=run.settings | {"collect": describe(Moments())},
        fingerprint=run.fingerprint | {"position": position},
    )
    made.save(tmp_path / "run.npz")
    loaded = ewsg.load(tmp_path / "run.npz")
    assert_same(loaded.collected, moments(by_name))
    assert_same(ewsg.load(tmp_path / "run.npz", like=position).collected, moments(mean))
    assert loaded.summary().parameters["parameter"][0] == first_row
    assert sorted(loaded.summary().parameters["mean"]) == sorted(made.summary().parameters["mean"])
    loaded.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "run.npz").read_bytes()


def moments(mean):
    return MomentsSummary(mean, jax.tree.map(lambda array: array + 10, mean))


@pytest.mark.float32
def test_an_example_that_does_not_fit_is_refused(run, tmp_path):
    draws = collections.OrderedDict(b=leaf(1), a=leaf(2))
    make(run, draws).save(tmp_path / "run.npz")
    b, a = first(draws).values()
    wrong = {
        "has the parameters": [
            {"b": b, "a": a},  # JAX sorts a dict: its leaves are in another order
            collections.OrderedDict(a=a, b=b),
            collections.OrderedDict(b=b),
            collections.OrderedDict(b=b, c=a),
            [b, a],
        ],
        "has shape and dtype": [
            collections.OrderedDict(b=b, a=np.zeros(2, np.float32)),
            collections.OrderedDict(b=b, a=np.zeros((), np.int32)),
        ],
        "cannot be sorted": [{1: b, "a": a}],
    }
    for sentence, examples in wrong.items():
        for like in examples:
            with pytest.raises(InputError, match=sentence) as caught:
                ewsg.load(tmp_path / "run.npz", like=like)
            assert "\n" not in str(caught.value)
    assert_same(ewsg.load(tmp_path / "run.npz", like=collections.OrderedDict(b=0.0, a=np.float64(0.0))).draws, draws)


def test_draws_without_their_chains_cannot_go_on(run, gaussian, tmp_path):
    dataclasses.replace(run, checkpoint=None).save(tmp_path / "run.npz")
    assert_same(ewsg.load(tmp_path / "run.npz").draws, run.draws)
    with pytest.raises(InputError, match="not the state of their chains"):
        ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=1)
    thinned = dataclasses.replace(run, draws=run.draws[:, ::2])
    thinned.save(tmp_path / "run.npz")
    assert_same(ewsg.load(tmp_path / "run.npz").draws, thinned.draws)
    with pytest.raises(InputError, match="2 draws and should have 3"):
        ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=1)


@pytest.mark.parametrize(
    "value",
    [
        np.int64(4),
        np.bool_(True),
        np.arange(3),
        object(),
        {1, 2},
        1j,
        jax.random.key(0),
        {"a": {3: np.float32(1)}},
        len,
    ],
    ids=lambda value: type(value).__name__,
)
def test_settings_of_any_kind_are_saved(run, tmp_path, value):
    """Seen before: num_chains=np.int64(4) ran to its end, and then nothing was written."""
    dataclasses.replace(run, settings=run.settings | {"note": value}).save(tmp_path / "run.npz")
    loaded = ewsg.load(tmp_path / "run.npz")
    assert_same(loaded.draws, run.draws)
    assert "note" in loaded.settings


def test_keys_that_cannot_be_sorted_are_one_sentence(run, tmp_path):
    with pytest.raises(InputError, match="keys of one type"):
        store({1: leaf(1), "a": leaf(2)})
    with pytest.raises(InputError, match="an array of no known dtype"):
        dataclasses.replace(run, draws={"a": np.array([["x"], ["y"]])}).save(tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())


class Split(NamedTuple):
    high: Any
    low: Any


def test_draws_of_a_class_that_the_collector_makes_go_on(gaussian, tmp_path):
    """The collector gives the class back: `restored` returns the draws in it."""
    collector = ewsg.collect.Draws(lambda theta: Split(theta[0], theta[1:]))
    method = ewsg.Uniform(10), ewsg.Underdamped(step_size=0.02, friction=5.0)
    run = ewsg.sample(gaussian, *method, init=jnp.zeros(2), num_chains=2, num_steps=4, discard=0, collect=collector)
    run.save(tmp_path / "run.npz")
    saved = ewsg.result.storage.read(tmp_path / "run.npz")
    assert set(saved.run.draws) == {".high", ".low"}
    restored = saved.restored(ewsg.compose(gaussian, *method), collector)
    assert_same(restored.draws, run.draws)
    assert_same(store(restored.checkpoint).leaves, store(run.checkpoint).leaves)
    assert jax.tree.structure(restored.checkpoint) == jax.tree.structure(run.checkpoint)
    with pytest.raises(InputError, match="a different estimator, integrator or collector"):
        saved.restored(ewsg.compose(gaussian, *method), ewsg.collect.Draws())
