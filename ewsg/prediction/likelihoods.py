"""Log-likelihoods of single data at every draw, for leave-one-out cross-validation and for held-out data."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core import memory
from .._core.component import check_count
from .._core.types import Position
from ..errors import InputError
from ..target.density import densities
from ..target.target import Target
from .draws import Drawn, checked, first

_ENTRIES_PER_BLOCK = 2**22


def log_likelihood(
    target: Target, draws: Position | Drawn, rows: Any = None, *, block: int | None = None
) -> np.ndarray:
    """ℓ(θ, datum_i) at every draw θ: an array of shape (chains, draws, rows), computed a block of rows at a time.

    Args:
        target: the posterior; one of the same model with other data gives the log-likelihoods of held-out data.
        draws: pytree like the parameters with leading axes (chain, draw); or a run, whose good chains are used.
        rows: the row numbers i; None is all n.
        block: rows at a time; None is as many as fit into 16 MiB with all draws.

    Example:
        >>> import jax.scipy.stats as stats, numpy as np, ewsg
        >>> target = ewsg.Target(lambda mu, x: stats.norm.logpdf(x, mu), None, np.float32([0.0, 1.0, 3.0]))
        >>> mu = np.zeros((2, 5), np.float32)  # five draws of two chains
        >>> values = ewsg.prediction.log_likelihood(target, mu, rows=[0, 2])
        >>> values.shape, round(float(values[0, 0, 1]), 3)
        ((2, 5, 2), -5.419)
    """
    number = target.num_data if rows is None else len(checked_rows(target, rows))
    num_chains, num_draws = checked(draws)[1:]
    needed = 4 * num_chains * num_draws * number
    memory.check(needed, f"the log-likelihoods of {number} data", "give rows=, a random subset, or use fewer draws")
    parts = [values for _, values in log_likelihood_blocks(target, draws, rows, block=block)]
    return np.concatenate(parts, axis=-1)


def log_likelihood_blocks(
    target: Target, draws: Position | Drawn, rows: Any = None, *, block: int | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of `log_likelihood`, for more data than fit into memory: row numbers, and values (chains, draws, rows).

    Args:
        target: as for `log_likelihood`.
        draws: likewise.
        rows: likewise.
        block: likewise.
    """
    if block is not None:
        check_count("log_likelihood", "block", block, 1)
    numbers = np.arange(target.num_data, dtype=np.int32) if rows is None else checked_rows(target, rows)
    draws, num_chains, num_draws = checked(draws)
    positions = target.positions_of(draws)
    _check_fit(target, positions)
    return _blocks(
        target, positions, numbers, min(len(numbers), block or max(1, _ENTRIES_PER_BLOCK // num_chains // num_draws))
    )


def checked_rows(target: Target, rows: Any) -> np.ndarray:
    """Row numbers as an array; InputError unless they are whole numbers below n."""
    found = np.asarray(rows)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iu":
        raise InputError("rows must be a list of row numbers, at least one (np.flatnonzero makes one of a mask)")
    if found.min() < 0 or found.max() >= target.num_data:
        raise InputError(
            f"rows run from {found.min()} to {found.max()}: the target has {target.num_data} data, numbered from 0"
        )
    return found.astype(np.int32)


def _check_fit(target: Target, draws: Position) -> None:
    try:
        target.check(jax.tree.map(jnp.asarray, first(draws, 2)))
    except InputError as error:
        raise InputError(f"the draws are not parameters of this target: {error}") from error


def _blocks(target: Target, draws: Position, rows: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Blocks of equal size, so that one program serves all: the last is computed together with rows before it."""
    num_chains = jax.tree.leaves(draws)[0].shape[0]
    for begin in range(0, len(rows), size):
        start = min(begin, len(rows) - size)
        values = np.stack(
            [
                np.asarray(
                    densities(target, jax.tree.map(lambda leaf, k=k: leaf[k], draws), rows[start : start + size])[1]
                )
                for k in range(num_chains)
            ]
        )
        yield rows[begin : begin + size], values[..., begin - start :]
