"""Poisson regression of counts, with the log link."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.metrics import d2_tweedie_score

from ..models.poisson import Poisson
from ..target.target import Target
from ._base import AbstractBayesianRegressor, Keep
from ._coefficients import AbstractCoefficients, weighted_target
from ._mixtures import central, poisson_quantile
from ._rows import Rows, padded, units_of

_LARGEST_PREDICTOR = 700.0


class BayesianPoissonRegressor(AbstractBayesianRegressor, AbstractCoefficients):
    r"""y ~ Poisson(exp(intercept + coef · x)), with the posterior of intercept and coef.

    Prior: coefficients, in units of the standard deviations of the columns of X, ~ N(0, prior_scale²), and the
    intercept at the columns' means ~ N(log of the mean response, prior_scale²). Responses need not be whole numbers,
    as in scikit-learn's `PoissonRegressor`; intervals are those of counts.

    Args:
        prior_scale: standard deviation of the prior of coefficients in standard units.
        accuracy: of every posterior mean and sd, in posterior sd (docs/planning.md).
        num_chains: chains of the run, 8 to 256.
        data_passes: a budget: passes over the data per chain; None is as many as it takes.
        seconds: a budget of time; None is no limit.
        random_state: a seed, or a NumPy RandomState; equal seeds give equal results.
        progress: True for a progress bar; None for one on a terminal.

    Attributes:
        coef_: posterior means, of shape (features,).
        coef_std_: posterior standard deviations.
        intercept_: posterior mean; `intercept_std_`, its sd.
        coef_draws_: draws that predictions use, (draws, features); `intercept_draws_` likewise.
        run_: the `ewsg.Run`, in standard units: intercept, coefficients, and up to 3 columns of zeros.
        verdict_: whether the accuracy was reached.
        n_features_in_: the number of features; `feature_names_in_`, their names, if X had any.
    """

    def _posterior(self, rows: Rows, seed: int) -> tuple[Target, Keep]:
        if np.any(rows.responses < 0):
            raise ValueError("y has negative responses: those of a Poisson regression are 0 or more")
        units, mean = units_of(rows), rows.mean_response or 1.0
        data = padded(rows, units, ones=True)
        # With μ the mean response, w [y (η + log μ) − μ e^η] is w μ [(y/μ) η − e^η] and a constant.
        scaled = dataclasses.replace(data, weights=(data.weights * mean).astype(data.weights.dtype))
        own = {"features": data.matrix, "counts": data.column(rows.responses / mean)}
        init = np.zeros(data.matrix.shape[1], data.matrix.dtype)

        def keep(draws: Any) -> None:
            self._keep_coefficients(draws, units, float(np.log(mean)))

        return weighted_target(Poisson(), self._prior(), scaled, own, init), keep

    def _rates(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b s"]:
        return np.exp(np.minimum(self._predictors(features), _LARGEST_PREDICTOR))

    def _moments(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b two"]:
        rates = self._rates(features)
        mean = rates.mean(1)
        return np.stack([mean, np.sqrt(mean + rates.var(1))], axis=1)

    def _interval(self, features: Float[np.ndarray, "b d"], level: float) -> Float[np.ndarray, "b two"]:
        rates = self._rates(features)
        return np.stack([poisson_quantile(rates, p) for p in central(level)], axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the Poisson deviance that is explained, as of scikit-learn's `PoissonRegressor`."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
