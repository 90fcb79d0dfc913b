"""Export to ArviZ, old (0.x) and new (1.x)."""

import functools
import warnings
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .._core import pytree
from .._core.optional import require

if TYPE_CHECKING:
    from .run import Run


@functools.cache
def _arviz() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return require("arviz", extra="arviz")


def _is_old() -> bool:
    return int(_arviz().__version__.split(".")[0]) < 1


def to_arviz(run: "Run") -> Any:
    """Draws and stats of the good chains: the groups `posterior` and `sample_stats`."""
    named = jax.tree_util.tree_leaves_with_path(run.good_draws())
    posterior = {pytree.leaf_name(path): np.asarray(leaf) for path, leaf in named}
    stats = {name: values[run.ok] for name, values in run.stats.items()}
    if _is_old():
        return _arviz().from_dict(posterior=posterior, sample_stats=stats)
    return _arviz().from_dict({"posterior": posterior, "sample_stats": stats})
