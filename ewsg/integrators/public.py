"""The names that `ewsg` and this room share, one line each."""

from .aboba import ABOBA as ABOBA
from .baoab import BAOAB as BAOAB
from .barker import Barker as Barker
from .base import AbstractIntegrator as AbstractIntegrator
from .lattice import Lattice as Lattice
from .overdamped import Overdamped as Overdamped
from .preconditioned import Preconditioned as Preconditioned
from .thermostat import Thermostat as Thermostat
from .ubu import UBU as UBU
from .underdamped import Underdamped as Underdamped
from .walled import Walled as Walled
