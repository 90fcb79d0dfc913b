"""All experiments, in the order of the paper."""

from . import mean_convergence, misspecified, theorems, vr_logistic
from .covertype import experiment
from .experiment import Experiment
from .gaussian import kl, m, mse_bias, mse_step, mse_time, vr, x
from .networks import cnn, index_chain, mlp

_MODULES = (
    kl,
    x,
    m,
    mse_time,
    mse_step,
    mse_bias,
    vr,
    vr_logistic,
    experiment,
    mlp,
    cnn,
    index_chain,
    misspecified,
    mean_convergence,
    theorems,
)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
"""By name."""
