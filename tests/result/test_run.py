"""A run is copied, pickled and resumed whole."""

import collections
import copy
import io
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from trees import assert_same

import ewsg
from ewsg.errors import InputError


@pytest.fixture(scope="module")
def ordered():
    """A target whose parameters have an order that JAX keeps and a plain dict would not: b about 3, a about 0."""
    data = np.random.default_rng(0).normal([3.0, 0.0], 1.0, (50, 2)).astype(np.float32)

    def log_likelihood(params, row):
        return -0.5 * ((params["b"] - row[0]) ** 2 + (params["a"] - row[1]) ** 2)

    start = collections.OrderedDict(b=jnp.array(3.0), a=jnp.array(0.0))
    target = ewsg.Target(log_likelihood, None, data)

    def sample(num_steps):
        method = ewsg.Uniform(10), ewsg.Underdamped(step_size=0.02, friction=5.0)
        return ewsg.sample(target, *method, init=start, num_chains=2, num_steps=num_steps, discard=0, thin=1)

    return target, start, sample(12), sample(5)


def test_resume_keeps_the_order_of_an_ordered_dict(ordered, tmp_path):
    """Seen before: the chains' positions and momenta were exchanged, and the status was ok."""
    target, start, whole, half = ordered
    path = tmp_path / "run.npz"
    half.save(path)
    with pytest.raises(InputError, match="pass like=, an example of them"):
        ewsg.resume(path, target, num_steps=7)
    resumed = ewsg.resume(path, target, num_steps=7, like=start)
    assert list(resumed.draws) == ["b", "a"]
    assert_same(resumed.draws, whole.draws)
    assert 2 < resumed.draws["b"].mean() < 4
    with pytest.raises(InputError, match="has the parameters"):
        ewsg.resume(path, target, num_steps=7, like=collections.OrderedDict(a=start["a"], b=start["b"]))


@pytest.mark.parametrize(
    "copied",
    [
        lambda run: pickle.loads(pickle.dumps(run)),
        lambda run: pickle.loads(pickle.dumps(run, protocol=2)),
        copy.deepcopy,
        copy.copy,
        lambda run: joblib_round_trip(run),
        lambda run: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(run)))),
    ],
    ids=["pickle", "protocol 2", "deepcopy", "copy", "joblib", "twice"],
)
def test_copies_are_whole_and_can_go_on(ordered, tmp_path, copied):
    """Seen before: typed keys of our own generator in the checkpoint could not be pickled."""
    *_, half = ordered
    again = copied(half)
    assert_same(again.draws, half.draws)
    assert_same(again.stats, half.stats)
    assert repr(again) == repr(half)
    again.save(tmp_path / "copy.npz")
    half.save(tmp_path / "run.npz")
    assert (tmp_path / "copy.npz").read_bytes() == (tmp_path / "run.npz").read_bytes()


def joblib_round_trip(run):
    import joblib

    file = io.BytesIO()
    joblib.dump(run, file)
    file.seek(0)
    return joblib.load(file)


def test_an_unpickled_and_a_loaded_run_are_resumed(ordered, tmp_path):
    target, start, whole, half = ordered
    pickle.loads(pickle.dumps(half)).save(tmp_path / "run.npz")
    ewsg.load(tmp_path / "run.npz").save(tmp_path / "again.npz")
    resumed = ewsg.resume(tmp_path / "again.npz", target, num_steps=7, like=start)
    assert_same(resumed.draws, whole.draws)
