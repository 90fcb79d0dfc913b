"""Whole methods that are neither estimator nor integrator: `ewsg.sample(target, kernel, ...)` runs them."""

from .bounds import AbstractBound
from .flymc import FlyMC
from .gaussian_bound import GaussianTaylorBound
from .logistic_bound import LogisticBound
from .nuts import NUTS, adapt_nuts
from .random_walk import RandomWalk

__all__ = [
    "NUTS",
    "AbstractBound",
    "FlyMC",
    "GaussianTaylorBound",
    "LogisticBound",
    "RandomWalk",
    "adapt_nuts",
]
