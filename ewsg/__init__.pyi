# The public names: one line each. Type checkers read this file, and `__init__.py` finds in it where a name lives.

__version__: str

from . import (
    collect as collect,
    coordinates as coordinates,
    datasets as datasets,
    diagnostics as diagnostics,
    errors as errors,
    estimators as estimators,
    integrators as integrators,
    interface as interface,
    kernels as kernels,
    models as models,
    modules as modules,
    prediction as prediction,
    problems as problems,
    random as random,
    recipes as recipes,
    reference as reference,
    schedules as schedules,
    theory as theory,
    tree as tree,
)
from .collect import AbstractCollector as AbstractCollector
from .estimators import (
    SMS as SMS,
    SVRG as SVRG,
    AbstractEstimator as AbstractEstimator,
    Clustered as Clustered,
    ControlVariate as ControlVariate,
    CovarianceFriction as CovarianceFriction,
    Exponential as Exponential,
    Full as Full,
    Leverage as Leverage,
    Paired as Paired,
    Reshuffled as Reshuffled,
    Uniform as Uniform,
)
from .integrators import (
    BAOAB as BAOAB,
    UBU as UBU,
    AbstractIntegrator as AbstractIntegrator,
    Overdamped as Overdamped,
    Preconditioned as Preconditioned,
    Thermostat as Thermostat,
    Underdamped as Underdamped,
    Walled as Walled,
)
from .kernels import (
    NUTS as NUTS,
    FlyMC as FlyMC,
    RandomWalk as RandomWalk,
)
from .planning.plan import Plan as Plan
from .planning.sampling import plan as plan
from .result.run import Run as Run
from .result.storage import load as load
from .sampler import (
    AbstractKernel as AbstractKernel,
    Sampler as Sampler,
    compose as compose,
)
from .sampling import (
    resume as resume,
    sample as sample,
)
from .target.likelihood import AbstractLikelihood as AbstractLikelihood
from .target.mode import find_mode as find_mode
from .target.target import Target as Target
