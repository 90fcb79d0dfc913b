"""Regressors with normal noise of unknown scale: predictions are mixtures of normal distributions."""

import abc

import numpy as np
from jaxtyping import Float

from ._base import AbstractBayesianRegressor
from ._mixtures import central, normal_quantile


class AbstractNormalRegressor(AbstractBayesianRegressor):
    """y ~ N(mean, σ²), both with a posterior.

    Attributes:
        noise_scale_: posterior mean of σ.
        noise_scale_draws_: draws of σ that predictions use.
    """

    noise_scale_: float
    noise_scale_draws_: Float[np.ndarray, " s"]

    @abc.abstractmethod
    def _means(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b s"]:
        """The mean of y for some rows and every draw that was kept."""

    def _moments(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b two"]:
        means = self._means(features)
        variance = means.var(1) + np.mean(self.noise_scale_draws_**2)
        return np.stack([means.mean(1), np.sqrt(variance)], axis=1)

    def _interval(self, features: Float[np.ndarray, "b d"], level: float) -> Float[np.ndarray, "b two"]:
        means = self._means(features)
        return np.stack([normal_quantile(means, self.noise_scale_draws_, p) for p in central(level)], axis=1)
