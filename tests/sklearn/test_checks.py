"""scikit-learn's own checks of estimators, at cheap settings. None is expected to fail.

Those of `BayesianPoissonRegressor` and `BayesianMLPRegressor`, which share their code with the others, take another 120
CPU seconds: they run if EWSG_ALL_CHECKS is set.
"""

import os

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ewsg.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPoissonRegressor,
)

_CHEAP = {"accuracy": 0.5, "num_chains": 8}
_SMALL = {"hidden_layer_sizes": (4,), "data_passes": 200, **_CHEAP}
_ALWAYS = [
    BayesianLinearRegression(**_CHEAP),
    BayesianLogisticRegression(**_CHEAP),
    BayesianMLPClassifier(**_SMALL),
]
_OTHERS = [BayesianPoissonRegressor(**_CHEAP), BayesianMLPRegressor(**_SMALL)]

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the checks make estimators warn on purpose


@parametrize_with_checks(_ALWAYS + (_OTHERS if os.environ.get("EWSG_ALL_CHECKS") else []))
def test_check(estimator, check):
    check(estimator)
