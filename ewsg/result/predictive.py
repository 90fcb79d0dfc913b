"""The verdict on a planned run of a network: judged by its predictions, as its weights have many modes."""

import dataclasses
from typing import Any

from .verdict import ENDS, Verdict

_WORDS = {
    "failed": "{failed:.0%} of the chains became infinite",
    "hot": "the chains are too hot (temperature {kinetic:.3f} kinetic, {configurational:.3f} configurational, not 1)",
    "cold": "the chains are too cold (kinetic temperature {kinetic:.3f} against 1)",
    "tilts": "the minibatches are too noisy (the sd is predicted to be off by {bias:.1%})",
}
_MOST_RHAT = 1.05


@dataclasses.dataclass(frozen=True)
class PredictiveVerdict:
    """How a planned run of a network ended: `run.verdict`, printed by `run.summary()`.

    Predictions are those for up to 100 rows of the data: class probabilities, or the output of the network; for a
    target that is not a module, the log-likelihoods of these rows. Errors are relative to posterior sds, both root
    mean squares over all predictions.

    Attributes:
        word: "reached": the Monte-Carlo error is at most accuracy/2, R-hat at most 1.05, and nothing speaks against the
            draws. "budget": the budget ended first. "biased": the budget ended, or no smaller step helped, while
            something spoke against the draws. "interrupted": Ctrl-C or SIGTERM.
        accuracy: asked for, in posterior standard deviations of predictions.
        mcse: Monte-Carlo standard error of the predicted means.
        rhat: of predictions: whether halves of chains agree.
        kinetic: kinetic temperature; 1 is right.
        configurational: configurational temperature; below 1 until the weights have forgotten where they began.
        bias: the relative error of posterior sds that the minibatches are predicted to leave.
        failed: the share of chains that became infinite.
        passes: the budget, in passes over the data per chain; 0 if only seconds were given.
        objections: what speaks against the draws: "failed", "hot", "cold", "tilts".
    """

    word: str
    accuracy: float
    mcse: float
    rhat: float
    kinetic: float
    configurational: float
    bias: float
    failed: float
    passes: float
    objections: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """√(MCSE² + bias²)."""
        return (self.mcse**2 + self.bias**2) ** 0.5

    @property
    def reached(self) -> bool:
        """Whether the accuracy was reached."""
        return self.word == "reached"

    @property
    def mixed(self) -> bool:
        """Whether predictions are as accurate as was asked for, and the chains agree in them."""
        return self.mcse <= self.accuracy / 2 and self.rhat <= _MOST_RHAT

    @property
    def fine(self) -> bool:
        """Whether nothing is wrong: the accuracy was reached, or a budget without one ended in draws that have it."""
        return self.reached or (self.word == "budget" and self.mixed)

    @property
    def more(self) -> float:
        """How many times as long a run would reach the accuracy: at least 1.5 times, where the chains disagree."""
        longer = (self.mcse / (self.accuracy / 2)) ** 2
        return longer if self.rhat <= _MOST_RHAT else max(longer, 1.5)

    def __str__(self) -> str:
        known = (
            f"predicted means are known to {self.mcse:.2g} posterior sd (R-hat {self.rhat:.3f}, kinetic temperature "
            f"{self.kinetic:.3f}, predicted bias of the sd {self.bias:.1%})"
        )
        against = "; ".join(_WORDS[name].format(**dataclasses.asdict(self)) for name in self.objections)
        if self.word == "reached":
            return f"Accuracy {self.accuracy:g} of predictions reached: {known}."
        if self.fine:
            return f"The budget is spent, and accuracy {self.accuracy:g} of predictions reached: {known}."
        if self.word == "biased":
            return (
                f"Do not rely on these draws: {against or 'no step was small enough'}; {known}. Give a larger budget "
                "(data_passes=), in which the step can be halved."
            )
        if self.word == "interrupted":
            return f"Interrupted before accuracy {self.accuracy:g} of predictions was reached: {known}."
        more = f"data_passes={self.passes * self.more:.2g}" if self.passes else f"{self.more:.2g} times as many seconds"
        return (
            f"Accuracy {self.accuracy:g} of predictions not reached, the budget ended first: {known}. Give about "
            f"{more}, or use the predictions with this error."
        )

    def to_json(self) -> dict[str, Any]:
        """As `run.settings` holds it."""
        return dataclasses.asdict(self) | {"objections": list(self.objections)}

    @staticmethod
    def of(saved: dict[str, Any]) -> "PredictiveVerdict":
        """The verdict that `to_json` put down; raises an exception if it cannot be one."""
        word, objections = saved["word"], saved["objections"]
        numbers = {name: value for name, value in saved.items() if name not in ("word", "objections")}
        if word not in ENDS or not all(type(value) in (int, float) for value in numbers.values()):
            raise ValueError("no verdict")
        if not isinstance(objections, list) or not all(name in _WORDS for name in objections):
            raise ValueError("no verdict")
        return PredictiveVerdict(**numbers, word=word, objections=tuple(objections))


def verdict_of(saved: dict[str, Any]) -> Verdict | PredictiveVerdict:
    """The verdict of either kind; raises an exception if it cannot be one."""
    return (PredictiveVerdict if "rhat" in saved else Verdict).of(saved)
