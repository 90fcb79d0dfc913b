"""What the estimators share: inputs checked, a planned run, its verdict as a warning."""

import abc
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._core.component import check_positive
from ..models.priors import DEFAULT_SCALE
from ..result.run import Run
from ..sampling import sample
from ..target.target import Target
from ._rows import Rows, dense_blocks, merged

_MOST_SEED = 2**31 - 1

Keep: TypeAlias = Callable[[Any], None]
"""Makes the fitted attributes from draws of the parameters, in float64, with one leading axis."""


class AbstractPlanned(BaseEstimator):
    """An estimator whose `fit` is one planned run, `ewsg.sample(target, accuracy=...)`."""

    n_features_in_: int
    run_: Run | None
    verdict_: Any

    def __init__(
        self,
        *,
        prior_scale: float = DEFAULT_SCALE,
        accuracy: float | None = 0.05,
        num_chains: int = 32,
        data_passes: float | None = None,
        seconds: float | None = None,
        random_state: Any = None,
        progress: bool | None = False,
    ):
        self.prior_scale = prior_scale
        self.accuracy = accuracy
        self.num_chains = num_chains
        self.data_passes = data_passes
        self.seconds = seconds
        self.random_state = random_state
        self.progress = progress

    @abc.abstractmethod
    def _posterior(self, rows: Rows, seed: int) -> tuple[Target, Keep]:
        """The posterior, and the function that makes the fitted attributes from its draws."""

    @property
    @abc.abstractmethod
    def _numbers_per_row(self) -> int:
        """Numbers that predictions for one row hold at a time."""

    def _fit(self, features: Any, responses: np.ndarray, sample_weight: Any) -> None:
        """Samples the posterior of rows and responses that have been validated."""
        check_positive(type(self).__name__, "prior_scale", self.prior_scale)
        rows = merged(features, responses, _weights(sample_weight, len(responses)))
        seed = int(check_random_state(self.random_state).randint(_MOST_SEED))
        target, keep = self._posterior(rows, seed)
        keep(self._draws(target, len(rows), seed))

    def _draws(self, target: Target, num_rows: int, seed: int) -> Any:
        """Draws of a planned run, with one leading axis; warns unless its accuracy was reached."""
        del num_rows
        run = sample(
            target,
            accuracy=self.accuracy,
            num_chains=self.num_chains,
            data_passes=self.data_passes,
            seconds=self.seconds,
            seed=seed,
            progress=self.progress,
        )
        self.run_, self.verdict_ = run, run.verdict
        if not (self.verdict_ and self.verdict_.reached):
            warnings.warn(str(self.verdict_), ConvergenceWarning, stacklevel=4)
        return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64).reshape(-1, *leaf.shape[2:]), run.good_draws())

    def _in_blocks(self, X: Any, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """function(rows), for dense blocks of rows that have the columns that were fitted; stacked."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.concatenate([function(rows) for _, rows in dense_blocks(X, self._numbers_per_row)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class AbstractBayesianClassifier(ClassifierMixin, AbstractPlanned):
    """A classifier: probabilities are averages over the posterior."""

    classes_: Shaped[np.ndarray, " K"]

    @abc.abstractmethod
    def predict_proba(self, X: Any) -> Float[np.ndarray, "m K"]:
        """P(class | x, data), averaged over the posterior, one column per class in the order of `classes_`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AbstractBayesianClassifier":
        """Sample the posterior.

        Args:
            X: rows of features: an array, a data frame, or a sparse matrix.
            y: classes.
            sample_weight: multiplies the log-likelihood of each row: 2 is the row twice, 0 is without it.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_.tolist()[0]!r}: a classifier needs at least two")
        self._fit(X, labels, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        chosen = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[chosen]

    def predict_log_proba(self, X: Any) -> Float[np.ndarray, "m K"]:
        """log `predict_proba`."""
        return np.log(self.predict_proba(X))


class AbstractBayesianRegressor(RegressorMixin, AbstractPlanned):
    """A regressor: means, standard deviations and intervals are those of the posterior predictive distribution."""

    @abc.abstractmethod
    def _moments(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b two"]:
        """Mean and sd of a new response for each of some rows."""

    @abc.abstractmethod
    def _interval(self, features: Float[np.ndarray, "b d"], level: float) -> Float[np.ndarray, "b two"]:
        """Lower and upper end for each of some rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "AbstractBayesianRegressor":
        """Sample the posterior.

        Args:
            X: rows of features: an array, a data frame, or a sparse matrix.
            y: responses.
            sample_weight: multiplies the log-likelihood of each row: 2 is the row twice, 0 is without it.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        self._fit(X, np.asarray(y, np.float64), sample_weight)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of a new response for each row.

        Args:
            X: rows of features.
            return_std: whether to return (mean, sd) of a new response: noise and uncertainty of the parameters.
        """
        mean, std = self._in_blocks(X, self._moments).T
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9) -> Float[np.ndarray, "m two"]:
        """Lower and upper end of the central interval that holds a new response with probability `level`, per row.

        Args:
            X: rows of features.
            level: above 0 and below 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be above 0 and below 1, not {level!r}")
        return self._in_blocks(X, lambda rows: self._interval(rows, level))


def _weights(given: Any, count: int) -> Float[np.ndarray, " n"]:
    """One weight per row, 1 if none are given."""
    if given is None:
        return np.ones(count)
    weights = check_array(given, ensure_2d=False, dtype="float64", input_name="sample_weight")
    if weights.ndim != 1:
        raise ValueError(f"sample_weight must have one axis, one number per row, not shape {weights.shape}")
    check_consistent_length(weights, np.empty(count))
    if np.any(weights < 0):
        raise ValueError("sample_weight has negative numbers: a weight multiplies a log-likelihood, give 0 or more")
    if not np.any(weights > 0):
        raise ValueError("every sample_weight is zero: give at least one row a positive weight")
    return weights
