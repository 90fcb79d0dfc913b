"""The choice of a setting: the noise of minibatches is measured at points of z, and the cheapest setting is taken."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from .._core.types import Key
from ..estimators import AbstractEstimator
from . import rule
from .goal import Goal
from .ground import Ground
from .noise import Noise, measure

_ACCURACY_AT_FIRST = 0.25
_SECOND_ORDER_SHARE = 0.5
Points = Float[np.ndarray, "p d"]


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A choice, and what it rests on.

    Attributes:
        ground: with what the chosen kind needs.
        choice: the cheapest.
        plainer: the cheapest without the second order.
        noises: as measured, by kind.
        spent: datum gradients of measuring and preparing.
    """

    ground: Ground
    choice: rule.Choice
    plainer: rule.Setting
    noises: dict[str, Noise]
    spent: int


def choose_first(ground: Ground, points: Points, key: Key, accuracy: float) -> tuple[rule.Choice, int]:
    """A setting that is cheap and may be too hot, as a pilot that objects costs half of the next one; and its cost.

    The points are guesses, some of them far from the posterior, where the noise says nothing: half of them count.
    """
    noise, spent = _measure(ground, rule.FIRST, ground.estimators[rule.FIRST], points, key)
    n, accuracy = ground.target.num_data, max(accuracy, _ACCURACY_AT_FIRST)
    first = rule.minibatches(rule.FIRST, noise.calmer_half(), ground.rule, n, accuracy)
    return _cheapest(rule.full(n, accuracy), first), spent


def choose(ground: Ground, points: Points, new_key: Callable[[], Key], goal: Goal, budget: float | None) -> Chosen:
    """The cheapest setting for an accuracy, or with a budget the one of least error."""
    n, accuracy = ground.target.num_data, goal.judged_accuracy
    noise, spent = _measure(ground, rule.FIRST, ground.estimators[rule.FIRST], points, new_key())
    first = rule.minibatches(rule.FIRST, noise, ground.rule, n, accuracy, budget=budget)
    plain = _cheapest(rule.full(n, accuracy, budget=budget), first)
    chosen = Chosen(ground, plain, plain.setting, {rule.FIRST: noise}, spent)
    prepare = goal.share(2 * ground.dimension * n)
    if prepare >= _SECOND_ORDER_SHARE * (plain.price if budget is None else budget):
        return chosen
    noise, more = _measure(ground, rule.SECOND, ground.second_order_unprepared(), points, new_key())
    chosen = dataclasses.replace(chosen, noises=chosen.noises | {rule.SECOND: noise}, spent=spent + more)
    second = rule.minibatches(rule.SECOND, noise, ground.rule, n, accuracy, prepare, budget)
    if second is None or second.price >= _SECOND_ORDER_SHARE * plain.price:
        return chosen
    prepared = ground.with_second_order()
    spent = chosen.spent + prepared.spent - ground.spent
    return dataclasses.replace(chosen, ground=prepared, choice=second, spent=spent)


def _measure(ground: Ground, kind: str, estimator: AbstractEstimator, points: Points, key: Key) -> tuple[Noise, int]:
    noise, drawn = measure(ground.within, estimator, points, key)
    return noise, rule.EVALUATIONS[kind] * drawn


def _cheapest(everything: rule.Choice, first: rule.Choice | None) -> rule.Choice:
    return everything if first is None or everything.price <= first.price else first
