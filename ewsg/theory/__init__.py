"""The paper's theorems as code, one per file: each computes its quantities for your own posterior or run.

| file | subject in the paper |
|---|---|
| `optimal.py` | Theorem 1: the best unbiased weights have at most d + 1 non-zeros |
| `local.py` | Theorem 2: the local variance of EWSG against that of uniform subsampling |
| `trace.py` | Theorem 3, middle term: how much the stochastic force varies along a run |
| `mse.py` | Theorem 3: the error of a time average, and its three terms |
| `slope.py` | the orders in T and h that Theorem 3 predicts |
| `convergence.py` | last appendix: the mean converges as (I + Ah)^k |
"""

from .convergence import contraction, mean_matrix, mean_trajectory, quadratic_target
from .gradients import datum_gradients
from .local import LocalTraces, ewsg_weights, first_order_change, local_covariance, local_traces, momentum_x
from .mse import MseConstants, MseTerms, SquaredErrors, mse_terms, running_errors, squared_errors
from .optimal import OptimalWeights, optimal_weights
from .slope import Interval, Slope, fit_slope
from .trace import MeanTrace, force_traces, mean_trace

__all__ = [
    "Interval",
    "LocalTraces",
    "MeanTrace",
    "MseConstants",
    "MseTerms",
    "OptimalWeights",
    "Slope",
    "SquaredErrors",
    "contraction",
    "datum_gradients",
    "ewsg_weights",
    "first_order_change",
    "fit_slope",
    "force_traces",
    "local_covariance",
    "local_traces",
    "mean_matrix",
    "mean_trace",
    "mean_trajectory",
    "momentum_x",
    "mse_terms",
    "optimal_weights",
    "quadratic_target",
    "running_errors",
    "squared_errors",
]
