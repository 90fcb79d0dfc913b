"""The parameters in the figures of a run: all of a few; of many, the first and those that mix worst."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from ...errors import InputError, unknown
from ..advice import no_draws
from ..estimates import Estimates, Mixed, scalar_names, scalars
from ..summary import num_kept

if TYPE_CHECKING:
    from ..run import Run

MOST_PARAMETERS = 6
_WORST_PARAMETERS = 3


class Shown(NamedTuple):
    """A parameter: how well it mixes (NaN where that is not known), and its draws in the good chains."""

    mixed: Mixed
    draws: Float[np.ndarray, "chain draw"]


def reason_for_none(run: "Run") -> str | None:
    """The sentence that says why a run has no draws to show; None if it has some."""
    if not run.ok.any():
        return f"all {run.status.size} chains failed, which leaves nothing to plot: run.summary() says why"
    if num_kept(run) == 0:
        return f"there is nothing to plot. {no_draws(run)}"
    if not any(leaf.size for leaf in jax.tree.leaves(run.good_draws())):
        return "this run kept no draws to plot (collect=): run.summary() shows its moments if it kept those"
    return None


def shown(run: "Run", found: Estimates, names: Sequence[str] | None = None) -> list[Shown]:
    """The parameters of the figures, in their own order.

    Args:
        run: the run, which has draws.
        found: its estimates.
        names: parameters as the summary names them; None chooses.
    """
    return _looked_up(run, found, _chosen(found) if names is None else _named(run, names))


def worst_pair(run: "Run", found: Estimates) -> list[Shown]:
    """The two parameters with the largest R-hats, the first two where no R-hat is known; none if there is only one."""
    if found.total < 2:
        return []
    numbers = [mixed.number for mixed in found.mixing[:2]]
    numbers += [number for number in range(2) if number not in numbers]
    return _looked_up(run, found, numbers[:2])


def _looked_up(run: "Run", found: Estimates, numbers: list[int]) -> list[Shown]:
    known = {mixed.number: mixed for mixed in found.mixing}
    return [
        Shown(known.get(number, Mixed(number, name, math.nan, math.nan)), values)
        for number, name, values in scalars(run.good_draws(), numbers)
    ]


def _chosen(found: Estimates) -> list[int]:
    if found.total <= MOST_PARAMETERS:
        return list(range(found.total))
    worst = [mixed.number for mixed in found.mixing[:_WORST_PARAMETERS]]
    others = [number for number in range(MOST_PARAMETERS) if number not in worst]
    return sorted([*worst, *others[: MOST_PARAMETERS - len(worst)]])


def _named(run: "Run", names: Sequence[str]) -> list[int]:
    if isinstance(names, str):
        names = [names]
    numbers = {name: number for number, name in enumerate(scalar_names(run.draws))}
    if not names:
        raise InputError("parameters= is empty: give names as run.summary() shows them, or leave it out")
    for name in names:
        if name not in numbers:
            raise unknown("parameter", name, list(numbers)[:20])
    return [numbers[name] for name in names]
