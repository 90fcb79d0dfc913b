"""How to move: discretised Langevin dynamics."""

from .base import AbstractIntegrator
from .overdamped import Overdamped
from .underdamped import Underdamped

__all__ = ["AbstractIntegrator", "Overdamped", "Underdamped"]
