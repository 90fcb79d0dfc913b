# The public names, one line each, here or in the `public.py` of a room. Type checkers read this file, and `__init__.py`
# finds in it where a name lives.

__version__: str

from . import (
    collect as collect,
    coordinates as coordinates,
    datasets as datasets,
    diagnostics as diagnostics,
    errors as errors,
    estimators as estimators,
    files as files,
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
    sklearn as sklearn,
    theory as theory,
    tree as tree,
)
from .collect import AbstractCollector as AbstractCollector
from .estimators.public import *
from .integrators.public import *
from .kernels.public import *
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
