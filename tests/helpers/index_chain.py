"""The law of EWSG's index chain, and a test of frequencies against a law."""

import numpy as np

DRAWS = 100_000


def chain_law(log_weight, length):
    """The M-step law of the Metropolis chain from a uniform start, by powers of its matrix."""
    k = len(log_weight)
    accept = np.minimum(1, np.exp(log_weight[None, :] - log_weight[:, None])) / k
    matrix = accept - np.diag(np.diag(accept))
    matrix += np.diag(1 - matrix.sum(1))
    return np.full(k, 1 / k) @ np.linalg.matrix_power(matrix, length)


def assert_law(observed, expected, draws=DRAWS):
    """Pearson's statistic within five of its standard deviations."""
    kept = expected * draws > 5
    statistic = draws * np.sum((observed[kept] - expected[kept]) ** 2 / expected[kept])
    freedom = kept.sum()
    assert statistic < freedom + 5 * np.sqrt(2 * freedom)
