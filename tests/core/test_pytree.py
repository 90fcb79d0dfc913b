"""Pytrees, and what is a function rather than one."""

import functools

import jax
import jax.numpy as jnp

from ewsg._core.pytree import is_function


def test_functions_of_a_key_are_functions():
    assert is_function(lambda key: jnp.zeros(2))
    assert is_function(functools.partial(jax.random.normal, shape=(2,)))
    assert is_function(jax.tree_util.Partial(lambda scale, key: scale, jnp.ones(2)))
    assert not is_function(jnp.zeros(2))
