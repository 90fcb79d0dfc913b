"""Mean, sd, R-hat and effective sample size of the parameters of a run, from its draws or from its running moments."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from .._core import pytree
from ..collect import MomentsSummary
from .mixing import mixing, rhat_of_moments, screen

if TYPE_CHECKING:
    from .run import Run

SHOWN_PARAMETERS = 20
"""The number of parameters in the table."""
SUSPECT_PARAMETERS = 20
"""The number of further parameters whose exact R-hat is computed: those whose chains are farthest apart."""
_ENTRIES_PER_BLOCK = 2**18


INTERVAL = (0.05, 0.95)
"""The quantiles in the table."""


class Mixed(NamedTuple):
    """How well a parameter mixes: its number and name, R-hat, effective sample size (NaN if only moments were kept)."""

    number: int
    name: str
    rhat: float
    ess: float


class Estimates(NamedTuple):
    """Numbers by parameter.

    Attributes:
        table: column name -> values of the first `SHOWN_PARAMETERS` parameters.
        total: the number of parameters.
        mixing: the parameters whose R-hat is known, those with the largest R-hat of all among them, worst first.
        still: the name of a parameter that never moved, if there is one.
    """

    table: dict[str, np.ndarray]
    total: int = 0
    mixing: Sequence[Mixed] = ()
    still: str | None = None

    @property
    def worst(self) -> Mixed | None:
        """The parameter with the largest R-hat of all; None if every R-hat is NaN."""
        return next(iter(self.mixing), None)


def estimates(run: "Run") -> Estimates:
    """Estimates from the good chains of a run; without a table if it kept neither draws nor moments."""
    draws = run.good_draws()
    if jax.tree.leaves(draws):
        return _from_draws(draws, run.cost.datum_gradients, run.settings.get("support"))
    if isinstance(run.collected, MomentsSummary) and jax.tree.leaves(run.collected):
        return _from_moments(run, run.collected)
    return Estimates({})


class _Leaf(NamedTuple):
    """One array of the parameters: its name, its shape, and its values with all entries in one last axis."""

    name: str
    shape: tuple[int, ...]
    values: np.ndarray

    def scalar(self, index: int) -> str:
        """The name of one scalar."""
        place = np.unravel_index(index, self.shape) if self.shape else ()
        return self.name + (f"[{','.join(str(int(i)) for i in place)}]" if place else "")


def _leaves(tree: Any, leading: int) -> list[_Leaf]:
    """The arrays of a pytree whose first `leading` axes are chains (and draws)."""
    found = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(leaf)
        shape = array.shape[leading:]
        found.append(_Leaf(pytree.leaf_name(path), shape, array.reshape(*array.shape[:leading], math.prod(shape))))
    return found


def scalar_names(draws: Any) -> list[str]:
    """The name of every scalar parameter, as in the table, in the order of the flattened leaves."""
    return [leaf.scalar(i) for leaf in _leaves(draws, 2) for i in range(leaf.values.shape[-1])]


def scalars(draws: Any, numbers: Sequence[int]) -> list[tuple[int, str, np.ndarray]]:
    """Number, name and draws of these scalars, in the given order; the draws have shape (chain, draw) and float64."""
    leaves = _leaves(draws, 2)
    found = []
    for number in numbers:
        ((names, values),) = _blocks(leaves, np.array([number]))
        found.append((number, names[0], values[0].astype(np.float64)))
    return found


def _blocks(leaves: list[_Leaf], numbers: np.ndarray) -> Iterator[tuple[list[str], np.ndarray]]:
    """Names and values of these scalars (numbered across leaves), block by block, with a leading axis of scalars."""
    start = 0
    for leaf in leaves:
        size = leaf.values.shape[-1]
        here = numbers[(numbers >= start) & (numbers < start + size)] - start
        step = max(1, _ENTRIES_PER_BLOCK // max(1, math.prod(leaf.values.shape[:-1])))
        for place in range(0, len(here), step):
            chosen = here[place : place + step]
            values = np.ascontiguousarray(np.moveaxis(leaf.values[..., chosen], -1, 0))
            exact = values.dtype in (np.float32, np.float64)
            yield [leaf.scalar(int(i)) for i in chosen], values if exact else values.astype(np.float64)
        start += size


def _from_draws(draws: Any, datum_gradients: int, support: dict[str, Any] | None) -> Estimates:
    leaves = _leaves(draws, 2)
    moving = _moving(leaves, support)
    total = sum(leaf.values.shape[-1] for leaf in leaves)
    if total == 0:
        return Estimates({})
    screened, still = [], None
    for names, values in _blocks(leaves, np.arange(total)):
        screened.append(screen(values))
        flat = values.reshape(len(values), -1)
        stuck = np.flatnonzero((flat == flat[:, :1]).all(1)) if flat.shape[1] > 1 else []
        stuck = [k for k in stuck if names[k] not in moving]
        still = names[stuck[0]] if still is None and stuck else still
    shown = np.arange(min(total, SHOWN_PARAMETERS))
    table = _table(leaves, shown, datum_gradients)
    found = _mixed(shown, table["parameter"], table["rhat"], table["ess"]) if table else []
    apart = np.concatenate(screened)
    suspects = np.argsort(np.where(np.isnan(apart), -np.inf, apart))[-SUSPECT_PARAMETERS:]
    others = np.sort(suspects[suspects >= SHOWN_PARAMETERS])
    for names, values in _blocks(leaves, others):
        ess, rhat = mixing(values)
        found += _mixed(others[: len(names)], names, rhat, ess)
        others = others[len(names) :]
    return Estimates(table, total, _worst_first(found), still)


def _moving(leaves: list[_Leaf], support: dict[str, Any] | None) -> set[str]:
    """Names of scalars that may well be constant: of deterministic sites, and the zeros of a Cholesky factor."""
    if support is None:
        return set()
    free = [leaf for leaf in leaves if leaf.name in support["derived"]]
    for leaf in leaves:
        if leaf.name in support["constrained"] and not (leaf.values == leaf.values[:1, :1]).all():
            free.append(leaf)
    return {leaf.scalar(i) for leaf in free for i in range(leaf.values.shape[-1])}


def _mixed(numbers: np.ndarray, names: Sequence[str] | np.ndarray, rhat: np.ndarray, ess: np.ndarray) -> list[Mixed]:
    rows = zip(numbers, names, rhat, ess, strict=True)
    return [Mixed(int(number), str(name), float(split), float(size)) for number, name, split, size in rows]


def _worst_first(found: list[Mixed]) -> list[Mixed]:
    """In the order of R-hat, without those whose R-hat is NaN."""
    return sorted((one for one in found if not math.isnan(one.rhat)), key=lambda one: -one.rhat)


def _table(leaves: list[_Leaf], numbers: np.ndarray, datum_gradients: int) -> dict[str, np.ndarray]:
    rows = [(names, values.astype(np.float64), *mixing(values)) for names, values in _blocks(leaves, numbers)]
    if not rows or not rows[0][1][0].size:
        return {}
    ess, rhat = (np.concatenate([row[i] for row in rows]) for i in (2, 3))
    mean = np.concatenate([values.mean((1, 2)) for _, values, *_ in rows])
    sd = np.concatenate([values.std((1, 2), ddof=min(1, values[0].size - 1)) for _, values, *_ in rows])
    ends = np.concatenate([interval(values) for _, values, *_ in rows], axis=1)
    return {
        "parameter": np.array([name for names, *_ in rows for name in names]),
        "mean": mean,
        "sd": sd,
        **{f"{share:.0%}": end for share, end in zip(INTERVAL, ends, strict=True)},
        "mcse": sd / np.sqrt(ess),
        "ess": ess,
        "ess_per_million": ess / max(datum_gradients, 1) * 1e6,
        "rhat": rhat,
    }


def interval(values: np.ndarray) -> np.ndarray:
    """The quantiles `INTERVAL` of each parameter, for draws of shape (parameter, chain, draw): one row per quantile."""
    return np.quantile(values.reshape(len(values), -1), INTERVAL, axis=1)


def _from_moments(run: "Run", collected: MomentsSummary) -> Estimates:
    """Estimates pooled over chains; R-hat from the variances between and within chains, without splits or ranks."""
    leaves = _leaves(collected.mean, 1)
    means, variances = (
        np.concatenate([leaf.values[run.ok].astype(np.float64) for leaf in part], axis=1)
        for part in (leaves, _leaves(collected.variance, 1))
    )
    chains, total = means.shape
    draws = next((values.shape[1] for values in run.stats.values()), 0)
    if not chains or not draws or not total:
        return Estimates({})
    within = np.where(draws > 1, variances, 0.0) * (draws - 1)
    spread = within.sum(0) + draws * ((means - means.mean(0)) ** 2).sum(0)
    rhat = rhat_of_moments(means, variances, draws)
    names = [leaf.scalar(i) for leaf in leaves for i in _first(leaf)]
    shown = len(names := names[:SHOWN_PARAMETERS])
    table = {
        "parameter": np.array(names),
        "mean": means.mean(0)[:shown],
        "sd": np.sqrt(spread[:shown] / max(1, chains * draws - 1)),
        "rhat": rhat[:shown],
    }
    return Estimates(table, total, _worst_of_moments(leaves, rhat))


def _first(leaf: _Leaf) -> range:
    return range(min(SHOWN_PARAMETERS, leaf.values.shape[-1]))


def _worst_of_moments(leaves: list[_Leaf], rhat: np.ndarray) -> list[Mixed]:
    if np.all(np.isnan(rhat)):
        return []
    worst = at = int(np.nanargmax(rhat))
    for leaf in leaves:
        if at < leaf.values.shape[-1]:
            return [Mixed(worst, leaf.scalar(at), float(rhat[worst]), math.nan)]
        at -= leaf.values.shape[-1]
    return []
