"""Which data: estimators of the force from a few of the n data."""

from .base import AbstractEstimator
from .exponential import Exponential
from .full import Full
from .reshuffled import Reshuffled
from .uniform import Uniform

__all__ = ["AbstractEstimator", "Exponential", "Full", "Reshuffled", "Uniform"]
