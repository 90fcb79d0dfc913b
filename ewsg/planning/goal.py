"""What a planned run is for, and what was tried on the way."""

import dataclasses
from typing import NamedTuple

from . import rule


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


class Pilot(NamedTuple):
    """A setting that was tried, for how long, and what spoke against it."""

    stage: str
    setting: rule.Setting
    bias: float
    time: float
    cost: int
    objections: tuple[str, ...]
