"""The posteriors that are sampled are those of the documentation, whatever is merged, weighted and padded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from ewsg.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPoissonRegressor,
    _rows,
)

RNG = np.random.default_rng(1)
N, D = 37, 2
X = RNG.normal(size=(N, D)) * [1.0, 50.0] + [3.0, -20.0]
W = RNG.uniform(0.5, 2.0, N)
MEAN = W @ X / W.sum()
SCALE = np.sqrt(W @ (X - MEAN) ** 2 / W.sum())
PRIOR = 1.7


def log_density(estimator, responses):
    """−V as the engine computes it, a function of the parameters."""
    target, _ = estimator._posterior(_rows.merged(X, responses, W), 0)
    return lambda position: float(target.log_density(jax.tree.map(jnp.asarray, position)))


def check(own, exact, places):
    """Equal up to a constant, at four places."""
    found = np.array([own(place) for place in places])
    wanted = np.array([exact(place) for place in places])
    np.testing.assert_allclose(found - found[0], wanted - wanted[0], rtol=2e-5, atol=2e-4)


def eta(b):
    """The linear predictor, of an intercept at the mean and coefficients in units of the scales."""
    return b[0] + (X - MEAN) / SCALE @ b[1 : 1 + D]


def as32(*shape):
    return [RNG.normal(size=shape).astype(np.float32) for _ in range(4)]


def log_normal(b):
    return -0.5 * np.sum(np.square(b, dtype=np.float64)) / PRIOR**2


def log_noise(s):
    return s - np.exp(s) - 0.5e-6 * np.exp(-2 * s)


def test_linear():
    y = X @ [2.0, 0.1] + 5 * RNG.normal(size=N)
    center = W @ y / W.sum()
    unit = np.sqrt(W @ (y - center) ** 2 / W.sum())

    def exact(place):
        b, s = place["coefficients"], float(place["log_scale"])
        values = scipy.stats.norm.logpdf(y, center + unit * eta(b), unit * np.exp(s))
        return W @ values + log_normal(b) + log_noise(s)

    places = [{"coefficients": b, "log_scale": s[()]} for b, s in zip(as32(4), as32(), strict=True)]
    places = [{name: np.asarray(value, np.float32) for name, value in place.items()} for place in places]
    check(log_density(BayesianLinearRegression(prior_scale=PRIOR), y), exact, places)


def test_logistic():
    y = RNG.integers(0, 2, N)
    estimator = BayesianLogisticRegression(prior_scale=PRIOR)
    estimator.classes_ = np.arange(2)

    def exact(b):
        return W @ scipy.special.log_expit((2 * y - 1) * eta(b)) + log_normal(b)

    check(log_density(estimator, y), exact, as32(4))


def test_softmax():
    y = RNG.integers(0, 3, N)
    estimator = BayesianLogisticRegression(prior_scale=PRIOR)
    estimator.classes_ = np.arange(3)

    def exact(b):
        return W @ scipy.special.log_softmax(eta(b), axis=1)[np.arange(N), y] + log_normal(b)

    check(log_density(estimator, y), exact, as32(4, 3))


def test_poisson():
    y = RNG.poisson(30, N).astype(float)
    center = np.log(W @ y / W.sum())

    def exact(b):
        return W @ scipy.stats.poisson.logpmf(y, np.exp(center + eta(b))) + log_normal(b)

    check(log_density(BayesianPoissonRegressor(prior_scale=PRIOR), y), exact, [b / 4 for b in as32(4)])


def network(params, activation=np.tanh):
    inputs = np.pad((X - MEAN) / SCALE / np.sqrt(D), ((0, 0), (0, 4 - D)))
    hidden = activation(inputs @ params["weights"][0] + params["biases"][0])
    return hidden / np.sqrt(5) @ params["weights"][1] + params["biases"][1]


def networks(outputs):
    layers = zip(as32(4, 5), as32(5, outputs), as32(5), as32(outputs), strict=True)
    return [{"weights": [a, b], "biases": [c, d]} for a, b, c, d in layers]


def log_normal_layers(params):
    return sum(log_normal(leaf) for leaf in params["weights"] + params["biases"])


@pytest.mark.parametrize("activation", ["tanh", "relu", "silu"])
def test_network_of_classes(activation):
    y = RNG.integers(0, 3, N)
    estimator = BayesianMLPClassifier(hidden_layer_sizes=5, activation=activation, prior_scale=PRIOR)
    estimator.classes_ = np.arange(3)
    bend = {"tanh": np.tanh, "relu": lambda x: x * (x > 0), "silu": lambda x: x / (1 + np.exp(-x))}[activation]

    def exact(params):
        logits = network(params, bend)
        return W @ scipy.special.log_softmax(logits, axis=1)[np.arange(N), y] + log_normal_layers(params)

    check(log_density(estimator, y), exact, networks(3))


def test_network_of_responses():
    y = X @ [2.0, 0.1] + 5 * RNG.normal(size=N)
    center = W @ y / W.sum()
    unit = np.sqrt(W @ (y - center) ** 2 / W.sum())

    def exact(params):
        s = float(params["log_scale"])
        mean = center + unit * network(params)[:, 0]
        return W @ scipy.stats.norm.logpdf(y, mean, unit * np.exp(s)) + log_normal_layers(params) + log_noise(s)

    places = [
        params | {"log_scale": s} for params, s in zip(networks(1), np.float32([0.1, -0.5, 0.3, 0.7]), strict=True)
    ]
    check(log_density(BayesianMLPRegressor(hidden_layer_sizes=(5,), prior_scale=PRIOR), y), exact, places)
