"""Linear regression with normal errors of unknown scale."""

from typing import Any

import numpy as np
from jaxtyping import Float

from ..errors import NoPlan
from ..models.linear import LinearUnknownScale
from ..planning.modes import MOST_PARAMETERS
from ..target.target import Target
from ._base import Keep
from ._coefficients import AbstractCoefficients, thinned, weighted_target
from ._exact import exact_draws
from ._noise import NoisePrior
from ._normal import AbstractNormalRegressor
from ._rows import Rows, padded, units_of


class BayesianLinearRegression(AbstractNormalRegressor, AbstractCoefficients):
    r"""y ~ N(intercept + coef · x, σ²), with the posterior of intercept, coef and σ.

    Priors, in units of the standard deviations of the columns of X and of y: coefficients, and the intercept at the
    columns' means, ~ N(0, prior_scale²); σ ~ Exponential(1).

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
        noise_scale_: posterior mean of σ.
        coef_draws_: draws that predictions use, (draws, features); `intercept_draws_`, `noise_scale_draws_` likewise.
        run_: the `ewsg.Run`, in standard units: log σ, intercept, coefficients, and up to 3 columns of zeros; None
            where there is no plan (no more rows than features, more than 500 features): draws are then exact.
        verdict_: whether the accuracy was reached; None for exact draws.
        n_features_in_: the number of features; `feature_names_in_`, their names, if X had any.

    Example:
        >>> import ewsg.sklearn
        >>> model = ewsg.sklearn.BayesianLinearRegression(accuracy=0.2, num_chains=8, random_state=0)
        >>> model = model.fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.9])
        >>> bool(abs(model.predict([[4.0]])[0] - 4) < 0.5)
        True
    """

    def _posterior(self, rows: Rows, seed: int) -> tuple[Target, Keep]:
        units, center, unit = units_of(rows), rows.mean_response, rows.response_scale
        data = padded(rows, units, ones=True)
        own = {"features": data.matrix, "responses": data.column((rows.responses - center) / unit)}
        dtype = data.matrix.dtype
        init = {"coefficients": np.zeros(data.matrix.shape[1], dtype), "log_scale": np.zeros((), dtype)}

        def keep(draws: Any) -> None:
            self._keep_coefficients(draws["coefficients"], units, center, unit)
            noise = unit * np.exp(draws["log_scale"])
            self.noise_scale_, self.noise_scale_draws_ = float(noise.mean()), thinned(noise)

        return weighted_target(LinearUnknownScale(), NoisePrior(self._prior()), data, own, init), keep

    def _draws(self, target: Target, num_rows: int, seed: int) -> Any:
        """Those of a planned run; exact ones where there is no plan, as with no more rows than coefficients.

        σ can then be as small as the prior lets it, and the posterior is a funnel.
        """
        width = target.init["coefficients"].size  # pyright: ignore[reportOptionalSubscript]
        if num_rows > self.n_features_in_ + 1 and width < MOST_PARAMETERS:
            try:
                return super()._draws(target, num_rows, seed)
            except NoPlan:
                pass
        self.run_ = self.verdict_ = None
        return exact_draws(target.data.arrays, float(self.prior_scale), np.random.default_rng(seed))

    def _means(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b s"]:
        return self._predictors(features)

    def _moments(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b two"]:
        found = super()._moments(features)
        found[:, 0] = features @ self.coef_ + self.intercept_  # from all draws
        return found
