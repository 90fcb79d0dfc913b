"""Which data: estimators of the force from a few of the n data."""

from .base import (
    AbstractMinibatch as AbstractMinibatch,
    batch_noise as batch_noise,
    draw_batch as draw_batch,
)
from .correction import AbstractCorrection as AbstractCorrection
from .public import *
