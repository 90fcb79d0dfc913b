"""The shapes in the models' signatures: b data, d features, K classes."""

from typing import TypeAlias

from jaxtyping import Array, Float

Real: TypeAlias = Float[Array, ""]

Vector: TypeAlias = Float[Array, " d"]
"""Coefficients, one a feature."""

Matrix: TypeAlias = Float[Array, "d K"]
"""Coefficients, one a feature and class."""

Rows: TypeAlias = Float[Array, "b d"]
"""Features, one row a datum."""

Column: TypeAlias = Float[Array, " b"]
"""One number a datum."""

Each: TypeAlias = Float[Array, "*b"]
"""One number a datum, or just one number for just one datum."""
