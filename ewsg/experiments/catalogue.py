"""All experiments, in the order of the paper."""

from . import (
    blr_covertype,
    bnn_cnn,
    bnn_m,
    bnn_mlp,
    gaussian_kl,
    gaussian_m,
    gaussian_x,
    misspecified,
    mse_bias,
    mse_step,
    mse_time,
    speed,
    theorems,
    vr_gaussian,
    vr_logistic,
)
from .base import Experiment

_MODULES = (
    gaussian_kl,
    gaussian_x,
    gaussian_m,
    mse_time,
    mse_step,
    mse_bias,
    vr_gaussian,
    vr_logistic,
    blr_covertype,
    bnn_mlp,
    bnn_cnn,
    bnn_m,
    misspecified,
    speed,
    theorems,
)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
"""By name."""
