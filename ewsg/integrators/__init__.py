"""How to move: discretised Langevin dynamics."""

from .baoab import BAOAB as BAOAB
from .base import (
    AbstractIntegrator as AbstractIntegrator,
    ForceFunction as ForceFunction,
    Phase as Phase,
)
from .friction import AbstractFriction as AbstractFriction, AbstractLangevin as AbstractLangevin
from .overdamped import Overdamped as Overdamped
from .preconditioned import Preconditioned as Preconditioned
from .thermostat import Thermostat as Thermostat
from .ubu import UBU as UBU
from .underdamped import Underdamped as Underdamped
from .walled import Walled as Walled
