"""Compiler options and barriers against optimisations, for fast code on the CPU; values do not change.

Other platforms get neither: on a GPU they would cost a round trip to the host, or prevent a fusion.
"""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

_VECTORS = {"xla_cpu_prefer_vector_width": 512}
"""1.5 times as fast where most of the time goes into noise, on a processor with AVX-512."""
_EIGEN = {"xla_cpu_experimental_ynn_fusion_type": ""}
"""Products by Eigen. YNNPACK, the default, is faster on small ones, but allocates memory in every product."""
_PROCESSOR = Path("/proc/cpuinfo")


def platform() -> str:
    """Where computations run: on JAX's default device if one is set, else on its default backend."""
    device = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    if device is None:
        return jax.default_backend()
    return device.partition(":")[0] if isinstance(device, str) else device.platform


def options(large: bool) -> dict[str, Any]:
    """Options for the sampling loop, as far as this version of JAX knows them; on the CPU only.

    Args:
        large: whether products have operands of many megabytes, as with the patches of a convolution.
    """
    return dict(_cpu_options(large)) if platform() == "cpu" else {}


@functools.cache
def _cpu_options(large: bool) -> dict[str, Any]:
    wanted = (_VECTORS if _has_wide_vectors() else {}) | (_EIGEN if large else {})
    return {name: value for name, value in wanted.items() if _known(name, value)}


@functools.cache
def _has_wide_vectors() -> bool:
    """Whether the system says that the processor has AVX-512."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.startswith("flags") and "avx512f" in line.split() for line in lines)


def _known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value}).lower().compile()
    except Exception:  # its type differs between versions
        return False
    return True


def stored(array: Array) -> Array:
    """The same numbers, written to memory once.

    The compiler would otherwise compute them again in every kernel that reads them: hash an index for every entry of
    every row that it gathers, or read a gradient against its memory layout, both in the sum and in the step. It fuses
    through an `optimization_barrier`, but not into a branch whose condition it cannot see through.
    """
    if platform() != "cpu":
        return array
    yes = jax.lax.optimization_barrier(jnp.array(True))
    return jax.lax.cond(yes, lambda same: same, jnp.zeros_like, array)


def times_one(rows: Array) -> Array:
    """rows · 1, where the compiler cannot see that the factor is 1.

    For the CPU, the gather of a minibatch alone is compiled to a loop over single entries, each waiting for memory;
    followed by a product with a vector it is vectorised: three times as fast on Covertype.
    """
    if platform() != "cpu" or rows.ndim < 2 or not jnp.issubdtype(rows.dtype, jnp.floating):
        return rows
    return rows * jax.lax.optimization_barrier(jnp.ones((1, *rows.shape[1:]), rows.dtype))
