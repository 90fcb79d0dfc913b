"""What a run leaves: draws, statistics, cost, status; how it is shown, saved and explained."""

from .run import Checkpoint, Run, RunCost

__all__ = ["Checkpoint", "Run", "RunCost"]
