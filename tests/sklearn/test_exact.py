"""Linear regression where there is no plan, with no more rows than coefficients: draws are exact."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from noisy_lines import mixture, moments
from sklearn.exceptions import NotFittedError

import ewsg
from ewsg.sklearn import BayesianLinearRegression
from ewsg.sklearn._exact import exact_draws

RNG = np.random.default_rng(2)
N, D = 4, 6
X = RNG.normal(size=(N, D)) + 3
Y = 10 * (X @ RNG.normal(size=D)) + 2
NEW = RNG.normal(size=(5, D)) + 3


@pytest.fixture(scope="module")
def model():
    return BayesianLinearRegression(random_state=0).fit(pd.DataFrame(X, columns=list("abcdef")), Y)


def test_means_and_sds(model):
    mean, sd, noise, noise_sd = moments(X, Y)
    assert model.run_ is None
    np.testing.assert_allclose(model.coef_, mean[1:], atol=5 * sd.max() / np.sqrt(4_000))
    assert np.all(np.abs(model.coef_ - mean[1:]) < 4.5 * sd[1:] / np.sqrt(4_000))
    np.testing.assert_allclose(model.coef_std_, sd[1:], rtol=0.08)
    assert abs(model.intercept_ + X.mean(0) @ model.coef_ - mean[0]) < 4.5 * sd[0] / np.sqrt(4_000)
    assert abs(model.noise_scale_ - noise) < 4.5 * noise_sd / np.sqrt(4_000)


def test_draws_of_many_rows():
    """The same draws where rows determine σ well, with weights: against a normal-inverse-gamma posterior, nearly."""
    rng = np.random.default_rng(0)
    matrix, weights = rng.normal(size=(3_000, 3)), rng.integers(0, 3, 3_000).astype(float)
    y = matrix @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=3_000)
    draws = exact_draws((weights, {"features": matrix, "responses": y}), 1e3, rng)
    gram = matrix.T @ (weights[:, None] * matrix)
    mean = np.linalg.solve(gram, matrix.T @ (weights * y))
    variance = weights @ (y - matrix @ mean) ** 2 / (weights.sum() - 3)
    sd = np.sqrt(variance * np.linalg.inv(gram).diagonal())
    np.testing.assert_allclose((draws["coefficients"].mean(0) - mean) / sd, 0, atol=4.5 / np.sqrt(4_000))
    np.testing.assert_allclose(draws["coefficients"].std(0) / sd, 1, atol=4.5 / np.sqrt(8_000))
    exact = 0.5 * np.log(variance)
    assert abs(draws["log_scale"].mean() - exact) < 0.1 / np.sqrt(2 * weights.sum())
    assert draws["log_scale"].std() == pytest.approx(1 / np.sqrt(2 * weights.sum()), rel=0.08)


def test_predictions_are_those_of_the_mixture(model):
    weight, grid, means, covariances = mixture(X, Y)
    rows = np.c_[np.ones(5), NEW - X.mean(0)]
    centers = means @ rows.T
    spreads = np.sqrt(np.einsum("ij,sjk,ik->si", rows, covariances, rows) + grid[:, None] ** 2)
    mean = weight @ centers
    sd = np.sqrt(weight @ (spreads**2 + centers**2) - mean**2)
    frame = pd.DataFrame(NEW, columns=list("abcdef"))
    found, std = model.predict(frame, return_std=True)
    np.testing.assert_allclose(found, frame @ model.coef_ + model.intercept_)
    np.testing.assert_allclose((found - mean) / sd, 0, atol=4.5 / np.sqrt(4_000))
    np.testing.assert_allclose(std / sd, 1, rtol=0.12)
    ends = model.predict_interval(frame, level=0.8)
    inside = np.diff([weight @ scipy.stats.norm.cdf(end, centers, spreads) for end in ends.T], axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=4.5 * np.sqrt(0.8 * 0.2 / 1_000))
    with pytest.raises(ValueError, match="level must be above 0 and below 1"):
        model.predict_interval(frame, level=90)


def test_units_of_the_data_do_not_matter(model):
    other = BayesianLinearRegression(random_state=0).fit(X * 1e3 - 7, Y / 100 + 4)
    here, std = model.predict(pd.DataFrame(NEW, columns=list("abcdef")), return_std=True)
    error = (100 * (other.predict(NEW * 1e3 - 7) - 4) - here) / std
    np.testing.assert_allclose(error, 0, atol=4.5 * np.sqrt(2 / 4_000))  # rounding turns the draws
    np.testing.assert_allclose(1e5 * other.coef_std_ / model.coef_std_, 1, rtol=0.1)


def test_pickles(model):
    assert model.feature_names_in_.tolist() == list("abcdef")
    frame = pd.DataFrame(NEW, columns=list("abcdef"))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(frame), model.predict_interval(frame))


@pytest.mark.parametrize(
    ("options", "weights", "message"),
    [
        ({"prior_scale": -1.0}, None, "BayesianLinearRegression: prior_scale must be positive"),
        ({}, -np.ones(N), "sample_weight has negative numbers"),
        ({}, np.zeros(N), "every sample_weight is zero"),
        ({}, np.ones(N + 1), "inconsistent numbers of samples"),
        ({}, np.ones((N, 1)), "sample_weight must have one axis"),
    ],
)
def test_bad_input_is_one_sentence(options, weights, message):
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression(**options).fit(X, Y, weights)


def test_classes_activations_and_layers():
    one = np.ones(N)
    with pytest.raises(ValueError, match=r"y has one class, 1\.0: a classifier needs at least two"):
        ewsg.sklearn.BayesianLogisticRegression().fit(X, one)
    with pytest.raises(ValueError, match=r"unknown activation 'tan'; did you mean 'tanh'"):
        ewsg.sklearn.BayesianMLPRegressor(activation="tan").fit(X, Y)
    with pytest.raises(ValueError, match="hidden_layer_sizes must be whole numbers of at least 1"):
        ewsg.sklearn.BayesianMLPRegressor(hidden_layer_sizes=(3, 0)).fit(X, Y)
    with pytest.raises(ValueError, match="y has negative responses"):
        ewsg.sklearn.BayesianPoissonRegressor().fit(X, -one)
    with pytest.raises(NotFittedError):
        BayesianLinearRegression().predict(X)


def test_without_scikit_learn_it_is_one_sentence_and_ewsg_does_not_import_it():
    import subprocess
    import sys

    code = """
import sys
import ewsg
ewsg.sample
assert not any(name.split(".")[0] == "sklearn" for name in sys.modules)
sys.modules["sklearn"] = None
try:
    ewsg.sklearn
except ewsg.errors.MissingPackage as error:
    assert str(error) == "this needs the package scikit-learn, which is not installed: pip install 'ewsg[sklearn]'"
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
