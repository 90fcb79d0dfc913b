"""Lower bounds of one datum's likelihood for FlyMC, the sum of whose logarithms over all data takes O(1) time."""

import abc
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._core.component import Component
from ..._core.types import Batch, Position, Scalar
from ...errors import InputError
from ...interface import Cost
from ...target.likelihood import AbstractLikelihood
from ...target.target import Target


class Gap(NamedTuple):
    """ℓ_i − log B_i for each datum of a batch, and a bound of its rounding error."""

    value: Float[Array, " b"]
    rounding: Float[Array, " b"] | Scalar


class Prepared(NamedTuple):
    """A bound that is ready for use, the statistics of its sum, and the cost of both."""

    bound: "AbstractBound"
    statistics: Any
    cost: Cost


class AbstractBound(Component):
    """A positive function B_i(θ) ≤ L_i(θ) of one datum, for which Σ_i log B_i(θ) takes O(1) time for any n.

    A bound of your own is one subclass with the three abstract methods below. Before a run it is compared with the
    likelihood at random data and at positions around the start (up to ten step sizes away), and its sum with the sum
    over all data; during the run `stats["bound_violations"]` counts the evaluations that find it above the likelihood.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> from ewsg.interface import Cost
        >>> from ewsg.kernels.bounds import AbstractBound, Prepared
        >>> class Half(AbstractBound):  # for exp(−½(x − θ)²): the same, halved
        ...     def prepare(self, target):
        ...         x = target.data.arrays
        ...         return Prepared(self, (x.size, jnp.sum(x)), Cost(target.num_data))
        ...
        ...     def log_bound(self, params, datum):
        ...         return -0.5 * (datum - params) ** 2 - jnp.log(2.0)
        ...
        ...     def log_bound_sum(self, params, statistics):
        ...         count, total = statistics
        ...         return params * total - 0.5 * count * params**2
        >>> target = ewsg.Target(lambda theta, x: -0.5 * (x - theta) ** 2, None, jnp.arange(4.0))
        >>> Half().prepare(target).statistics
        (4, Array(6., dtype=float32))
    """

    @abc.abstractmethod
    def prepare(self, target: Target) -> Prepared:
        """Find, once before the first step, the point where the bound is tight and the statistics of its sum."""

    @abc.abstractmethod
    def log_bound(self, params: Position, datum: Batch) -> Float[Array, ""]:
        """log B(θ) of one datum."""

    @abc.abstractmethod
    def log_bound_sum(self, params: Position, statistics: Any) -> Float[Array, ""]:
        """Σ_i log B_i(θ) over all data; leave out terms that do not depend on θ, which would cost digits."""

    def log_bounds(self, params: Position, batch: Batch) -> Float[Array, " b"]:
        """log B_i for every datum of a batch."""
        return jax.vmap(self.log_bound, in_axes=(None, 0))(params, batch)

    def gap(self, params: Position, batch: Batch, likelihood: AbstractLikelihood) -> Gap:
        """ℓ_i − log B_i for every datum; override it if it can be had without the subtraction, which costs digits."""
        values, bounds = likelihood.values(params, batch), self.log_bounds(params, batch)
        return Gap(values - bounds, jnp.finfo(values.dtype).eps * (jnp.abs(values) + jnp.abs(bounds)))


def filled(owner: str, setting: Any) -> Any:
    """A setting that `prepare` fills in; raises InputError if it has not done so."""
    if setting is None:
        raise InputError(f"{owner} is not prepared: use ewsg.compose, or bound.prepare(target).bound")
    return setting


def only_array(owner: str, target: Target, axes: int, what: str) -> Array:
    """The data, which must be one array with `axes` axes."""
    leaves = jax.tree.leaves(target.data.arrays)
    if len(leaves) != 1 or leaves[0].ndim != axes:
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise InputError(f"{owner} needs data that are {what}, not arrays of shape {shapes}")
    return leaves[0]
