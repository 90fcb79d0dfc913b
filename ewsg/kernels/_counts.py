"""Counts and shares as Python's numbers, whichever kind of number they were given as."""

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python number, which is static without a warning; all else is left for the check to judge."""
    return value.item() if isinstance(value, np.generic) else value
