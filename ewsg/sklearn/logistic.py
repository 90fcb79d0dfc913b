"""Logistic regression: two classes, or more."""

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import expit, softmax

from ..models.logistic import Logistic
from ..models.softmax import Softmax
from ..target.target import Target
from ._base import AbstractBayesianClassifier, Keep
from ._coefficients import AbstractCoefficients, weighted_target
from ._rows import Rows, padded, units_of


class BayesianLogisticRegression(AbstractBayesianClassifier, AbstractCoefficients):
    r"""P(class k | x) ∝ exp(intercept_k + coef_k · x), with the posterior of all intercepts and coefficients.

    Of two classes, the first has intercept and coefficients 0. Prior: coefficients, in units of the standard deviations
    of the columns of X, and intercepts at the columns' means ~ N(0, prior_scale²).

    Args:
        prior_scale: standard deviation of the prior of coefficients in standard units.
        accuracy: of every posterior mean and sd, in posterior sd (docs/planning.md); with more than 500 coefficients,
            of the log-likelihoods of rows.
        num_chains: chains of the run, 8 to 256.
        data_passes: a budget: passes over the data per chain; None is as many as it takes.
        seconds: a budget of time; None is no limit.
        random_state: a seed, or a NumPy RandomState; equal seeds give equal results.
        progress: True for a progress bar; None for one on a terminal.

    Attributes:
        classes_: the classes, sorted.
        coef_: posterior means, of shape (1, features) for two classes, else (classes, features).
        coef_std_: posterior standard deviations.
        intercept_: posterior means, (1,) or (classes,); `intercept_std_`, their sds.
        coef_draws_: draws that predictions use, (draws, 1 or classes, features); `intercept_draws_` likewise.
        run_: the `ewsg.Run`, in standard units: intercept, coefficients, and up to 3 columns of zeros.
        verdict_: whether the accuracy was reached.
        n_features_in_: the number of features; `feature_names_in_`, their names, if X had any.

    Example:
        >>> import ewsg.sklearn
        >>> model = ewsg.sklearn.BayesianLogisticRegression(accuracy=0.2, num_chains=8, random_state=0)
        >>> model.fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]).predict([[-1.0], [4.0]]).tolist()
        ['no', 'yes']
    """

    def _posterior(self, rows: Rows, seed: int) -> tuple[Target, Keep]:
        units = units_of(rows)
        data = padded(rows, units, ones=True)
        dtype, width, labels = data.matrix.dtype, data.matrix.shape[1], rows.responses[data.places]

        def keep(draws: Any) -> None:
            self._keep_coefficients(draws if draws.ndim == 3 else draws[:, :, None], units)

        if len(self.classes_) == 2:
            data.matrix[:] *= (2 * labels - 1).astype(dtype)[:, None]
            return weighted_target(Logistic(), self._prior(), data, data.matrix, np.zeros(width, dtype)), keep
        own = {"features": data.matrix, "labels": labels.astype(np.int32)}
        init = np.zeros((width, len(self.classes_)), dtype)
        return weighted_target(Softmax(len(self.classes_)), self._prior(), data, own, init), keep

    def predict_proba(self, X: Any) -> Float[np.ndarray, "m K"]:
        return self._in_blocks(X, self._probabilities)

    def _probabilities(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b K"]:
        eta = self._predictors(features)
        if len(self.classes_) > 2:
            return softmax(eta, axis=-1).mean(0)
        second = expit(eta[..., 0]).mean(0)
        return np.stack([1 - second, second], axis=1)
