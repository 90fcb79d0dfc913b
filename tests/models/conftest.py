"""Every regression, in both precisions."""

import jax
import pytest
from regressions import CASES, TOLERANCE, Case


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return CASES[request.param]


@pytest.fixture(params=TOLERANCE)
def tolerance(request):
    """The relative tolerance of a dtype, which is in force during the test."""
    with jax.enable_x64(request.param == "float64"):
        yield TOLERANCE[request.param]
