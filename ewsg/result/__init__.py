"""The result of `sample`: draws, statistics, cost and status, and how they are shown, saved and explained."""

from .._engine.state import Checkpoint
from .cost import RunCost
from .run import Run
from .storage import load

__all__ = ["Checkpoint", "Run", "RunCost", "load"]
