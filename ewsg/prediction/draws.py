"""The draws to predict from: arrays with leading axes (chain, draw), or those of the good chains of a run."""

from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from .._core.types import Position
from ..errors import InputError


@runtime_checkable
class Drawn(Protocol):
    """A run, as far as predictions know it: `ewsg.Run` is one."""

    @property
    def ok(self) -> np.ndarray:
        """Boolean mask of the good chains."""
        ...

    @property
    def collected(self) -> Any:
        """The collector's results, with a leading axis of chains."""
        ...

    def good_draws(self) -> Position:
        """The draws of the good chains."""
        ...


def checked(draws: Position | Drawn) -> tuple[Position, int, int]:
    """The draws of the good chains, the number of these chains, and the number of draws of each."""
    draws = draws.good_draws() if isinstance(draws, Drawn) else draws
    leaves = jax.tree.leaves(draws)
    if not all(getattr(leaf, "ndim", 0) >= 2 for leaf in leaves) or len({leaf.shape[:2] for leaf in leaves}) > 1:
        raise InputError("draws must be arrays with leading axes (chain, draw): for one draw use array[None, None]")
    if not leaves or 0 in leaves[0].shape[:2]:
        raise InputError('there are no draws to predict from: keep some (collect=None), from chains with status "ok"')
    if not all(np.all(np.isfinite(leaf)) for leaf in leaves):
        raise InputError("some draws are NaN or infinite, as those of failed chains are: give the run, or good_draws()")
    return draws, *leaves[0].shape[:2]


def first(tree: Any, axes: int) -> Any:
    """The first entry along the leading axes of every array."""
    return jax.tree.map(lambda leaf: leaf[(0,) * axes], tree)
