"""Estimators for scikit-learn: Bayesian regressions and networks whose `fit` is one planned run, with nothing to tune.

| estimator | model |
|---|---|
| `BayesianLinearRegression` | normal errors of unknown scale |
| `BayesianLogisticRegression` | two classes, or more |
| `BayesianPoissonRegressor` | counts, log link |
| `BayesianMLPClassifier`, `BayesianMLPRegressor` | fully connected networks |

`fit` calls `ewsg.sample(target, accuracy=...)` and keeps the run as `run_`; where the accuracy was not reached, it
warns in the words of the run's verdict. Predictions average over the posterior (docs/sklearn.md).
"""

from .._core.optional import require

require("sklearn", extra="sklearn")

from .linear import BayesianLinearRegression  # noqa: E402
from .logistic import BayesianLogisticRegression  # noqa: E402
from .networks import BayesianMLPClassifier, BayesianMLPRegressor  # noqa: E402
from .poisson import BayesianPoissonRegressor  # noqa: E402

__all__ = [
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianMLPClassifier",
    "BayesianMLPRegressor",
    "BayesianPoissonRegressor",
]
