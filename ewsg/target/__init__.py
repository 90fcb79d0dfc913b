"""What is sampled: a posterior, its data and its likelihood."""

from .target import Target, check_start, flat

__all__ = ["Target", "check_start", "flat"]
