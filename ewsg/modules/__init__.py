"""Networks as targets: Equinox, Flax NNX and PyTorch modules, their parameters as a flat dict, and their losses.

A position is {"layers.0.weight": array, ...}: names that summaries show and files keep. Neither Flax nor PyTorch is
imported here: a module of theirs can only exist once the user has imported them.
"""

from .door import (
    check_data,
    check_module,
    function_of,
    is_module,
    is_module_with_variables,
    log_likelihood_of,
    parameters,
    prediction_of,
    restore,
)
from .losses import cross_entropy, standard_normal

__all__ = [
    "check_data",
    "check_module",
    "cross_entropy",
    "function_of",
    "is_module",
    "is_module_with_variables",
    "log_likelihood_of",
    "parameters",
    "prediction_of",
    "restore",
    "standard_normal",
]
