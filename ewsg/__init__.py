"""Stochastic-gradient MCMC whose minibatches are chosen, not only drawn."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import (
        collect,
        datasets,
        diagnostics,
        errors,
        kernels,
        models,
        modules,
        prediction,
        recipes,
        schedules,
        theory,
    )
    from .estimators import (
        SMS,
        SVRG,
        Clustered,
        ControlVariate,
        CovarianceFriction,
        Exponential,
        Full,
        Paired,
        Reshuffled,
        Uniform,
    )
    from .integrators import BAOAB, UBU, Overdamped, Preconditioned, Thermostat, Underdamped
    from .kernels import NUTS, FlyMC, RandomWalk
    from .result.run import Run
    from .result.storage import load
    from .sampler import Sampler, compose
    from .sampling import resume, sample
    from .target.mode import find_mode
    from .target.target import Target

_HOME = {
    "BAOAB": "integrators",
    "Clustered": "estimators",
    "ControlVariate": "estimators",
    "CovarianceFriction": "estimators",
    "Exponential": "estimators",
    "FlyMC": "kernels",
    "Full": "estimators",
    "NUTS": "kernels",
    "Overdamped": "integrators",
    "Paired": "estimators",
    "Preconditioned": "integrators",
    "RandomWalk": "kernels",
    "Reshuffled": "estimators",
    "Run": "result",
    "SMS": "estimators",
    "SVRG": "estimators",
    "Sampler": "sampler",
    "Target": "target",
    "Thermostat": "integrators",
    "UBU": "integrators",
    "Underdamped": "integrators",
    "Uniform": "estimators",
    "compose": "sampler",
    "find_mode": "target.mode",
    "load": "result.storage",
    "resume": "sampling",
    "sample": "sampling",
}
_MODULES = (
    "collect",
    "datasets",
    "diagnostics",
    "errors",
    "kernels",
    "models",
    "modules",
    "prediction",
    "recipes",
    "schedules",
    "theory",
)

__all__ = [
    "BAOAB",
    "NUTS",
    "SMS",
    "SVRG",
    "UBU",
    "Clustered",
    "ControlVariate",
    "CovarianceFriction",
    "Exponential",
    "FlyMC",
    "Full",
    "Overdamped",
    "Paired",
    "Preconditioned",
    "RandomWalk",
    "Reshuffled",
    "Run",
    "Sampler",
    "Target",
    "Thermostat",
    "Underdamped",
    "Uniform",
    "collect",
    "compose",
    "datasets",
    "diagnostics",
    "errors",
    "find_mode",
    "kernels",
    "load",
    "models",
    "modules",
    "prediction",
    "recipes",
    "resume",
    "sample",
    "schedules",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `ewsg --help` does not wait for JAX."""
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'ewsg' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
