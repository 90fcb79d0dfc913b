"""The vocabulary of shapes and roles used in signatures."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Array, Float, Int, Key as _Key, PyTree

HostOrDevice: TypeAlias = Array | np.ndarray
"""A JAX array, or a NumPy array, which moves to the device when it is used."""

Key: TypeAlias = _Key[Array, ""]
"""A typed JAX key (`jax.random.key`), consumed at most once."""

Scalar: TypeAlias = Float[Array, ""] | float
"""A real number: a Python float, or a traced array with no axes."""

Count: TypeAlias = Int[Array, ""] | int

Position: TypeAlias = PyTree[Any]
"""A pytree of floating-point arrays: the parameters, their momentum, or a force on them."""

Batch: TypeAlias = PyTree[Any]
"""A pytree of data with one leading axis."""

Indices: TypeAlias = Int[Array, " b"]

Schedule: TypeAlias = Callable[[Int[Array, ""]], Scalar]
"""Step size as a function of the step counter; optax schedules are such functions."""
