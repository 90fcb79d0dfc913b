"""How to move: discretised Langevin dynamics."""

from .baoab import BAOAB
from .base import AbstractIntegrator
from .overdamped import Overdamped
from .preconditioned import Preconditioned
from .thermostat import Thermostat
from .ubu import UBU
from .underdamped import Underdamped

__all__ = ["BAOAB", "UBU", "AbstractIntegrator", "Overdamped", "Preconditioned", "Thermostat", "Underdamped"]
