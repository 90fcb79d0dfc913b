"""Prediction by posterior averaging, p(y | x) = mean over draws of p(y | x, θ), and how good it is.

Averages are updated draw by draw: only the outputs of one draw for one block of rows are in memory at a time. `predict`
goes over kept draws; `Predictive` averages while sampling, for networks too large to keep draws.
"""

from .averages import predict, probabilities
from .classes import Prediction, Score, rhat
from .collector import Predictive, collected
from .regression import Regression, RegressionScore
from .scores import score

__all__ = [
    "Prediction",
    "Predictive",
    "Regression",
    "RegressionScore",
    "Score",
    "collected",
    "predict",
    "probabilities",
    "rhat",
    "score",
]
