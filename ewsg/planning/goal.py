"""What a planned run is for, and what was tried on the way."""

import dataclasses
from typing import NamedTuple

from . import rule

_PLANNING_SHARE = 0.3


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a run is for.

    Attributes:
        accuracy: of every mean and sd, in posterior sd; None is the best that the budget allows.
        budget: datum gradients, all chains and the plan together; None is no limit.
        seconds: of wall-clock time; None is no limit.
        num_chains: chains.
        pooled: whether chains are pooled; if not, the error of each one counts (for comparisons).
    """

    accuracy: float | None = 0.05
    budget: float | None = None
    seconds: float | None = None
    num_chains: int = 32
    pooled: bool = True

    @property
    def judged_accuracy(self) -> float:
        """What a run is judged against: the accuracy asked for, or 0.05."""
        return 0.05 if self.accuracy is None else self.accuracy

    def pays(self, gradients: float) -> bool:
        """Whether the budget is at least so many datum gradients."""
        return self.budget is None or gradients <= self.budget

    def lets_plan(self, gradients: float) -> bool:
        """Whether so many datum gradients are within planning's share of the budget."""
        return self.budget is None or gradients <= _PLANNING_SHARE * self.budget

    def share(self, gradients: float) -> float:
        """What counts for an error: all of it, or for the error of one chain the second half of its share."""
        return gradients if self.pooled else gradients / self.num_chains / 2

    def left(self, spent: float) -> float | None:
        """The budget for which the error is to be least; None where an accuracy is the goal."""
        if self.accuracy is not None or self.budget is None:
            return None
        return self.share(max(self.budget - spent, 1.0))


class Pilot(NamedTuple):
    """A setting that was tried, for how long, and what spoke against it."""

    stage: str
    setting: rule.Setting
    bias: float
    time: float
    cost: int
    objections: tuple[str, ...]
