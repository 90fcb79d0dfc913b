"""The estimators in scikit-learn's tools: pipelines, searches, folds, pickles, sparse matrices, data frames."""

import io
import pickle

import jax
import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ewsg.sklearn import BayesianLogisticRegression

RNG = np.random.default_rng(4)
X = RNG.normal(size=(120, 3)) + 1
Y = np.where(X[:, 0] + RNG.logistic(size=120) / 2 > 1, "yes", "no")
MODEL = BayesianLogisticRegression(accuracy=0.3, num_chains=8, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return BayesianLogisticRegression(**MODEL.get_params()).fit(X, Y)


def test_pipelines_searches_and_folds():
    pipeline = make_pipeline(StandardScaler(), MODEL)
    search = GridSearchCV(pipeline, {"bayesianlogisticregression__prior_scale": [1e-3, 2.5]}, cv=3)
    search.fit(X, Y)
    assert search.best_params_ == {"bayesianlogisticregression__prior_scale": 2.5}
    ours = cross_val_score(pipeline, X, Y, cv=3)
    theirs = cross_val_score(make_pipeline(StandardScaler(), LogisticRegression()), X, Y, cv=3)
    assert ours.mean() == pytest.approx(theirs.mean(), abs=0.05)


def test_a_fit_of_nearly_the_same_size_compiles_nothing(fitted):
    compiled = []

    def listen(event: str, seconds: float, **_: object) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(seconds)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        BayesianLogisticRegression(**MODEL.get_params()).fit(X[:100, :2], Y[:100])
    finally:
        jax.monitoring.clear_event_listeners()
    assert fitted.run_ is not None
    assert not compiled


def test_pickle_and_joblib(fitted):
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    for again in (joblib.load(file), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
        assert again.verdict_ == fitted.verdict_
        np.testing.assert_array_equal(again.run_.draws, fitted.run_.draws)


def test_sparse_matrices_and_data_frames_are_the_same_data(fitted):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for given in (scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X), frame):
        model = BayesianLogisticRegression(**MODEL.get_params()).fit(given, Y)
        np.testing.assert_allclose(model.predict_proba(given), fitted.predict_proba(X), rtol=1e-6)


def test_a_row_of_weight_two_is_that_row_twice_and_their_order_does_not_matter(fitted):
    order = RNG.permutation(240)
    twice = BayesianLogisticRegression(**MODEL.get_params()).fit(np.r_[X, X][order], np.r_[Y, Y][order])
    weighted = BayesianLogisticRegression(**MODEL.get_params()).fit(X, Y, sample_weight=np.full(120, 2))
    np.testing.assert_array_equal(weighted.coef_draws_, twice.coef_draws_)
    assert np.all(weighted.coef_std_ < 0.9 * fitted.coef_std_)


def test_an_accuracy_that_is_not_reached_is_a_warning():
    model = BayesianLogisticRegression(accuracy=0.01, num_chains=8, data_passes=200, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Accuracy 0\.01 not reached, the budget ended first"):
        model.fit(X, Y)
    assert model.verdict_.word == "budget"
