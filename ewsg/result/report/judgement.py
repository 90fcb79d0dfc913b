"""The first words of a report: whether the draws can be used, and what was promised of them."""

from typing import TYPE_CHECKING, NamedTuple

from ..predictive import PredictiveVerdict
from ..summary import Summary

if TYPE_CHECKING:
    from ..run import Run

_PROMISE = (
    "Accuracy {accuracy:g} means that about 95 of 100 means and standard deviations are within {accuracy:g} posterior "
    "standard deviations of the truth, Monte-Carlo error and the predicted bias of the minibatches together."
)
_PREDICTIVE_PROMISE = (
    "A network is judged by its predictions for up to 100 rows of the data, not by its weights, which have many modes: "
    "accuracy {accuracy:g} means that the Monte-Carlo error of the predicted means is at most {half:g} posterior "
    "standard deviations, and that the chains agree."
)
_NO_PROMISE = (
    "The settings of this run were given by hand, so no accuracy was promised. What follows is what its draws and "
    "diagnostics show."
)


class Judgement(NamedTuple):
    """How a report begins.

    Attributes:
        level: "good", "caution" or "bad".
        headline: one short sentence.
        verdict: the verdict of a planned run in words, or "".
        promise: what the accuracy means.
    """

    level: str
    headline: str
    verdict: str
    promise: str


def judgement(run: "Run", summary: Summary) -> Judgement:
    """Judge a run by its verdict, its chains and its warnings."""
    verdict = run.verdict
    if verdict is None:
        promise = _NO_PROMISE
    else:
        words = _PREDICTIVE_PROMISE if isinstance(verdict, PredictiveVerdict) else _PROMISE
        promise = words.format(accuracy=verdict.accuracy, half=verdict.accuracy / 2)
    return Judgement(*_first_words(run, summary), summary.verdict, promise)


def _first_words(run: "Run", summary: Summary) -> tuple[str, str]:
    verdict = run.verdict
    if not run.ok.any():
        return "bad", "All chains failed: there is nothing to use."
    if verdict is not None and verdict.word == "biased":
        return "bad", "Do not rely on these draws."
    if run.hot.any():
        return "bad", "Do not rely on these draws: chains are far too hot."
    if verdict is not None and verdict.word == "interrupted":
        return "caution", "The run was interrupted before it was accurate enough."
    if verdict is not None and not verdict.fine:
        return "caution", f"The budget ended before accuracy {verdict.accuracy:g} was reached."
    others = [sentence for sentence in summary.warnings if sentence != summary.verdict]
    if others:
        count = "One warning" if len(others) == 1 else f"{len(others)} warnings"
        return "caution", f"{count}: read below before you use these draws."
    return "good", "Nothing looks wrong." if verdict is None else f"Accuracy {verdict.accuracy:g} was reached."
