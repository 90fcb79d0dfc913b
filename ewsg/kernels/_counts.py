"""Counts as Python's integers, whichever kind of integer they were given as."""

import operator
from typing import Any

import numpy as np


def whole(value: Any) -> Any:
    """A NumPy integer as a Python one, which is static without a warning; all else is left for the check to judge."""
    return operator.index(value) if isinstance(value, np.integer) else value
