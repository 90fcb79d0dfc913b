"""Lower bounds of likelihoods, for FlyMC."""

from .base import AbstractBound, Prepared
from .gaussian import GaussianTaylorBound
from .logistic import LogisticBound

__all__ = ["AbstractBound", "GaussianTaylorBound", "LogisticBound", "Prepared"]
