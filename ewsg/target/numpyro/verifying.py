"""Whether the split of a NumPyro model is right: prior and rows must add up to what NumPyro says; and a start."""

import functools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ... import _random
from ..._core import pytree
from ..._core.optional import require
from ..._core.promotion import lenient
from ..._core.types import Batch, Position
from ...errors import InputError, first_line
from ..density import spaced
from .model import Model, ModelLikelihood, ModelPrior, bijector, chosen_rows, handlers, one_row

_CHECKED_ROWS = 64
_TRIED_STARTS = 20
_TOLERANCE = 1e-4


class _Found(NamedTuple):
    """The log density of some rows in several ways, and deterministic sites row by row and at once."""

    prior: Any
    single: Any
    together: Any
    potential: Any
    derived: tuple[dict[str, Any], dict[str, Any]]


def verified(model: Model, rows: Batch, arguments: Batch) -> tuple[Position, tuple[str, ...]]:
    """A start, and the names of the deterministic sites that do not depend on the data.

    Raises InputError unless log prior + Σ ℓ_i is what NumPyro says of up to 64 rows, at the start and near it.
    """
    row = one_row(model, rows)
    likelihood, prior = ModelLikelihood(model, arguments), ModelPrior(model, row, arguments)
    chosen = chosen_rows(model, rows, spaced(model.size, _CHECKED_ROWS))
    try:
        with jax.debug_key_reuse(False):
            for seed in range(_TRIED_STARTS):
                position = pytree.as_arrays(_median(model, arguments, _random.make_key(seed, "threefry"), row))
                found = _look(likelihood, prior, position, chosen)
                if _is_finite(found):
                    break
            else:
                raise InputError(
                    f"the log density of the NumPyro model is not finite at any of {_TRIED_STARTS} starts by "
                    "init_to_median: check its priors and data"
                )
            rng = np.random.default_rng(0)
            near = jax.tree.map(lambda leaf: leaf + (0.3 * rng.normal(size=leaf.shape)).astype(leaf.dtype), position)
            beside = _look(likelihood, prior, near, chosen)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"the NumPyro model failed on some of its rows: {first_line(error)}") from error
    _check_equal(model, found)
    if _is_finite(beside):
        _check_equal(model, beside)
    return position, tuple(name for name in model.derived if _is_same(name, found) and _is_same(name, beside))


@jax.jit
def _look(likelihood: ModelLikelihood, prior: ModelPrior, position: Position, batch: Batch) -> _Found:
    """The log density of a batch in several ways."""
    model, arguments = likelihood.model, likelihood.arguments

    def one(row: Batch) -> tuple[Any, dict[str, Any]]:
        return likelihood(position, row), derived(jax.tree.map(lambda leaf: leaf[None], row))

    def derived(batch: Batch) -> dict[str, Any]:
        sites = model.at(position, batch, arguments)
        return {name: jnp.asarray(sites[name]["value"]) for name in model.derived}

    values, each = jax.vmap(one)(batch)
    with lenient(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        potential = _infer().util.potential_energy(model.bound(batch, arguments), (), {}, position)
    return _Found(prior(position), values, likelihood.values(position, batch), potential, (each, derived(batch)))


@functools.partial(jax.jit, static_argnums=0)
def _median(model: Model, arguments: Batch, key: Any, row: Batch) -> Position:
    """The position where NumPyro's `init_to_median` starts."""
    seeded = handlers().seed(model.bound(row, arguments), key)
    with lenient(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sites = handlers().trace(handlers().substitute(seeded, substitute_fn=_infer().init_to_median())).get_trace()
        return {name: jnp.asarray(bijector(sites[name]).inv(sites[name]["value"])) for name in model.latent}


def _infer() -> Any:
    return require("numpyro.infer", extra="numpyro")


def _is_finite(found: _Found) -> bool:
    return bool(np.isfinite(found.potential) and np.isfinite(found.prior) and np.all(np.isfinite(found.single)))


def _check_equal(model: Model, found: _Found) -> None:
    """Raise InputError unless prior and rows add up to NumPyro's potential energy."""
    prior, single, together = (np.asarray(part, np.float64) for part in (found.prior, found.single, found.together))
    times = model.size / len(single) if model.by_index else 1.0
    total, wanted = float(prior) + times * single.sum(), -float(found.potential)
    allowed = _TOLERANCE * (1 + abs(float(prior)) + times * np.abs(single).sum())
    if abs(total - wanted) <= allowed and np.all(np.abs(single - together) <= allowed):
        return
    raise InputError(
        f"the NumPyro model is not a prior and a sum over rows: for {len(single)} rows it says {wanted:.6g}, and the "
        f"prior and the rows one by one add up to {total:.6g}: neither the prior nor a row may depend on other rows or "
        "their number, so give such numbers as arguments of their own"
    )


def _is_same(name: str, found: _Found) -> bool:
    """Whether a deterministic site has one value, whatever the rows."""
    single, together = (np.asarray(part[name], np.float64) for part in found.derived)
    return bool(np.allclose(single, together[None], rtol=1e-4, atol=1e-6, equal_nan=True))
