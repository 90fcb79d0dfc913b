"""Prediction by posterior averaging, p(y | x) = mean over draws of p(y | x, θ), and how good it is.

Averages are updated draw by draw: only the outputs of one draw for one block of rows are in memory at a time. `predict`
goes over kept draws; `Predictive` averages while sampling, for networks too large to keep draws.
"""

from .averages import predict, probabilities
from .calibration import Calibration, calibration
from .classes import Prediction, Score, rhat
from .collector import Predictive, collected
from .likelihoods import log_likelihood, log_likelihood_blocks
from .regression import Regression, RegressionScore
from .scores import score

__all__ = [
    "Calibration",
    "Prediction",
    "Predictive",
    "Regression",
    "RegressionScore",
    "Score",
    "calibration",
    "collected",
    "log_likelihood",
    "log_likelihood_blocks",
    "predict",
    "probabilities",
    "rhat",
    "score",
]
