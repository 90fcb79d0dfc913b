"""Looking into traced functions, in a way that does not depend on the version of JAX."""

from collections.abc import Iterator

from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn


def bodies(eqn: JaxprEqn) -> Iterator[Jaxpr]:
    """The functions that an equation calls: the body of a loop, the branches of a condition."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part
