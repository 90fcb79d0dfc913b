"""The settings of `CovarianceFriction` as its modes and forms see them."""

from typing import NamedTuple

from ..._core.types import Scalar

OWNER = "CovarianceFriction"
"""The component named in errors."""


class Settings(NamedTuple):
    """The settings of `CovarianceFriction` that its modes and forms share."""

    mode: str
    form: str
    period: int | None
    passes: float | None
    rank: int | None
    decay: Scalar
    batch_size: int
