"""The shapes in the models' signatures: b data, d features, K classes."""

from typing import TypeAlias

from jaxtyping import Array, Float

Real: TypeAlias = Float[Array, ""]

Vector: TypeAlias = Float[Array, " d"]
"""Coefficients, one per feature."""

Matrix: TypeAlias = Float[Array, "d K"]
"""Coefficients, one per feature and class."""

Rows: TypeAlias = Float[Array, "b d"]
"""Features, one row per datum."""

Column: TypeAlias = Float[Array, " b"]
"""One number per datum."""

Each: TypeAlias = Float[Array, "*b"]
"""One number per datum, or a scalar for a single datum."""
