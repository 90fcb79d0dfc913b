"""The registry of components, and their settings as JSON."""

import collections
import dataclasses
import json
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg._core.component import Component, class_key, describe, rebuild, registered
from ewsg.collect import AbstractCollector
from ewsg.estimators import AbstractEstimator
from ewsg.integrators import AbstractIntegrator
from ewsg.sampler import AbstractKernel


class Uniform(Component):
    """A class of the user's with the name of one of ours."""

    batch_size: int = eqx.field(static=True, default=1)


class Holder(Component):
    """Holds anything."""

    value: object = eqx.field(static=True, default=None)


class Pair(NamedTuple):
    a: float
    b: float


@dataclasses.dataclass
class Odd:
    """Has neither a dtype nor a shape."""

    number: int = 3


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not an array")


def test_registered_lists_the_concrete_components_of_a_role():
    exported = [name for name in dir(ewsg.integrators.public) if name[0].isupper() and not name.startswith("Abstract")]
    assert "BAOAB" in exported
    assert [cls.__name__ for cls in registered(AbstractIntegrator)] == sorted(exported)
    collectors = ["Constrained", "Draws", "InCoordinates", "Moments", "Predictive"]
    assert [cls.__name__ for cls in registered(AbstractCollector)] == collectors
    kernels = {name for name in dir(ewsg.kernels.public) if name[0].isupper()}
    assert {"NUTS", "FlyMC", "RandomWalk"} <= kernels == {cls.__name__ for cls in registered(AbstractKernel)}
    estimators = registered(AbstractEstimator)
    assert ewsg.Uniform in estimators
    assert Uniform not in registered(Component)
    assert not any(cls.__name__.startswith("Abstract") for cls in registered(Component))


def test_a_class_of_the_same_name_does_not_replace_ours():
    """Seen before: the registry was keyed by the bare name, and `resume` built the user's class."""
    assert type(rebuild(describe(ewsg.Uniform(7)), "estimator")) is ewsg.Uniform
    assert type(rebuild(describe(Uniform(7)), "estimator")) is Uniform
    assert describe(ewsg.Uniform(7))["component"] == describe(Uniform(7))["component"] == "Uniform"
    assert class_key(ewsg.Uniform) == "ewsg:Uniform"
    assert class_key(Uniform) == f"{__name__}:Uniform"


def test_a_class_that_is_not_defined_here_is_asked_for():
    config = describe(Uniform(7)) | {"$class": "__main__:Uniform"}
    with pytest.raises(ewsg.errors.InputError, match=r"estimator Uniform is not defined here: pass estimator= again"):
        rebuild(config, "estimator")


@pytest.mark.parametrize(
    "value",
    [None, True, 3, 0.5, "name", (1, (2.0, "x")), [1, [2]], {"a": 1, "b": [2]}, {1: "x", 2: (3,)}, {}, (), []],
    ids=str,
)
def test_plain_settings_come_back_as_they_were(value):
    back = rebuild(json.loads(json.dumps(describe(Holder(value)))), "estimator").value
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(np.int64(4), 4), (np.bool_(True), True), (np.float32(0.5), 0.5), (np.float64(0.25), 0.25), (jnp.float32(2), 2.0)],
    ids=str,
)
def test_scalars_of_numpy_and_jax_become_numbers(value, expected):
    described = json.loads(json.dumps(describe(value)))
    assert described == expected
    assert type(described) is type(expected)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32, jnp.bfloat16])
def test_arrays_come_back_with_their_dtype(dtype):
    array = np.asarray([[0, 1], [1, 0]]).astype(dtype)
    back = rebuild(json.loads(json.dumps(describe(array))), "estimator")
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    "value",
    [
        Odd(),
        Hostile(),
        object(),
        1j,
        np.array([1j]),
        np.array(["a"]),
        np.datetime64("2020-01-01"),
        b"bytes",
        {1, 2},
        10**5000,
        {(1, 2): 3},
        Pair(1.0, 2.0),
        collections.OrderedDict(b=1, a=2),
        collections.defaultdict(list),
        jax.random.key(0),
        np.zeros(300_000),
        len,
        lambda x: x,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold_is_named_and_asked_for(value):
    """Seen before: complex numbers, bytes and keys failed here or in JSON; an OrderedDict lost its order."""
    described = json.loads(json.dumps(describe(value)))
    assert set(described) == {"$opaque"}
    with pytest.raises(ewsg.errors.InputError, match="pass integrator= again"):
        rebuild(described, "integrator")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "bool"])
def test_matrices_of_hundreds_of_parameters_come_back(dtype):
    """Seen before: the coordinates of a plan for more than 100 parameters were not saved, so it could not go on."""
    numbers = np.arange(128 * 130).reshape(128, 130)
    matrix = np.asarray(jnp.asarray(numbers % 7 - 3.3).astype(dtype)) if dtype == "bfloat16" else numbers.astype(dtype)
    transposed = matrix.T  # not contiguous
    described = json.loads(json.dumps(describe(transposed)))
    back = rebuild(described, "coordinates")
    assert back.dtype == transposed.dtype
    np.testing.assert_array_equal(back, transposed)
    back[0, 0] = 0  # the array is the caller's own


def test_cycles_end():
    cycle = []
    cycle.append(cycle)
    assert "$opaque" in json.dumps(describe(cycle))


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"component": "Uniform"},
        {"$class": 3},
        {"$class": []},
        {"$dict": 3},
        {"$packed": "AAAA", "dtype": "float32", "shape": [1]},
        {"$packed": "AAAAAA==", "dtype": "float32", "shape": [2]},
        {"$packed": "AAAAAA==", "dtype": "object", "shape": [1]},
        {"$packed": 3, "dtype": "float32", "shape": [1]},
        {"$dict": [[[], 1]]},
        {"$list": None},
        {"$array": [[1], 2], "dtype": "float32"},
        {"$array": [1], "dtype": "no"},
        {"$array": [1]},
        describe(ewsg.Uniform(3)) | {"batch_size": {}},
        describe(ewsg.Uniform(3)) | {"size": 3},
    ],
    ids=str,
)
def test_a_damaged_description_is_one_sentence(config):
    with pytest.raises(ewsg.errors.InputError) as caught:
        rebuild(config, "estimator")
    assert "\n" not in str(caught.value)
