"""Inspection of traced functions, independent of the version of JAX."""

from collections.abc import Iterator
from typing import Any, cast

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn


def bodies(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """The functions that an equation calls: the body of a loop, the branches of a condition."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part


def num_bytes(jaxpr: Jaxpr) -> int:
    """Bytes of all intermediates of a function; all iterations of a `scan` count, but only one of a `while`."""
    total = 0
    for eqn in jaxpr.eqns:
        shapes = [cast(Any, var.aval) for var in eqn.outvars]
        inner = sum(num_bytes(body) for body in bodies(eqn))
        total += sum(shape.size * shape.dtype.itemsize for shape in shapes) + inner * eqn.params.get("length", 1)
    return total
