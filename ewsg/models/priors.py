"""Priors of regression coefficients."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from .._core import pytree
from .._core.component import check_positive
from .._core.types import Position, Scalar
from ..errors import InputError
from ..target.target import flat
from ._shapes import Real

__all__ = ["DEFAULT_SCALE", "GaussianPrior", "flat", "gaussian"]

DEFAULT_SCALE = 2.5
"""The standard deviation when neither scale nor precision is given."""


class GaussianPrior(eqx.Module):
    r"""log π(θ) = −½ λ‖θ‖² + ½ d log(λ/2π): N(0, I/λ) on all d entries of a pytree.

    The second term, which does not depend on θ, is left out: no sampler needs it, and λ = 0 (flat) has none.

    Args:
        precision: λ ≥ 0, a leaf: a sweep over priors is a `vmap`.
    """

    log_concave: ClassVar[bool] = True
    precision: Scalar

    def __check_init__(self):
        check_positive("GaussianPrior", "precision", self.precision, zero=True)

    def __call__(self, params: Position) -> Real:
        square = pytree.dot(params, params)
        return -0.5 * jnp.asarray(self.precision, square.dtype) * square


def gaussian(owner: str, scale: Scalar | None, precision: Scalar | None) -> GaussianPrior:
    """The prior of scale `prior_scale` or of precision `prior_precision`; at most one may be given."""
    if scale is not None and precision is not None:
        raise InputError(f"{owner}: give prior_scale or prior_precision, not both")
    if precision is not None:
        check_positive(owner, "prior_precision", precision, zero=True)
        return GaussianPrior(precision)
    scale = DEFAULT_SCALE if scale is None else scale
    check_positive(owner, "prior_scale", scale)
    return GaussianPrior((1 / scale) * (1 / scale))
