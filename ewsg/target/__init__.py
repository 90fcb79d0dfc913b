"""The posterior to sample: its data, likelihood and prior, its mode, and transformations of it."""

from .target import Target, check_start, flat

__all__ = ["Target", "check_start", "flat"]
