"""Advice against a step that is too large: a smaller step size, a larger batch, or a plan."""

import math
from typing import Any

PLAN = "let ewsg.plan(target) choose"


def smaller_step(settings: dict[str, Any], times: float) -> str:
    """Advice to bring down an error that is proportional to the step size and, with minibatches, to 1/batch.

    Args:
        settings: the settings of the run.
        times: the factor by which the error is too large.
    """
    step_size = (settings.get("integrator") or {}).get("step_size")
    if isinstance(step_size, int | float):
        step = f"take step_size={_digits(step_size / times)}"
    else:
        step = f"divide the step size by {_digits(times)}"
    batch = f" or a batch {max(2, math.ceil(times - 0.1))} times as large" if _draws(settings.get("estimator")) else ""
    return f"{step}{batch}, or {PLAN}"


def _draws(estimator: Any) -> bool:
    """Whether an estimator (as described in the settings), or one inside it, has a batch size."""
    while isinstance(estimator, dict):
        if "batch_size" in estimator:
            return True
        estimator = estimator.get("inner")
    return False


def _digits(value: float) -> str:
    """Two significant digits; a whole number from 100 on."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"
