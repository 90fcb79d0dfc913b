"""Shared by the experiments on logistic regression."""

import numpy as np


def log_likelihood(draws: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The mean over rows of log p(y | x, θ), for each draw (leading axis); labels are folded into the rows."""
    return -np.logaddexp(0, -(rows @ draws.T)).mean(0)
