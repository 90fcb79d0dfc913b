"""Regressions through a linear predictor with one more parameter, a scalar: the scale of the noise, the dispersion."""

import abc
from typing import ClassVar, NamedTuple, TypeAlias

import jax.numpy as jnp
from jaxtyping import Array

from .._core.types import Batch
from ..target.likelihood import AbstractLikelihood
from ._products import weighted_rows
from ._shapes import Column, Each, Real, Rows

Named: TypeAlias = dict[str, Array]
"""{"coefficients": β, name of the scalar: s}."""


class Slopes(NamedTuple):
    """∂f/∂η and ∂f/∂s, for one datum or a batch."""

    predictor: Each
    scalar: Each


class AbstractPredictorAndScalar(AbstractLikelihood):
    r"""ℓ((β, s), (x, y)) = f(η, s, y) with η = β·x, so that ∇_β ℓ = ∂f/∂η x.

    A model names its scalar and gives f (`of_predictor`) and its derivatives (`slopes`), for one datum or a batch; all
    derivatives with respect to the parameters follow here in closed form.

    Parameters: {"coefficients": β of shape (d,), `scalar`: s of shape ()}; the data hold x as "features".
    """

    scalar: ClassVar[str]

    @abc.abstractmethod
    def of_predictor(self, eta: Each, scalar: Real, data: Batch) -> Each:
        """f(η, s, y)."""

    @abc.abstractmethod
    def slopes(self, eta: Each, scalar: Real, data: Batch) -> Slopes:
        """∂f/∂η and ∂f/∂s."""

    def __call__(self, params: Named, datum: Batch) -> Real:
        return self.values(params, datum)

    def values(self, params: Named, batch: Batch) -> Each:
        coefficients = params["coefficients"]
        eta = batch["features"].astype(coefficients.dtype) @ coefficients
        return self.of_predictor(eta, params[self.scalar], batch)

    def gradient(self, params: Named, batch: Batch, weights: Column) -> Named:
        rows, slopes = self._slopes(params, batch)
        by_scalar = jnp.dot(weights, slopes.scalar.astype(weights.dtype)).astype(slopes.scalar.dtype)
        return {"coefficients": weighted_rows(weights, slopes.predictor, rows), self.scalar: by_scalar}

    def directional(self, params: Named, batch: Batch, direction: Named) -> Column:
        rows, slopes = self._slopes(params, batch)
        return slopes.predictor * (rows @ direction["coefficients"]) + slopes.scalar * direction[self.scalar]

    def gradients(self, params: Named, batch: Batch) -> Named:
        rows, slopes = self._slopes(params, batch)
        return {"coefficients": slopes.predictor[:, None] * rows, self.scalar: slopes.scalar}

    def _slopes(self, params: Named, batch: Batch) -> tuple[Rows, Slopes]:
        """The rows x in the dtype of the parameters, and the derivatives of f at each."""
        rows = batch["features"].astype(params["coefficients"].dtype)
        return rows, self.slopes(rows @ params["coefficients"], params[self.scalar], batch)
