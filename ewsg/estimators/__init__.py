"""Which data: estimators of the force from a few of the n data."""

from .base import (
    AbstractEstimator as AbstractEstimator,
    AbstractMinibatch as AbstractMinibatch,
    batch_noise as batch_noise,
    draw_batch as draw_batch,
)
from .clustered import Clustered as Clustered
from .control_variate import ControlVariate as ControlVariate
from .correction import AbstractCorrection as AbstractCorrection
from .covariance_friction import CovarianceFriction as CovarianceFriction
from .exponential import Exponential as Exponential
from .full import Full as Full
from .leverage import Leverage as Leverage
from .paired import Paired as Paired
from .reshuffled import Reshuffled as Reshuffled
from .sms import SMS as SMS
from .svrg import SVRG as SVRG
from .uniform import Uniform as Uniform
