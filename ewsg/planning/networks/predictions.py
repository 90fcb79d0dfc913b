"""What a network predicts for some rows of its data, and how well a run knows it."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from ..._core.types import Batch, Indices, Position
from ...target.density import spaced
from ...target.likelihood import OfModule
from ...target.target import Target

_ROWS = 100
_MOST_DRAWS = 400
_FEWEST_DRAWS = 4


class Agreement(NamedTuple):
    """How well predictions are known.

    Attributes:
        mcse: √(Σ B/C / Σ S): Monte-Carlo error of the predicted means in posterior sd, B being the variance of the
            means of C chains, S that of all draws, both summed over predictions.
        rhat: √(1 − 1/D + Σ B'/Σ W'), likewise, of the halves of the chains, of D draws each.
    """

    mcse: float
    rhat: float


def predictions(target: Target, draws: Position) -> Float[np.ndarray, "chain draw p"]:
    """Predictions for up to 100 evenly spaced rows of the data, by up to 400 evenly spaced draws of every chain.

    Those of a module are class probabilities (of `ewsg.modules.cross_entropy`) or its output; of any other target, the
    log-likelihoods of the rows.
    """
    chosen = spaced(jax.tree.leaves(draws)[0].shape[1], _MOST_DRAWS)
    rows = spaced(target.num_data, _ROWS)
    found = [_predicted(target, jax.tree.map(lambda leaf, k=k: leaf[:, k], draws), rows) for k in chosen]
    return np.stack([np.asarray(values, np.float64) for values in found], 1)


@jax.jit
def _predicted(target: Target, draws: Position, rows: Indices) -> Float[Array, "chain p"]:
    """The predictions of one draw of every chain."""
    return jax.vmap(functools.partial(_flat, target, target.take(rows)))(draws)


def _flat(target: Target, batch: Batch, params: Position) -> Float[Array, " p"]:
    likelihood = target.likelihood

    def one(datum: Any) -> Float[Array, " k"]:
        if isinstance(likelihood, OfModule):
            return ravel_pytree(likelihood.predict(params, datum))[0]
        return jnp.reshape(likelihood(params, datum), (1,))

    return jax.vmap(one)(batch).ravel()


def agreement(values: Float[np.ndarray, "chain draw p"]) -> Agreement:
    """How well the means of predictions are known; NaN for a single chain, or fewer than four draws."""
    chains, length, _ = values.shape
    if chains < 2 or length < _FEWEST_DRAWS:
        return Agreement(float("nan"), float("nan"))
    spread = values.var((0, 1)).sum()
    if spread == 0:
        return Agreement(0.0, 1.0)
    mcse = np.sqrt(values.mean(1).var(0, ddof=1).sum() / chains / spread)
    half = length // 2
    split = np.concatenate([values[:, :half], values[:, length - half :]])
    between, within = split.mean(1).var(0, ddof=1).sum(), split.var(1, ddof=1).mean(0).sum()
    rhat = np.sqrt(1 - 1 / half + between / within) if within > 0 else np.inf
    return Agreement(float(mcse), float(rhat))
