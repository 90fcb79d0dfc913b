"""What the compiler is told and what has to be hidden from it, so that its code for the CPU is fast.

Values are not changed, but for rounding.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

_VECTORS = {"xla_cpu_prefer_vector_width": 512}
"""1.5 times as fast where noise is what takes the time."""
_EIGEN = {"xla_cpu_experimental_ynn_fusion_type": ""}
"""Products by Eigen. YNNPACK, the default, is faster on small ones, but asks the system for memory in every product."""


@functools.cache
def options(large: bool) -> dict[str, Any]:
    """Options for the one loop: those of ours that this version of JAX knows; none but on the CPU.

    Args:
        large: whether products have operands of many megabytes, as those with the patches of a convolution.
    """
    if jax.default_backend() != "cpu":
        return {}
    wanted = _VECTORS | _EIGEN if large else _VECTORS
    return {name: value for name, value in wanted.items() if _known(name, value)}


def _known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except Exception:  # which one differs between versions
        return False
    return True


def stored(array: Array) -> Array:
    """The same numbers, written to memory once.

    The compiler would otherwise compute them again in every kernel that reads them: hash an index for every entry of
    every row that it gathers, or read a gradient against the order of its memory in the sum and in the step. It fuses
    through an `optimization_barrier`, but not into a branch whose condition it cannot see through.
    """
    yes = jax.lax.optimization_barrier(jnp.array(True))
    return jax.lax.cond(yes, lambda same: same, jnp.zeros_like, array)


def times_one(rows: Array) -> Array:
    """rows · 1, a one that the compiler cannot see.

    The gather of a minibatch alone is compiled for the CPU to moves of one entry after the other, which wait for
    memory; with a product by a vector, to moves of vectors: three times as fast on Covertype.
    """
    if rows.ndim < 2 or not jnp.issubdtype(rows.dtype, jnp.floating):
        return rows
    return rows * jax.lax.optimization_barrier(jnp.ones((1, *rows.shape[1:]), rows.dtype))
