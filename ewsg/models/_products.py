"""Sums over a batch that are accurate even for parameters of low precision."""

from ._shapes import Column, Rows, Vector


def weighted_rows(weights: Column, slopes: Column, rows: Rows) -> Vector:
    """Σ_i w_i s_i x_i in the dtype of the weights (at least float32), rounded to that of the rows."""
    dtype = weights.dtype
    return ((weights * slopes.astype(dtype)) @ rows.astype(dtype)).astype(rows.dtype)
