"""The names that `ewsg` and this room share, one line each."""

from .base import AbstractEstimator as AbstractEstimator
from .clustered import Clustered as Clustered
from .control_variate import ControlVariate as ControlVariate
from .covariance_friction import CovarianceFriction as CovarianceFriction
from .exponential import Exponential as Exponential
from .full import Full as Full
from .leverage import Leverage as Leverage
from .midpoint_friction import MidpointFriction as MidpointFriction
from .paired import Paired as Paired
from .reshuffled import Reshuffled as Reshuffled
from .sms import SMS as SMS
from .svrg import SVRG as SVRG
from .uniform import Uniform as Uniform
