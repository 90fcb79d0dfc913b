"""Whole methods that are neither estimator nor integrator: `ewsg.sample(target, kernel, ...)` runs them."""

from .bounds.base import AbstractBound
from .bounds.gaussian import GaussianTaylorBound
from .bounds.logistic import LogisticBound
from .flymc import FlyMC
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
