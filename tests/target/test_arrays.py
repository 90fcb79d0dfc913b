"""Data at the door: owned, copied once, and refused in one sentence where their values would change."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import ewsg
from ewsg import models
from ewsg._core import memory
from ewsg.errors import InputError

X = np.arange(6.0).reshape(3, 2)
FRAME = pd.DataFrame({"a": [1.5, 2.5], "b": [True, False]})
HUGE = 3_000_000_000


def target(data):
    return ewsg.Target(lambda theta, x: -0.5 * jnp.sum((theta - x) ** 2), None, data)


def held(data) -> np.ndarray:
    """What a target holds of its data."""
    return np.asarray(target(data).data.arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, jnp.bfloat16])
def test_data_belong_to_the_target(dtype):
    data = X.astype(dtype)
    built = target(data), models.logistic(data, [0, 1, 1]), models.linear(data, [0, 1, 1])
    before = [np.array(leaf) for leaf in jax.tree.leaves([one.data.arrays for one in built])]
    data[:] = 5
    for was, now in zip(before, jax.tree.leaves([one.data.arrays for one in built]), strict=True):
        np.testing.assert_array_equal(was, now)


def test_writing_to_large_data_at_once_changes_nothing():
    for _ in range(4):  # JAX copies in the background: what is written meanwhile would be read
        data = np.zeros((2**21, 4), np.float32)
        made = target(data)
        data[:] = 5
        assert not np.any(np.asarray(made.data.arrays))


def test_responses_belong_to_the_target():
    responses = np.array([1.0, 2.0, 3.0], np.float32)
    linear = models.linear(X, responses)
    responses[:] = 0
    assert linear.data.arrays["responses"].tolist() == [1.0, 2.0, 3.0]


def test_arrays_of_jax_are_not_copied():
    data = jnp.asarray(X, jnp.float32)
    assert target(data).data.arrays is data
    assert models.poisson(data, [0, 1, 2]).data.arrays["features"] is data


def test_a_target_may_be_built_of_traced_data():
    force = jax.jit(lambda data: target(data).full_force(jnp.zeros(2)))(X)
    assert force.tolist() == [6.0, 9.0]


_PEAK = """
import sys
import jax, numpy as np, ewsg
from ewsg import models

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def build(rows):
    labels = np.arange(len(rows)) % 2
    return {
        "target": lambda: ewsg.Target(lambda t, x: t, None, rows),
        "logistic": lambda: models.logistic(rows, labels),
        "linear": lambda: models.linear(rows, labels),
    }[sys.argv[1]]()

build(np.ones((10, 50), sys.argv[2]))  # whatever is compiled or imported once
rows = np.ones((500_000, 50), sys.argv[2])
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the high-water mark starts here
before = status("VmRSS")
made = build(rows)
size = sum(leaf.nbytes for leaf in jax.tree.leaves(made.data.arrays))
print((status("VmHWM") - before) / size)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="needs the high-water mark of Linux")
@pytest.mark.parametrize(("what", "dtype"), [("target", "float32"), ("logistic", "float64"), ("linear", "float64")])
def test_data_are_copied_once(what, dtype):
    here = {"PYTHONPATH": str(Path(ewsg.__file__).parents[1])}
    command = [sys.executable, "-c", _PEAK, what, dtype]
    done = subprocess.run(command, env=os.environ | here, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert 0.9 < float(done.stdout) < 1.3  # in copies of what the target holds, beyond the input


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    data = np.memmap(tmp_path / "x.dat", np.float32, "w+", shape=(1000, 10))
    data[:] = 2
    assert np.all(held(data) == 2)
    monkeypatch.setattr(memory, "available_bytes", lambda: 40_000)
    monkeypatch.setattr(ewsg.target.arrays, "own", lambda *_: pytest.fail("it was read"))
    with pytest.raises(InputError, match=r"^a copy of the data in memory needs .* use fewer rows"):
        target(data)
    with pytest.raises(InputError, match=r"^logistic: a copy of the features in memory needs "):
        models.logistic(data, np.zeros(1000))


REFUSED = {
    "int64": (np.array([1, HUGE]), r"integers in data \(first in row 1\) do not fit int32 .*: encode .*jax_enable_x64"),
    "negative int64": (np.array([[0, 1], [-HUGE, 0]]), r"first in row 1\) do not fit int32"),
    "uint64": (
        {"id": np.array([2**40, 1], np.uint64)},
        r"integers in data\['id'\] \(first in row 0\) do not fit uint32",
    ),
    "float64": (np.array([1.0, 2.0, 1e300]), r"numbers in data \(first in row 2\) do not fit float32 .*: rescale"),
    "longdouble": (np.array([1.0, -1e300], np.longdouble), r"first in row 1\) do not fit float32"),
    "NaN": (np.array([1.0, np.nan, np.inf]), r"^2 NaN or infinite entries in data \(first in row 1\): drop or impute"),
    "masked": (np.ma.masked_array(X, X > 2), "no masked entries"),
    "complex": (X + 1j, "must be real numbers, not complex128"),
    "times": (np.array(["2020-01-01"], "M8[D]"), r"not datetime64\[D\]: give times as numbers"),
    "sparse": (scipy.sparse.csr_array(X), r"not a sparse matrix: give its \.toarray\(\)"),
    "generator": ((row for row in X), r"not an iterable \(generator\): collect it"),
    "loader": (type("Loader", (), {"__iter__": lambda self: iter(X)})(), r"not an iterable \(Loader\): collect it"),
    "list": ([1.0, 2.0], r"lists of numbers: .*np\.asarray"),
    "lists": ([[[1.0, 2.0]], [[3.0, 4.0]]], r"lists of numbers: .*np\.asarray"),
    "a list in a dict": ({"x": X, "y": [1, 2, 3]}, r"data\['y'\]\[0\] is a scalar: .*np\.asarray"),
    "keys": ({"x": X, 3: X}, "keys JAX cannot sort"),
    "objects that are numbers": (FRAME.to_numpy(object), r"not Python objects: convert it with \.astype\(float\)"),
    "objects that are not": (
        np.array([[1.0], ["red"]], object),
        "encode categories as integers, such as 'red' in row 1",
    ),
    "objects with holes": (np.array([1.0, None], object), "drop or impute rows such as row 1, which holds None"),
    "columns": (FRAME.assign(c=["u", "v"], d=pd.Categorical(["u", "v"])), "numeric columns only: encode or drop c, d$"),
    "a hole": (
        FRAME.assign(c=pd.array([1, None], dtype="Int64")),
        r"1 NaN or infinite entries in data \(first in row 1",
    ),
    "no columns": (FRAME[[]], "at least one column"),
    "category": (pd.Series(["u", "v"], dtype="category"), "not category: encode categories"),
    "rows": (np.broadcast_to(np.float32(0), (2**31,)), r"at most 2\^31 − 1 rows, not 2,147,483,648: "),
}


@pytest.mark.float32
@pytest.mark.parametrize("name", REFUSED)
def test_what_would_change_on_its_way_is_refused_in_one_sentence(name):
    data, sentence = REFUSED[name]
    with pytest.raises(InputError, match=sentence) as caught:
        target(data)
    assert "\n" not in str(caught.value)


ACCEPTED = {
    "bfloat16": (X.astype(jnp.bfloat16), X, "bfloat16"),
    "float8": (X.astype(jnp.float8_e4m3fn), X, "float8_e4m3fn"),
    "longdouble": (X.astype(np.longdouble), X, "float32"),
    "precision lost": (np.array([0.1]), np.float32([0.1]), "float32"),
    "small int64": (np.array([-(2**31), 2**31 - 1]), [-(2**31), 2**31 - 1], "int32"),
    "uint32": (np.array([HUGE], np.uint32), [HUGE], "uint32"),
    "another order": (np.asfortranarray(X)[::-1, ::-1], X[::-1, ::-1], "float32"),
    "other bytes": (X.astype(">f8"), X, "float32"),
    "dummies": (FRAME, [[1.5, 1.0], [2.5, 0.0]], "float32"),
    "whole numbers": (pd.DataFrame({"a": [1, 2], "b": [True, False]}), [[1, 1], [2, 0]], "int32"),
    "nullable": (pd.DataFrame({"a": pd.array([1, 2], dtype="Int64")}), [[1], [2]], "int32"),
    "nullable column": (pd.Series([1, 2], dtype="Int64"), [1, 2], "int32"),
    "column": (FRAME["b"], [True, False], "bool"),
    "range": (range(3), [0, 1, 2], "int32"),
    "no mask": (np.ma.masked_array(X, np.zeros_like(X, bool)), X, "float32"),
}


@pytest.mark.float32
@pytest.mark.parametrize("name", ACCEPTED)
def test_numbers_of_every_kind_are_taken(name):
    data, values, dtype = ACCEPTED[name]
    found = held(data)
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(found.astype(np.float64), np.asarray(values, np.float64))


@pytest.mark.float32
def test_blocks_do_not_show(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    rows[777, 1] = np.nan
    monkeypatch.setattr(ewsg.target.arrays, "_BLOCK_BYTES", 500)
    with pytest.raises(InputError, match="first in row 777"):
        target(rows)
    np.testing.assert_array_equal(held(np.nan_to_num(rows)), np.nan_to_num(rows).astype(np.float32))


def test_models_take_tables_and_refuse_in_the_same_words():
    features = pd.DataFrame({"a": [1.5, 2.5], "b": [True, False]})
    assert models.linear(features, [1, 2]).data.arrays["features"].tolist() == [[1.5, 1.0], [2.5, 0.0]]
    assert models.with_intercept(features).tolist() == [[1.0, 1.5, 1.0], [1.0, 2.5, 0.0]]
    assert models.logistic(X.astype(jnp.bfloat16), [0, 1, 0]).data.arrays.tolist() == [[0, -1], [2, 3], [-4, -5]]
    with pytest.raises(InputError, match=r"^linear: features must be a dense array"):
        models.linear(scipy.sparse.csr_array(X), [1, 2, 3])
    with pytest.raises(InputError, match=r"^linear: responses must be numbers, not Python objects: convert it"):
        models.linear(X, np.array([1, True, 2.5], object))
    with pytest.raises(InputError, match="labels must be below"):
        models.softmax(X, [0.0, 1.0, 3e9])
