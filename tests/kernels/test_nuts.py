"""Starting points of the kernels that adapt."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import NnxMlp, equinox_mlp, nnx

import ewsg
from ewsg._core.pytree import is_function
from ewsg.errors import InputError
from ewsg.kernels.nuts import starting_points


class TwoNumbers(eqx.Module):
    """A module whose parameters, in a pytree, can be called like the module itself."""

    weight: jax.Array

    def __call__(self, x):
        return self.weight @ x


def squares(module, x):
    return -0.5 * jnp.sum((module.weight - x) ** 2)


def test_the_arrays_of_a_module_are_a_start_and_no_function():
    start = eqx.partition(TwoNumbers(jnp.array([1.0, 2.0])), eqx.is_inexact_array)[0]
    assert callable(start)
    assert not is_function(start)
    target = ewsg.Target(squares, None, np.ones((3, 2)))
    positions = starting_points(target, start, jax.random.split(jax.random.key(0)), 1)
    assert positions.weight.tolist() == [[1.0, 2.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("start", "sentence"),
    [
        (lambda: NnxMlp(nnx.Rngs(0)), r"^init is a module \(NnxMlp\): .*ewsg\.modules\.parameters\(module\)$"),
        (lambda: equinox_mlp(jax.random.key(0)), r"^init\.activation.* is a function: .*ewsg\.modules\.parameters"),
        (lambda: {"a": jnp.zeros(2), 1: jnp.zeros(2)}, "^init has a dict whose keys JAX cannot sort"),
        (lambda: {"a": "text"}, r"init\['a'\].* must be floating-point"),
        (lambda: lambda key: 1 / 0, r"^init\(key\) failed: division by zero"),
    ],
    ids=["nnx", "equinox", "keys", "text", "function"],
)
def test_starts_that_are_none_are_refused_in_one_sentence(start, sentence):
    target = ewsg.Target(lambda params, x: -jnp.sum(x**2), None, np.ones((3, 2)))
    with pytest.raises(InputError, match=sentence):
        starting_points(target, start(), jax.random.split(jax.random.key(0)), 1)
