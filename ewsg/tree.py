"""Algebra on positions, momenta and forces, which are pytrees of arrays, for your own estimators and integrators.

Scalars are cast to the dtype of the array that they multiply: a float32 step size leaves bfloat16 parameters in
bfloat16. `dot` sums in the dtype of the leaves; `combined` and `widened` compute in at least float32.
"""

from ._core.pytree import (
    add_scaled,
    all_finite,
    as_dtype,
    cast_like,
    combined,
    divisor,
    dot,
    full_like,
    host_rows,
    max_abs,
    rows,
    scaled,
    size,
    subtract,
    where,
    wide_dtype,
    widened,
    zeros_like,
)

__all__ = [
    "add_scaled",
    "all_finite",
    "as_dtype",
    "cast_like",
    "combined",
    "divisor",
    "dot",
    "full_like",
    "host_rows",
    "max_abs",
    "rows",
    "scaled",
    "size",
    "subtract",
    "where",
    "wide_dtype",
    "widened",
    "zeros_like",
]
