"""The mode, and whether it is the only one: two more searches, from elsewhere, on a part of the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._core import pytree
from .._core.types import Position
from ..errors import InputError, NoPlan
from ..target.data import Dataset
from ..target.mode import Mode, find_mode_from
from ..target.target import Target

MOST_PARAMETERS = 500
_ROWS = 1_000
_MOST_PASSES = 60
_SAME_SD = 5.0


def the_mode(target: Target, init: Position, rng: np.random.Generator) -> tuple[Mode, int]:
    """The mode of a posterior that can be planned for, and datum gradients; raises NoPlan for any other.

    A log-concave density has one mode; any other is also searched from elsewhere.
    """
    if pytree.size(init) > MOST_PARAMETERS:
        raise NoPlan(
            f"{pytree.size(init):,} parameters are more than the {MOST_PARAMETERS} that a plan can whiten: give an "
            "estimator and an integrator (docs/networks.md)"
        )
    found, spent = _patiently(target, init, int(rng.integers(2**31)))
    if not _is_near(found):
        raise NoPlan(
            "the search found no mode: the density may grow without bound, as that of separated classes under a flat "
            "prior does, or that of a scale that can shrink to 0: give a proper prior (prior_scale=), sample "
            "(theta - mean)/scale in place of theta, or start nearer the mode (init=)"
        )
    if found.num_flat:
        raise NoPlan(
            f"{found.num_flat} direction(s) of the parameters are informed by neither data nor prior: give a proper "
            "prior (prior_scale=), or leave out columns that are sums of others"
        )
    if found.num_negative:
        raise NoPlan(
            f"the density curves upwards in {found.num_negative} direction(s) where the search for the mode ended: a "
            "saddle, or one of many modes, as networks have: start elsewhere (init=), or give an estimator and an "
            "integrator (docs/networks.md)"
        )
    if target.is_log_concave:
        return found, spent
    apart, more = farthest_other_mode(target, found, elsewhere(init, found.position, rng), rng)
    if apart:
        raise NoPlan(
            f"the posterior has several modes: searches from two starts end {apart:.3g} posterior sd apart, and a plan "
            "would sample around one of them: make the parameters identifiable (order them, fix a sign), or give an "
            "estimator and an integrator"
        )
    return found, spent + more


def _patiently(target: Target, init: Position, seed: int) -> tuple[Mode, int]:
    """A search on subsamples; where it ends at no mode, L-BFGS goes on and it looks again. With the cost of all."""
    found = find_mode_from(target, init, method="subsamples", seed=seed)
    spent = int(found.cost.datum_gradients)
    if _is_near(found) and not found.num_negative:
        return found, spent
    further = find_mode_from(target, found.position, method="lbfgs")
    again = find_mode_from(target, further.position, method="subsamples", seed=seed)
    return again, spent + int(further.cost.datum_gradients) + int(again.cost.datum_gradients)


def _is_near(found: Mode) -> bool:
    return found.distance is not None and found.distance < 1


def farthest_other_mode(
    target: Target, found: Mode, starts: list[Position], rng: np.random.Generator
) -> tuple[float, int]:
    """How far from the mode other searches end, in sd of the posterior of up to 1,000 data; and datum gradients.

    Searches that do not converge do not count: 0 if none does, or if all end within 5 sd, as searches of one mode do.

    Args:
        target: the posterior.
        found: its mode.
        starts: of the other searches.
        rng: chooses the data.
    """
    count = min(target.num_data, max(_ROWS, 20 * pytree.size(found.position)))
    part = target if count == target.num_data else _part(target, np.sort(rng.choice(target.num_data, count, False)))
    assert found.precision is not None
    precision = found.precision * (count / target.num_data)
    here, spent = (found.position, 0) if part is target else _search(part, found.position)
    farthest = 0.0
    for start in starts:
        there, cost = _search(part, start)
        spent += cost
        if here is not None and there is not None:
            apart = pytree.host_rows(there, 0) - pytree.host_rows(here, 0)
            farthest = max(farthest, float(np.sqrt(apart @ precision @ apart / len(apart))))
    return (farthest if farthest > _SAME_SD else 0.0), spent


def _search(target: Target, start: Position) -> tuple[Position | None, int]:
    """Where a search ends, None if it does not converge; and its cost."""
    try:
        found = find_mode_from(target, start, method="subsamples", max_passes=_MOST_PASSES)
    except InputError:  # the density is not finite there
        return None, 0
    cost = int(found.cost.datum_gradients)
    return (found.position if found.converged and not found.num_negative else None), cost


def _part(target: Target, rows: np.ndarray) -> Target:
    """The posterior of some of the data."""
    arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf)[rows], target.data.arrays)
    return eqx.tree_at(lambda whole: whole.data, target, Dataset(arrays))


def elsewhere(init: Position, mode: Position, rng: np.random.Generator) -> list[Position]:
    """Two starts: one unit of every parameter away from init, and opposite to the mode."""

    def moved(leaf: Float[np.ndarray, "..."]) -> np.ndarray:
        return np.asarray(leaf + rng.normal(size=np.shape(leaf)), leaf.dtype)

    return [
        jax.tree.map(lambda leaf: moved(np.asarray(leaf)), init),
        jax.tree.map(lambda a, b: (2 * np.asarray(a) - np.asarray(b)).astype(np.asarray(a).dtype), init, mode),
    ]
