"""A sampled negative binomial posterior against its exact moments, by sums over a grid."""

import numpy as np
import scipy.stats

import ewsg


def test_mean_and_dispersion_of_counts():
    counts = np.random.default_rng(0).negative_binomial(2, 0.3, 300)
    run = ewsg.sample(ewsg.models.negative_binomial(np.ones((300, 1)), counts), accuracy=0.05, progress=False)
    assert run.verdict is not None
    assert run.verdict.reached
    log_mean, log_dispersion = np.linspace(1.2, 1.9, 201)[:, None, None], np.linspace(-1.6, 0.4, 201)[None, :, None]
    values, number = np.unique(counts, return_counts=True)
    r = np.exp(-log_dispersion)
    log_density = (number * scipy.stats.nbinom.logpmf(values, r, r / (r + np.exp(log_mean)))).sum(-1)
    log_density -= (log_mean[..., 0] ** 2 + log_dispersion[..., 0] ** 2) / (2 * 2.5**2)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    assert max(weights[[0, -1]].sum(), weights[:, [0, -1]].sum()) < 1e-6  # the grid holds everything
    for draws, grid in (
        (run.draws["coefficients"][..., 0], log_mean[..., 0]),
        (run.draws["log_dispersion"], log_dispersion[..., 0]),
    ):
        mean = (weights * grid).sum()
        sd = np.sqrt((weights * (grid - mean) ** 2).sum())
        assert abs(draws.mean() - mean) < 0.1 * sd
        assert abs(draws.std() - sd) < 0.1 * sd
