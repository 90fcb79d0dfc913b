"""Which data: estimators of the force from a few of the n data."""

from .base import AbstractEstimator
from .clustered import Clustered
from .control_variate import ControlVariate
from .covariance_friction import CovarianceFriction
from .exponential import Exponential
from .full import Full
from .paired import Paired
from .reshuffled import Reshuffled
from .sms import SMS
from .svrg import SVRG
from .uniform import Uniform

__all__ = [
    "SMS",
    "SVRG",
    "AbstractEstimator",
    "Clustered",
    "ControlVariate",
    "CovarianceFriction",
    "Exponential",
    "Full",
    "Paired",
    "Reshuffled",
    "Uniform",
]
