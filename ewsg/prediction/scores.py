"""`score`: one name for the scores of classes and of numbers."""

from typing import Any, overload

from ..errors import InputError
from .classes import Prediction, Score, score_classes
from .regression import Regression, RegressionScore, score_regression


@overload
def score(prediction: Prediction, truth: Any) -> Score: ...


@overload
def score(prediction: Regression, truth: Any) -> RegressionScore: ...


def score(prediction: Prediction | Regression, truth: Any) -> Score | RegressionScore:
    """How good a prediction is, against the truth.

    Args:
        prediction: of n rows.
        truth: the class of each row, n whole numbers; or the n numbers that a regression predicts.
    """
    if isinstance(prediction, Prediction):
        return score_classes(prediction, truth)
    if isinstance(prediction, Regression):
        return score_regression(prediction, truth)
    raise InputError(f"score takes the result of predict or collected, not {type(prediction).__name__}")
