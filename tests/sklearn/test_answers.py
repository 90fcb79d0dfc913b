"""Planned runs against exact posteriors: quadrature over σ, or importance sampling with many draws."""

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from noisy_lines import moments

from ewsg.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPoissonRegressor,
)

RNG = np.random.default_rng(3)
N, D = 50, 2
X = RNG.normal(size=(N, D)) * [1.0, 20.0] + [2.0, -5.0]
ETA = (X - [2.0, -5.0]) @ [1.0, -0.03]
ROWS = np.c_[np.ones(N), (X - X.mean(0)) / X.std(0)]
ACCURACY = 0.1


def by_importance(log_posterior, dimension, num_draws=100_000):
    """Draws of a posterior, resampled from Student's t around its mode."""
    mode = scipy.optimize.minimize(lambda b: -log_posterior(b[None])[0], np.zeros(dimension)).x
    steps = 1e-3 * np.eye(dimension)
    centered = [log_posterior(mode + sign * (a + b)[None])[0] for a in steps for b in steps for sign in (1, -1)]
    single = [log_posterior(mode + sign * (a - b)[None])[0] for a in steps for b in steps for sign in (1, -1)]
    curvature = (np.array(single) - centered).reshape(dimension, dimension, 2).sum(2) / 4e-6
    rng, covariance = np.random.default_rng(0), np.linalg.inv(curvature)
    normal = rng.multivariate_normal(np.zeros(dimension), covariance, num_draws)
    draws = mode + normal / np.sqrt(rng.chisquare(8, (num_draws, 1)) / 8)
    log_proposal = scipy.stats.multivariate_t.logpdf(draws, mode, covariance, df=8)
    weight = scipy.special.softmax(log_posterior(draws) - log_proposal)
    assert 1 / np.sum(weight**2) > 0.3 * num_draws
    return draws[rng.choice(num_draws, num_draws, p=weight)]


def check(found_mean, found_sd, draws):
    """Within 1.5 times the accuracy that was asked for, which 95 % of all means and sds have."""
    sd = draws.std(0)
    np.testing.assert_allclose((found_mean - draws.mean(0)) / sd, 0, atol=1.5 * ACCURACY)
    np.testing.assert_allclose(found_sd / sd, 1, atol=1.5 * ACCURACY)


def in_units(draws):
    """Coefficients and intercept in the units of the data."""
    coef = draws[:, 1:] / X.std(0)
    return coef, draws[:, 0] - coef @ X.mean(0)


def log_prior(b, scale=2.5):
    return -0.5 * np.sum(b**2, axis=-1) / scale**2


def test_linear():
    y = 30 + 4 * ETA + 3 * RNG.normal(size=N)
    model = BayesianLinearRegression(accuracy=ACCURACY, random_state=0).fit(X, y)
    assert model.verdict_.reached
    mean, sd, noise, noise_sd = moments(X, y, least=-4.0)
    np.testing.assert_allclose((model.coef_ - mean[1:]) / sd[1:], 0, atol=1.5 * ACCURACY)
    np.testing.assert_allclose(model.coef_std_ / sd[1:], 1, atol=1.5 * ACCURACY)
    assert abs(model.intercept_ + X.mean(0) @ model.coef_ - mean[0]) < 1.5 * ACCURACY * sd[0]
    assert abs(model.noise_scale_ - noise) < 1.5 * ACCURACY * noise_sd


def test_logistic():
    """A weight is a number of copies."""
    y, weights = ETA + RNG.logistic(size=N) > 0, RNG.integers(0, 3, N)
    rows = np.repeat(np.arange(N), weights)
    model = BayesianLogisticRegression(accuracy=ACCURACY, random_state=0).fit(X, y, weights)
    mean, scale = X[rows].mean(0), X[rows].std(0)
    signed = (2 * y[rows] - 1)[:, None] * np.c_[np.ones(len(rows)), (X[rows] - mean) / scale]
    draws = by_importance(lambda b: scipy.special.log_expit(b @ signed.T).sum(1) + log_prior(b), 3)
    coef = draws[:, 1:] / scale
    check(model.coef_[0], model.coef_std_[0], coef)
    check(model.intercept_[0], model.intercept_std_[0], draws[:, 0] - coef @ mean)
    exact = scipy.special.expit((draws[:, :1] - coef @ mean[:, None]) + coef @ X.T)
    found = model.predict_proba(X)
    np.testing.assert_allclose((found[:, 1] - exact.mean(0)) / exact.std(0), 0, atol=2 * ACCURACY)
    np.testing.assert_allclose(found.sum(1), 1)


def softmax_draws(y, scales):
    def log_posterior(b):
        logits = np.einsum("id,sdk->sik", ROWS, b.reshape(-1, 3, 3))
        values = scipy.special.log_softmax(logits, axis=2)[:, np.arange(N), y].sum(1)
        return values - 0.5 * np.sum((b.reshape(-1, 3, 3) / np.asarray(scales)[:, None]) ** 2, axis=(1, 2))

    return by_importance(log_posterior, 9, 20_000).reshape(-1, 3, 3)


def test_three_classes():
    y = np.digitize(ETA + RNG.logistic(size=N), [-0.5, 0.7])
    model = BayesianLogisticRegression(accuracy=ACCURACY, random_state=0).fit(X, np.array(["a", "b", "c"])[y])
    draws = softmax_draws(y, [2.5, 2.5, 2.5])
    coef = np.swapaxes(draws[:, 1:] / X.std(0)[:, None], 1, 2)
    check(model.coef_, model.coef_std_, coef)
    check(model.intercept_, model.intercept_std_, draws[:, 0] - coef @ X.mean(0))
    exact = scipy.special.softmax(np.einsum("id,sdk->sik", ROWS, draws), axis=2)
    np.testing.assert_allclose((model.predict_proba(X) - exact.mean(0)) / exact.std(0), 0, atol=2 * ACCURACY)


def test_poisson():
    y = RNG.poisson(20 * np.exp(0.5 * ETA))
    model = BayesianPoissonRegressor(accuracy=ACCURACY, random_state=0).fit(X, y)
    offset = np.log(y.mean())

    def log_posterior(b):
        eta = offset + b @ ROWS.T
        return eta @ y - np.exp(eta).sum(1) + log_prior(b)

    coef, intercept = in_units(by_importance(log_posterior, 3))
    check(model.coef_, model.coef_std_, coef)
    check(model.intercept_, model.intercept_std_, intercept + offset)
    rates = np.exp(offset + intercept[:, None] + coef @ X.T)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose((mean - rates.mean(0)) / rates.std(0), 0, atol=2 * ACCURACY)
    np.testing.assert_allclose(std, np.sqrt(rates.mean(0) + rates.var(0)), rtol=0.08)
    low, high = model.predict_interval(X, 0.9).T
    inside = scipy.stats.poisson.cdf(high, rates[:2_000]).mean(0) - scipy.stats.poisson.cdf(
        low - 1, rates[:2_000]
    ).mean(0)
    assert np.all((inside > 0.89) & (inside < 0.97))  # counts are discrete


def test_a_network_without_hidden_layers_is_a_regression():
    """With N(0, prior_scale²/features) for the coefficients."""
    y = 30 + 4 * ETA + 3 * RNG.normal(size=N)
    model = BayesianMLPRegressor(hidden_layer_sizes=(), accuracy=ACCURACY, prior_scale=1.0, random_state=0).fit(X, y)
    assert model.verdict_.reached
    unit = y.std()
    prior = np.diag(unit**2 * np.array([1.0, 1 / D, 1 / D]))
    sigma = model.noise_scale_
    covariance = np.linalg.inv(np.linalg.inv(prior) + ROWS.T @ ROWS / sigma**2)  # given the mean of σ: nearly the same
    exact = y.mean() + ROWS @ covariance @ ROWS.T @ (y - y.mean()) / sigma**2
    spread = np.sqrt(np.einsum("ij,jk,ik->i", ROWS, covariance, ROWS))
    found, std = model.predict(X, return_std=True)
    np.testing.assert_allclose((found - exact) / spread, 0, atol=2.5 * ACCURACY)
    np.testing.assert_allclose(std, np.sqrt(spread**2 + np.mean(model.noise_scale_draws_**2)), rtol=0.03)
    residual = np.sqrt(np.mean((y - found) ** 2))
    assert sigma == pytest.approx(residual, rel=0.12)


def test_a_network_without_hidden_layers_is_a_logistic_regression():
    y = np.digitize(ETA + RNG.logistic(size=N), [-0.5, 0.7])
    options = {"hidden_layer_sizes": (), "accuracy": ACCURACY, "prior_scale": 2.0, "random_state": 0}
    model = BayesianMLPClassifier(**options).fit(X, y)
    assert model.verdict_.reached
    draws = softmax_draws(y, [2.0, 2.0 / np.sqrt(D), 2.0 / np.sqrt(D)])
    exact = scipy.special.softmax(np.einsum("id,sdk->sik", ROWS, draws), axis=2)
    error = (model.predict_proba(X) - exact.mean(0)) / exact.std(0)
    assert np.sqrt(np.mean(error**2)) < 1.5 * ACCURACY
