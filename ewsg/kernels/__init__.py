"""Whole methods, which need neither an estimator nor an integrator: `ewsg.sample(target, kernel, ...)` runs them."""

from .bounds.base import AbstractBound as AbstractBound
from .bounds.gaussian import GaussianTaylorBound as GaussianTaylorBound
from .bounds.logistic import LogisticBound as LogisticBound
from .nuts import adapt_nuts as adapt_nuts
from .public import *
