"""Regressions with coefficients: sampled in standard units, kept in those of the data."""

from typing import Any

import numpy as np
from jaxtyping import Float

from ..models.priors import GaussianPrior
from ..target.likelihood import AbstractLikelihood
from ..target.target import Target
from ..target.weighted import WeightedLikelihood
from ._base import AbstractPlanned
from ._rows import Padded, Units

_MOST_DRAWS = 2_000


class AbstractCoefficients(AbstractPlanned):
    """y depends on x through η = intercept + coef · x."""

    coef_: Float[np.ndarray, "*k d"]
    coef_std_: Float[np.ndarray, "*k d"]
    intercept_: Any
    intercept_std_: Any
    coef_draws_: Float[np.ndarray, "s *k d"]
    intercept_draws_: Float[np.ndarray, "s *k"]

    @property
    def _numbers_per_row(self) -> int:
        return 2 * self.intercept_draws_.size

    def _prior(self) -> GaussianPrior:
        """N(0, prior_scale²) of intercept and coefficients, in standard units."""
        return GaussianPrior(1 / float(self.prior_scale) ** 2)

    def _keep_coefficients(self, draws: np.ndarray, units: Units, center: float = 0.0, unit: float = 1.0) -> None:
        """`coef_` and its relatives, from draws of shape (draw, 1 + features + padding, ...) in standard units.

        η = center + unit · (b₀ + Σ_j b_j (x_j − mean_j)/scale_j), from all draws; up to 2,000 are kept for predictions.
        """
        draws = np.moveaxis(draws, 1, -1)[..., : 1 + len(units.mean)]
        coef = unit * draws[..., 1:] / units.scale
        intercept = center + unit * draws[..., 0] - coef @ units.mean
        self.coef_, self.coef_std_ = coef.mean(0), coef.std(0)
        self.intercept_, self.intercept_std_ = intercept.mean(0), intercept.std(0)
        self.coef_draws_, self.intercept_draws_ = thinned(coef), thinned(intercept)

    def _predictors(self, features: Float[np.ndarray, "b d"]) -> np.ndarray:
        """η of some rows for every draw that was kept: (b, draw), or (draw, b, K) with several sets of coefficients."""
        if self.coef_draws_.ndim == 2:
            return features @ self.coef_draws_.T + self.intercept_draws_
        return features @ np.swapaxes(self.coef_draws_, 1, 2) + self.intercept_draws_[:, None, :]


def thinned(draws: np.ndarray, most: int = _MOST_DRAWS) -> np.ndarray:
    """Evenly spaced draws, at most so many."""
    return draws[np.linspace(0, len(draws) - 1, min(len(draws), most)).round().astype(int)]


def weighted_target(likelihood: AbstractLikelihood, prior: Any, data: Padded, own: Any, init: Any) -> Target:
    """The posterior of weighted data.

    Args:
        likelihood: of one datum.
        prior: of the parameters.
        data: padded rows, with their weights.
        own: what the likelihood takes, one entry per place.
        init: where the search for the mode starts.
    """
    return Target(WeightedLikelihood(likelihood), prior, (data.weights, own), init=init)
