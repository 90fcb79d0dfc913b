"""A NumPyro model as a posterior over data: its sites, split into a prior and the likelihood of each row."""

import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._core.optional import require
from ..._core.promotion import lenient
from ..._core.types import Batch, Indices, Position
from ...errors import InputError, shown, unknown
from ..constraints import AbstractSupport, distributions, in_words
from ..likelihood import AbstractLikelihood

Site = dict[str, Any]


def handlers() -> Any:
    """`numpyro.handlers`, imported only when it is needed."""
    return require("numpyro.handlers", extra="numpyro")


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model and its arguments, called on some rows of the data; compared by identity.

    Attributes:
        function: the model.
        constants: its positional and keyword arguments, with None in place of data.
        plate: the name of the data's plate.
        size: n.
        by_index: whether rows are numbers, which replace the indices of the plate, or the data of an argument.
        latent: names of the sites that are sampled.
        derived: names of the deterministic sites that are kept with them.
    """

    function: Callable
    constants: tuple[tuple[Any, ...], dict[str, Any]]
    plate: str
    size: int
    by_index: bool = False
    latent: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()

    def bound(self, rows: Batch, arguments: Batch = None) -> Callable[[], Any]:
        """The model on these rows, a function of nothing.

        Args:
            rows: a batch of rows of the data, or of row numbers.
            arguments: for row numbers, the arguments that have as many rows as there are data.
        """
        args, kwargs = eqx.combine(arguments if self.by_index else rows, self.constants)
        if not self.by_index:
            return lambda: self.function(*args, **kwargs)
        function = handlers().substitute(self.function, data={self.plate: jnp.asarray(rows)})
        return lambda: function(*args, **kwargs)

    def sites(self, place: Callable[[Site], Any], rows: Batch, arguments: Batch = None) -> dict[str, Site]:
        """All sites, by name, with latent ones at the values that a function of the site gives them."""

        def substituted(site: Site) -> Any:
            return place(site) if is_latent(site) and site["name"] in self.latent else None

        model = handlers().substitute(self.bound(rows, arguments), substitute_fn=substituted)
        with lenient(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "subsample_size does not match len(subsample)": that is the point
            return handlers().trace(model).get_trace()

    def at(self, params: Position, rows: Batch, arguments: Batch = None) -> dict[str, Site]:
        """All sites at an unconstrained position."""
        return self.sites(lambda site: bijector(site)(params[site["name"]]), rows, arguments)

    def is_datum(self, site: Site) -> bool:
        """Whether a site is part of the likelihood: inside the plate of the data."""
        return any(frame.name == self.plate for frame in site["cond_indep_stack"])


class ModelLikelihood(AbstractLikelihood):
    """ℓ_i: the log probabilities of a row at the sites inside the plate.

    A batch is one call of the model: its plate has as many rows.
    """

    model: Model = eqx.field(static=True)
    arguments: Batch = None

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        return self._together(params, jax.tree.map(lambda leaf: leaf[None], datum))[0]

    def values(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        count = jax.tree.leaves(batch)[0].shape[0]
        if self.model.by_index and count >= self.model.size:  # numpyro.subsample would not gather so many
            return super().values(params, batch)
        return self._together(params, batch)

    def _together(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        count = jax.tree.leaves(batch)[0].shape[0]
        sites = self.model.at(params, batch, self.arguments).values()
        terms = [self._by_row(site, count) for site in sites if site["type"] == "sample" and self.model.is_datum(site)]
        return functools.reduce(operator.add, terms)

    def _by_row(self, site: Site, count: int) -> Float[Array, " b"]:
        """The log probabilities of a site by row, without the factor n/b of a subsampled plate."""
        dim = next(frame.dim for frame in site["cond_indep_stack"] if frame.name == self.model.plate)
        with lenient():
            values = log_probability(site)
            rows = jnp.sum(jnp.moveaxis(values, dim, 0).reshape(values.shape[dim], -1), axis=1)
        return rows * (count / self.model.size) if self.model.by_index else rows


class ModelPrior(eqx.Module):
    """log π: the log probabilities at all other sites, and the log-Jacobians of their bijectors."""

    model: Model = eqx.field(static=True)
    row: Batch
    arguments: Batch = None

    def __call__(self, params: Position) -> Float[Array, ""]:
        sites = self.model.at(params, self.row, self.arguments)
        terms = []
        with lenient():
            for name, site in sites.items():
                if site["type"] != "sample" or self.model.is_datum(site):
                    continue
                terms.append(jnp.sum(log_probability(site)))
                if name in self.model.latent:
                    volume = bijector(site).log_abs_det_jacobian(params[name], site["value"])
                    terms.append(jnp.sum(volume if site["scale"] is None else site["scale"] * volume))
            return functools.reduce(operator.add, terms)


class ModelSupport(AbstractSupport):
    """The latent sites of a model, each constrained to the support of its distribution; and deterministic sites."""

    model: Model = eqx.field(static=True)
    words: tuple[tuple[str, str], ...] = eqx.field(static=True)
    row: Batch
    arguments: Batch = None

    def constrain(self, position: Position) -> Position:
        sites = self.model.at(position, self.row, self.arguments)
        example = jax.tree.leaves(position)[0].dtype
        return {name: _real(sites[name]["value"], example) for name in (*self.model.latent, *self.model.derived)}

    def unconstrain(self, parameters: Position) -> Position:
        sites = self.model.sites(lambda site: parameters[site["name"]], self.row, self.arguments)
        with lenient():
            positions = {name: bijector(sites[name]).inv(parameters[name]) for name in self.model.latent}
        return {name: _real(value, parameters[name].dtype) for name, value in positions.items()}

    def check(self, parameters: Position) -> None:
        latent, known = self.model.latent, (*self.model.latent, *self.model.derived)
        if not isinstance(parameters, dict) or not set(latent) <= set(parameters):
            raise InputError(
                f"init of a NumPyro model must be a dict with a value for each of its sites {', '.join(latent)}, not "
                f"{shown(parameters)}"
            )
        for name in parameters:
            if name not in known:
                raise unknown("site in init", name, known)
        self.check_inside({name: parameters[name] for name in latent})

    @property
    def constrained(self) -> dict[str, str]:
        return dict(self.words)

    @property
    def derived(self) -> tuple[str, ...]:
        return self.model.derived


def is_latent(site: Site) -> bool:
    """Whether a site has to be sampled."""
    return site["type"] == "sample" and not site["is_observed"]


def bijector(site: Site) -> Any:
    """From real numbers to the support of a site's distribution."""
    return distributions().biject_to(site["fn"].support)


def log_probability(site: Site) -> Array:
    """The log probabilities of a site, times the scale that handlers give it."""
    values = site["fn"].log_prob(site["value"])
    return values if site["scale"] is None else site["scale"] * values


def constrained_sites(sites: dict[str, Site], latent: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Names of the latent sites that are not any real numbers, and what they are."""
    supports = {name: sites[name]["fn"].support for name in latent}
    plain = {name: getattr(support, "base_constraint", support) for name, support in supports.items()}
    words = {name: in_words(support) for name, support in plain.items()}
    return tuple((name, kind) for name, kind in words.items() if kind not in ("real", "real vector"))


def one_row(model: Model, rows: Batch) -> Batch:
    """A batch of the first row alone."""
    return np.zeros(1, np.int32) if model.by_index else jax.tree.map(lambda leaf: leaf[:1], rows)


def chosen_rows(model: Model, rows: Batch, indices: np.ndarray) -> Batch:
    """A batch of the rows at `indices`."""
    return indices if model.by_index else jax.tree.map(lambda leaf: leaf[indices], rows)


def indices_of(size: int) -> Indices:
    """The data of a model that takes row numbers."""
    return jnp.arange(size, dtype=jnp.int32)


def _real(value: Any, dtype: Any) -> Array:
    """A value as an array; floating-point ones in the dtype of the parameters."""
    array = jnp.asarray(value)
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array
