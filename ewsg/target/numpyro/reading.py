"""Reading a NumPyro model: where its data are, what cannot be split over them, and whether the split is right."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._core.optional import require
from ..._core.promotion import lenient
from ..._core.types import Batch
from ...errors import InputError, first_line, shown
from ..constraints import constrained
from ..data import Dataset
from .model import (
    Model,
    ModelLikelihood,
    ModelPrior,
    ModelSupport,
    Site,
    constrained_sites,
    handlers,
    indices_of,
    is_latent,
    log_probability,
    one_row,
)
from .sites import check_sites
from .verifying import verified

_SIZES = "compute sizes, such as the number of groups, outside the model and pass them as whole numbers"


class Parts(NamedTuple):
    """What a target is made of."""

    likelihood: ModelLikelihood
    prior: ModelPrior
    support: ModelSupport
    data: Batch
    init: dict[str, Any]


def read(function: Callable, args: tuple[Any, ...], kwargs: dict[str, Any], plate: str | None) -> Parts:
    """The posterior of a model, given its arguments; raises InputError for one that is not a sum over rows of data.

    Args:
        function: the model.
        args: its positional arguments.
        kwargs: its keyword arguments.
        plate: the name of the data's plate; None if there is only one with observed sites.
    """
    if not callable(function):
        raise InputError(f"from_numpyro takes a NumPyro model, a function, first, not {shown(function)}")
    require("numpyro", extra="numpyro")
    args, kwargs = jax.tree.map(_indexable, (args, kwargs))
    sites = _look(lambda: function(*args, **kwargs), (), "on its arguments")
    plate = check_sites(sites, plate)
    size, subsample = sites[plate]["args"]
    latent = tuple(name for name, site in sites.items() if is_latent(site))
    taken, constants = eqx.partition((args, kwargs), lambda leaf: _num_rows(leaf) == size)
    arrays = Dataset(taken).arrays if jax.tree.leaves(taken) else None
    model = Model(function, constants, plate, size, latent=latent)
    if subsample in (None, size) and arrays is not None and _follows(model, arrays):
        rows, arguments = arrays, None
    else:
        model = dataclasses.replace(model, by_index=True)
        rows, arguments = indices_of(size), arrays
        _check_indices(model, arguments)
    model = dataclasses.replace(model, derived=_derived(model, rows, arguments))
    position, derived = verified(model, rows, arguments)
    model = dataclasses.replace(model, derived=derived)
    row = one_row(model, rows)
    support = ModelSupport(model, constrained_sites(sites, latent), row, arguments)
    init = constrained(support, position)
    start = {name: np.asarray(init[name]) for name in latent}
    return Parts(ModelLikelihood(model, arguments), ModelPrior(model, row, arguments), support, rows, start)


def _indexable(leaf: Any) -> Any:
    """Arrays of NumPy as those of JAX, which a model can index by the rows of its plate; anything else as it is."""
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf" else leaf


def _num_rows(leaf: Any) -> int | None:
    """The length of the leading axis of an array; None for anything else."""
    shape = getattr(leaf, "shape", ())
    return shape[0] if shape else None


def _look(
    model: Callable[..., Any], rows: tuple[Any, ...], on_what: str, inspect: Callable[[dict[str, Site]], Any] = dict
) -> Any:
    """What a function sees of the sites of a model; latent ones are drawn at random. Nothing is computed.

    Args:
        model: a function of rows, or of nothing.
        rows: its arguments: arrays, or their shapes.
        on_what: for the error, if the model fails.
        inspect: the function of the sites.
    """
    found = []

    def look(*rows: Any) -> None:
        found.append(inspect(handlers().trace(handlers().seed(model, jax.random.key(0))).get_trace(*rows)))

    try:
        with lenient(), jax.debug_key_reuse(False), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.eval_shape(look, *rows)
    except Exception as error:
        raise InputError(f"the NumPyro model failed {on_what}: {first_line(error)}") from error
    return found[0]


def _shapes(arrays: Batch, count: int) -> Batch:
    """The shapes of so many rows."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape[1:]), leaf.dtype), arrays)


def _follows(model: Model, arrays: Batch) -> bool:
    """Whether a model has as many rows as its arguments: called on one row, its plate has the size 1."""
    on_what = f"on one row of its arguments (those with {model.size} rows are taken as data; {_SIZES})"
    sites = _look(lambda rows: model.bound(rows)(), (_shapes(arrays, 1),), on_what)
    return model.plate in sites and sites[model.plate]["args"][0] == 1


def _check_indices(model: Model, arguments: Batch) -> None:
    """Raise InputError unless a model takes the rows that the indices of its plate say."""

    def lengths(sites: dict[str, Site]) -> dict[str, int]:
        found = {}
        for name, site in sites.items():
            if site["type"] == "sample" and model.is_datum(site):
                dim = next(frame.dim for frame in site["cond_indep_stack"] if frame.name == model.plate)
                found[name] = log_probability(site).shape[dim]
        return found

    if model.size == 1:
        return
    advice = (
        f"give its data as arguments with one row per datum and write numpyro.plate({model.plate!r}, len(y)), or write "
        f"with numpyro.plate({model.plate!r}, n, subsample_size=m) as rows: and take y[rows]"
    )
    index = jax.ShapeDtypeStruct((1,), np.int32)
    on_what = f"on one row of the plate {model.plate} ({advice})"
    found = _look(lambda rows: model.bound(rows, arguments)(), (index,), on_what, lengths)
    for name, length in found.items():
        if length != 1:
            raise InputError(f"the site {name} takes all data whatever the rows of the plate {model.plate}: {advice}")


def _derived(model: Model, rows: Batch, arguments: Batch) -> tuple[str, ...]:
    """Names of the deterministic sites outside the plate that do not have a value for each row of the data."""

    def shapes(count: int) -> dict[str, Any]:
        def inspect(sites: dict[str, Site]) -> dict[str, Any]:
            fixed = {name: site for name, site in sites.items() if site["type"] == "deterministic"}
            return {name: jnp.shape(site["value"]) for name, site in fixed.items() if not model.is_datum(site)}

        return _look(lambda rows: model.bound(rows, arguments)(), (_shapes(rows, count),), "on some rows", inspect)

    many = model.by_index and model.size > 1
    one, two = shapes(1), shapes(min(2, model.size))
    return tuple(name for name, shape in one.items() if shape == two.get(name) and not (many and model.size in shape))
