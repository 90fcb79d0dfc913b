"""The verdict on a planned run: whether its means and sds are as accurate as was asked for."""

import dataclasses
from typing import Any

ENDS = ("reached", "budget", "biased", "interrupted")
_WORDS = {
    "refused": "{refused:.1g} of the steps ran into the wall around the posterior",
    "virial": "the temperature of single coordinates is {coldest:.2f} to {hottest:.2f} in place of 1",
    "slope": "the temperature changes along a coordinate (score {slope:.1f}): the posterior is far from Gaussian",
    "tilts": "the minibatches are too noisy (the sd is predicted to be off by {bias:.1%})",
}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How a planned run ended: `run.verdict`, printed by `run.summary()`.

    Attributes:
        word: "reached": about 95 of 100 means and sds are within `accuracy` of the truth. "budget": the budget ended
            first. "biased": the budget ended, or no smaller step helped, while there were still objections to the
            draws. "interrupted": by Ctrl-C or SIGTERM.
        accuracy: the accuracy that was asked for, in posterior standard deviations.
        error: the largest √(MCSE² + bias²) of all means and sds.
        mcse: the largest Monte-Carlo standard error of all means and sds.
        bias: the relative error of the sds that the minibatches are predicted to cause.
        coldest: the smallest virial temperature of a coordinate.
        hottest: the largest virial temperature of a coordinate.
        slope: the largest score of a temperature that changes along a coordinate; above 3.5 it is an objection.
        refused: the share of refused steps (`Walled`).
        objections: the objections to the draws, of "refused", "virial", "slope" and "tilts".
    """

    word: str
    accuracy: float
    error: float
    mcse: float
    bias: float
    coldest: float
    hottest: float
    slope: float
    refused: float
    objections: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the accuracy was reached."""
        return self.word == "reached"

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong: the accuracy was reached, or the draws have it at the end of the budget."""
        return self.reached or (self.word == "budget" and self.more <= 1)

    def __str__(self) -> str:
        known = (
            f"the largest error of a mean or sd is {self.error:.3g} posterior sd (Monte Carlo {self.mcse:.2g}, bias "
            f"{self.bias:.1g})"
        )
        against = "; ".join(_WORDS[name].format(**dataclasses.asdict(self)) for name in self.objections)
        more = f" It would take about {self.more:.2g} times as long." if self.more > 1 else ""
        if self.word == "reached":
            return f"Accuracy {self.accuracy:g} reached: {known}."
        if self.word == "budget" and self.fine:
            return f"The budget is spent, and accuracy {self.accuracy:g} reached: {known}."
        if self.word == "budget":
            return f"Accuracy {self.accuracy:g} not reached, the budget ended first: {known}.{more}"
        if self.word == "biased":
            return (
                f"Do not rely on these draws: {against or 'no step was small enough'}; {known}. Give a larger budget, "
                "reparametrise (log of scales, centred or not), or use ewsg.NUTS."
            )
        return f"Interrupted before accuracy {self.accuracy:g} was reached: {known}.{more}"

    @property
    def more(self) -> float:
        """The factor by which the run would have to be longer to reach the accuracy."""
        return (self.mcse / (self.accuracy / 2)) ** 2

    def to_json(self) -> dict[str, Any]:
        """The verdict as a dict for `run.settings`."""
        return dataclasses.asdict(self) | {"objections": list(self.objections)}

    @staticmethod
    def of(saved: dict[str, Any]) -> "Verdict":
        """The verdict from the dict of `to_json`; raises an exception if it is not one."""
        word, objections = saved["word"], saved["objections"]
        numbers = {name: value for name, value in saved.items() if name not in ("word", "objections")}
        if word not in ENDS or not all(type(value) in (int, float) for value in numbers.values()):
            raise ValueError("no verdict")
        if not isinstance(objections, list) or not all(name in _WORDS for name in objections):
            raise ValueError("no verdict")
        return Verdict(**numbers, word=word, objections=tuple(objections))
