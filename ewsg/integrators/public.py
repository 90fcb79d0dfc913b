"""The names that `ewsg` and this room share, one line each."""

from .aboba import ABOBA as ABOBA
from .baoab import BAOAB as BAOAB
from .base import AbstractIntegrator as AbstractIntegrator
from .overdamped import Overdamped as Overdamped
from .preconditioned import Preconditioned as Preconditioned
from .thermostat import Thermostat as Thermostat
from .ubu import UBU as UBU
from .underdamped import Underdamped as Underdamped
from .walled import Walled as Walled
