"""The misspecified model: its exact posterior, and autocorrelations."""

import numpy as np
import scipy.signal
import scipy.stats

from ewsg.lab.experiments import misspecified


def test_exact_posterior_of_the_misspecified_model():
    """Against quadrature on a grid."""
    data = np.exp(np.random.default_rng(1).normal(size=40)).astype(np.float32)
    x = data.astype(float)
    mu, s = np.meshgrid(np.linspace(-3, 7, 801), np.linspace(-1.5, 2.5, 801), indexing="ij")
    squares = np.sum((x - x.mean()) ** 2) + len(x) * (x.mean() - mu) ** 2
    weights = np.exp(-len(x) * s - squares / (2 * np.exp(2 * s)) + 50)
    weights /= weights.sum()
    means = [np.sum(weights * v) for v in (mu, s)]
    sds = [np.sqrt(np.sum(weights * (v - m) ** 2)) for v, m in zip((mu, s), means, strict=True)]
    exact = misspecified.exact(data)
    np.testing.assert_allclose(exact.mean, means, rtol=1e-4)
    np.testing.assert_allclose(exact.sd, sds, rtol=1e-4)


def test_autocorrelation_of_an_autoregression():
    rng = np.random.default_rng(0)
    values = scipy.signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=200_000))
    np.testing.assert_allclose(misspecified.autocorrelation(values, np.array([0, 1, 10])), [1, 0.9, 0.9**10], atol=0.02)
