"""The posterior to sample: its data, likelihood and prior, its mode, and transformations of it."""

from .checking import check_start
from .target import Target, flat

__all__ = ["Target", "check_start", "flat"]
