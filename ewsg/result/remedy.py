"""The way out of a step that is too large: a step size by number, or a plan."""

import math
from typing import Any

PLAN = "let ewsg.plan(target) choose"


def smaller_step(settings: dict[str, Any], times: float) -> str:
    """What brings down an error that is proportional to the step size and, if data are drawn, to 1/batch.

    Args:
        settings: of the run.
        times: how many times too large the error is.
    """
    step_size = (settings.get("integrator") or {}).get("step_size")
    if isinstance(step_size, int | float):
        step = f"take step_size={_digits(step_size / times)}"
    else:
        step = f"divide the step size by {_digits(times)}"
    batch = f" or a batch {max(2, math.ceil(times - 0.1))} times as large" if _draws(settings.get("estimator")) else ""
    return f"{step}{batch}, or {PLAN}"


def _draws(estimator: Any) -> bool:
    """Whether an estimator, as the settings describe it, or one that it wraps, has a batch size."""
    while isinstance(estimator, dict):
        if "batch_size" in estimator:
            return True
        estimator = estimator.get("inner")
    return False


def _digits(value: float) -> str:
    """Two digits, rounded to the nearest."""
    return f"{value:.2g}" if value < 100 else f"{value:.0f}"
