"""What `sample` returns: draws, statistics, cost and status; how they are shown, saved and explained."""

from .._engine.state import Checkpoint
from .cost import RunCost
from .run import Run
from .storage import load

__all__ = ["Checkpoint", "Run", "RunCost", "load"]
