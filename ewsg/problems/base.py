"""A problem: a posterior, its reference answer, and the settings at which samplers are compared on it."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._core import ess, pytree
from .._core.types import Position
from ..diagnostics import flatten, moments
from ..reference import nuts
from ..target.target import Target
from ..target.whitening import whitened


class Answer(NamedTuple):
    """Posterior moments of the observed quantity, flat in the order of `ravel_pytree`.

    Attributes:
        mean: its posterior mean.
        cov: its posterior covariance.
        start: where chains begin: the posterior mean of the parameters, or a draw where that mean has no meaning.
        source: how the answer was found.
    """

    mean: Float[np.ndarray, " d"]
    cov: Float[np.ndarray, "d d"]
    start: Position
    source: dict[str, Any]

    @property
    def sd(self) -> Float[np.ndarray, " d"]:
        """Posterior standard deviations."""
        return np.sqrt(np.diag(self.cov))


@dataclasses.dataclass(frozen=True)
class Problem:
    """A posterior on which samplers are compared.

    Attributes:
        title: one line for tables and figures.
        target: the posterior.
        init: where NUTS starts.
        step_size: h at which all methods are compared; the grid lies around it.
        friction: γ.
        data_per_step: datum gradients per step of every subsampling method.
        observe: the function of a position that is compared; None is the position. For networks, their predictions.
        exact: mean and covariance in closed form, where there is one; otherwise NUTS finds them.
        is_stiff: whether NUTS should work in coordinates whitened at the mode.
        has_mean: whether the posterior mean of the parameters lies in the bulk of the posterior.
        num_draws: of each of eight NUTS chains, after `num_warmup` transitions.
        num_warmup: transitions in which NUTS adapts.
    """

    title: str
    target: Target
    init: Position
    step_size: float
    friction: float
    data_per_step: int
    observe: Callable[[Position], Position] | None = None
    exact: tuple[np.ndarray, np.ndarray] | None = None
    is_stiff: bool = False
    has_mean: bool = True
    num_draws: int = 2000
    num_warmup: int = 1000

    def seen(self, draws: Position) -> Position:
        """The observed quantity, of draws with leading axes (chain, draw)."""
        if self.observe is None:
            return draws
        return jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(self.observe)))(draws))

    def solve(self, progress: bool | None = None) -> Answer:
        """Finds the reference answer: closed form, or eight NUTS chains, which takes minutes."""
        if self.exact is not None:
            mean, cov = self.exact
            start = jax.tree.map(lambda leaf: np.asarray(mean, leaf.dtype).reshape(leaf.shape), self.init)
            return Answer(mean, cov, start, {"method": "closed form"})
        counts = {"num_chains": 8, "num_warmup": self.num_warmup, "num_draws": self.num_draws}
        if self.is_stiff:
            target, place = whitened(self.target, self.init)
            found = nuts(target, jnp.zeros(pytree.size(self.init)), **counts, progress=progress)
            draws = jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(place)))(found.draws))
        else:
            found = nuts(self.target, self.init, **counts, progress=progress)
            draws = found.draws
        seen = self.seen(draws)
        mean, cov = moments(seen)
        if self.has_mean:
            start = jax.tree.map(lambda leaf: leaf.mean((0, 1), dtype=np.float64).astype(leaf.dtype), draws)
        else:
            start = jax.tree.map(lambda leaf: leaf[0, -1], draws)
        return Answer(mean, cov, start, _quality(seen, found.divergences) | {"method": "NUTS (BlackJAX), 8 chains"})


def _quality(draws: Position, divergences: int) -> dict[str, Any]:
    """Numbers that say whether the reference can be trusted."""
    places = flatten(draws)
    return {
        "smallest_ess": float(np.min(ess.ess(places))),
        "largest_rhat": float(np.max(ess.rhat(places))),
        "divergences": int(divergences),
    }
