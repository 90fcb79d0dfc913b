"""Regressions through a linear predictor, whose derivatives are weighted sums of rows."""

import abc

from .._core.types import Batch
from ..target.likelihood import AbstractLikelihood
from ._products import weighted_rows
from ._shapes import Column, Each, Real, Rows, Vector


class AbstractLinearPredictor(AbstractLikelihood):
    r"""ℓ(θ, (x, y)) = f(η, y) with η = θ·x, so that ∇ℓ = f′(η, y) x.

    A model gives the rows x of its data, f (`of_predictor`) and f′ = ∂f/∂η (`slope`), for one datum or a batch; all
    derivatives with respect to θ follow here in closed form.
    """

    @abc.abstractmethod
    def features(self, data: Batch) -> Rows | Vector:
        """x: the array of rows in a batch, or the one row of a datum."""

    @abc.abstractmethod
    def of_predictor(self, eta: Each, data: Batch) -> Each:
        """f(η, y)."""

    @abc.abstractmethod
    def slope(self, eta: Each, data: Batch) -> Each:
        """∂f/∂η."""

    def __call__(self, params: Vector, datum: Batch) -> Real:
        return self.values(params, datum)

    def values(self, params: Vector, batch: Batch) -> Each:
        return self.of_predictor(self.features(batch).astype(params.dtype) @ params, batch)

    def gradient(self, params: Vector, batch: Batch, weights: Column) -> Vector:
        rows, slopes = self._slopes(params, batch)
        return weighted_rows(weights, slopes, rows)

    def directional(self, params: Vector, batch: Batch, direction: Vector) -> Column:
        rows, slopes = self._slopes(params, batch)
        return slopes * (rows @ direction)

    def gradients(self, params: Vector, batch: Batch) -> Rows:
        rows, slopes = self._slopes(params, batch)
        return slopes[:, None] * rows

    def gradient_changes(self, params: Vector, anchor: Vector, batch: Batch) -> Rows:
        rows, slopes = self._slopes(params, batch)
        return (slopes - self.slope(rows @ anchor, batch))[:, None] * rows

    def _slopes(self, params: Vector, batch: Batch) -> tuple[Rows, Column]:
        """The rows x in the dtype of the parameters, and f′ at each."""
        rows = self.features(batch).astype(params.dtype)
        return rows, self.slope(rows @ params, batch)
