"""JAX's rules of type promotion around packages that are not written for strict ones."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def lenient() -> Iterator[None]:
    """JAX's own rules of promotion, while a package that mixes dtypes and ranks is traced or run."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
