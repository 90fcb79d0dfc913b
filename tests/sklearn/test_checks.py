"""scikit-learn's own checks of estimators, at cheap settings."""

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

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the checks make estimators warn on purpose


@parametrize_with_checks(
    [
        BayesianLinearRegression(**_CHEAP),
        BayesianLogisticRegression(**_CHEAP),
        BayesianPoissonRegressor(**_CHEAP),
        BayesianMLPClassifier(**_SMALL),
        BayesianMLPRegressor(**_SMALL),
    ]
)
def test_check(estimator, check):
    check(estimator)
