"""Linear regression with unknown noise: its posterior, by quadrature over σ."""

import numpy as np
import scipy.stats


def mixture(X, y, least=-12.0, prior_scale=2.5):
    """Weights on a grid of σ, and mean and covariance of (intercept at the means, coefficients) given each σ.

    In the units of the data, by the marginal and conditional distributions of a multivariate normal one. `least` is the
    log of the smallest σ, in units of the sd of y.
    """
    center, unit = y.mean(), y.std()
    rows = np.c_[np.ones(len(X)), X - X.mean(0)]
    prior = np.diag((prior_scale * unit / np.r_[1.0, X.std(0)]) ** 2)
    grid = unit * np.exp(np.linspace(least, 4, 400))
    log_weight, means, covariances = [], [], []
    for sigma in grid:
        marginal = rows @ prior @ rows.T + sigma**2 * np.eye(len(X))
        gain = prior @ rows.T @ np.linalg.inv(marginal)
        ratio = sigma / unit
        log_prior = np.log(ratio) - ratio - 0.5e-6 / ratio**2
        log_weight.append(scipy.stats.multivariate_normal.logpdf(y - center, cov=marginal) + log_prior)
        means.append(gain @ (y - center) + np.r_[center, np.zeros(X.shape[1])])
        covariances.append(prior - gain @ rows @ prior)
    weight = np.exp(log_weight - np.max(log_weight))
    return weight / weight.sum(), grid, np.array(means), np.array(covariances)


def moments(X, y, least=-12.0):
    """Exact means and sds of coefficients and of σ."""
    weight, grid, means, covariances = mixture(X, y, least)
    mean = weight @ means
    second = np.einsum("s,sij->ij", weight, covariances + means[:, :, None] * means[:, None, :])
    noise = weight @ grid
    return mean, np.sqrt(np.diag(second) - mean**2), noise, np.sqrt(weight @ grid**2 - noise**2)
