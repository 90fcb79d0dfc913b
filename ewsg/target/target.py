"""The posterior to sample: −V(θ) = log prior(θ) + Σ_i ℓ(θ, datum_i)."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import modules
from .._core import pytree
from .._core.compiler import times_one
from .._core.component import as_module
from .._core.types import Batch, Indices, Key, Position
from ..errors import InputError
from .checking import check_parameters, check_scalar, check_start
from .constraints import (
    AbstractSupport,
    ConstrainedLikelihood,
    ConstrainedPrior,
    bijections,
    constrained,
    unconstrained,
)
from .coordinates import AbstractCoordinates, CoordinateLikelihood, CoordinatePrior
from .data import Dataset, Held
from .density import log_density
from .likelihood import AbstractLikelihood, OfModule, PerDatum
from .numpyro.reading import read

_ROWS_PER_BLOCK = 16_384
_BLOCK_BYTES = 256 * 2**20


def flat(params: Position) -> Float[Array, ""]:
    """The flat (improper) prior: log density 0 everywhere."""
    return jnp.zeros((), jax.tree.leaves(params)[0].dtype)


class Target(eqx.Module):
    r"""A posterior over a pytree of parameters, given n data.

    −V(θ) = log π(θ) + Σ_{i=1..n} ℓ(θ, x_i) = Σ_i −V_i(θ),  with log π split evenly: −V_i = ℓ_i + log π / n.

    All forces below estimate ∇(−V), the gradient of that **sum**: a likelihood never multiplies by n/b.

    Args:
        log_likelihood: function of (params, datum) that returns the log density of ONE datum, a scalar; or a model's
            `AbstractLikelihood`.
        log_prior: function of params that returns a scalar; None is the flat prior.
        data: pytree of arrays with one leading axis, one row per datum.
        init: the default starting point of `ewsg.sample`, a pytree like the parameters. The models of `ewsg.models`
            have one.
        constraints: for parameters in a dict, the constraints of some by name, {"tau": "positive"}: "positive",
            "unit_interval", "simplex", "ordered", "corr_cholesky", or any of `numpyro.distributions.constraints`.
            Chains then sample unconstrained positions, with the log-Jacobian in the prior; `init` and draws are the
            parameters themselves. Methods of a target take positions: `unconstrain` gives them.

    Example:
        >>> import jax.numpy as jnp, jax.scipy.stats as stats, ewsg
        >>> x = jnp.array([0.3, -1.2, 0.8])
        >>> target = ewsg.Target(lambda mu, x: stats.norm.logpdf(x, mu), lambda mu: stats.norm.logpdf(mu), x)
        >>> round(float(target.force(jnp.array(0.0), jnp.array([0, 1, 2]))), 3)  # all data: the full gradient
        -0.1
    """

    likelihood: AbstractLikelihood
    log_prior: Callable
    data: Dataset
    init: Position | None
    support: AbstractSupport | None

    def __init__(
        self,
        log_likelihood: Callable,
        log_prior: Callable | None,
        data: Batch,
        *,
        init: Position | None = None,
        constraints: Mapping[str, Any] | None = None,
    ):
        for name, function in (("log_likelihood", log_likelihood), ("log_prior", log_prior or flat)):
            if not callable(function):
                raise InputError(f"{name} must be a function, not {type(function).__name__}")
        is_model = isinstance(log_likelihood, AbstractLikelihood)
        likelihood = log_likelihood if is_model else PerDatum(log_likelihood)
        prior = as_module(log_prior or flat)
        self.support = support = bijections(constraints) if constraints else None
        self.likelihood = likelihood if support is None else ConstrainedLikelihood(likelihood, support)
        self.log_prior = prior if support is None else ConstrainedPrior(prior, support)
        self.data = Dataset(data)
        self.init = None if init is None else pytree.as_arrays(init)
        if support is not None and init is not None:
            support.check(self.init)

    @classmethod
    def from_module(
        cls, module: Any, loss: Callable, data: tuple[Batch, Batch], log_prior: Callable | None = None
    ) -> "Target":
        """The posterior of a network's parameters: ℓ(θ, (x, y)) = −loss(module_θ(x), y).

        Positions are flat dicts, `ewsg.modules.parameters(module)`; `ewsg.modules.restore` puts a draw back into the
        module. Batch statistics and dropout raise InputError: with them the log posterior is not a sum over data.

        Args:
            module: of Equinox, called with one input; or of Flax NNX or PyTorch, called with a batch of one.
            loss: function of (output, target) of ONE datum that returns minus its log-likelihood, such as
                `ewsg.modules.cross_entropy`.
            data: inputs and targets, each a pytree with one row per datum.
            log_prior: function of the parameters; None is N(0, I) over all of them.
        """
        likelihood = OfModule(modules.log_likelihood_of(module, loss), modules.prediction_of(module, loss))
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise InputError("data of a module must be a pair (inputs, targets), each with one row per datum")
        start = modules.parameters(module)
        target = cls(likelihood, log_prior or modules.standard_normal, tuple(data), init=start)
        modules.check_data(module, loss, target.data.arrays)
        return target

    @classmethod
    def from_numpyro(cls, model: Callable, *args: Any, plate: str | None = None, **kwargs: Any) -> "Target":
        """The posterior of a NumPyro model, its likelihood split over the rows of its data.

        The model has one plate of data, `with numpyro.plate("data", n)`, and its likelihood inside; all other sites are
        the prior. Either its data are arguments with n rows, from which it reads n; or the plate has a `subsample_size`
        (`numpyro.subsample`, or `y[rows]` for the rows of the plate). Other arguments are constants. Chains sample
        unconstrained positions. Draws are the values of the sites, and of deterministic ones that do not depend on the
        rows; `init` likewise, by default NumPyro's `init_to_median`.

        Latent sites inside the plate, discrete ones, likelihoods outside of it or in several plates, and whatever else
        does not add up to NumPyro's own potential energy, raise InputError (docs/numpyro.md).

        Args:
            model: the model, a function.
            *args: its arguments.
            plate: the name of the data's plate, needed only if observed sites are in several plates at once.
            **kwargs: its keyword arguments.

        Example:
            >>> import numpy as np, numpyro, numpyro.distributions as dist, ewsg
            >>> def model(y):
            ...     scale = numpyro.sample("scale", dist.HalfNormal(5.0))
            ...     with numpyro.plate("data", len(y)):
            ...         numpyro.sample("y", dist.Normal(0.0, scale), obs=y)
            >>> target = ewsg.Target.from_numpyro(model, np.array([0.3, -1.2, 0.8]))
            >>> target.num_data, list(target.init)
            (3, ['scale'])
        """
        parts = read(model, args, kwargs, plate)
        target = cls(parts.likelihood, parts.prior, parts.data, init=parts.init)
        return eqx.tree_at(lambda target: target.support, target, parts.support, is_leaf=lambda node: node is None)

    def __hash__(self) -> int:  # by identity, so that users can jit its methods
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def num_data(self) -> int:
        """n."""
        return self.data.size

    @property
    def is_log_concave(self) -> bool:
        """Whether −V is known to be concave, so that it has one mode: a regression of `ewsg.models`, for example."""
        prior = getattr(self.log_prior, "function", self.log_prior)
        return self.likelihood.log_concave and (prior is flat or getattr(prior, "log_concave", False))

    def draw(self, key: Key, count: int, replace: bool) -> Indices:
        """Row numbers of a minibatch, independent or distinct: uniform, unless the data are weighted (`Leverage`)."""
        return self.data.draw(key, count, replace)

    def take(self, indices: Indices) -> Batch:
        """The data at `indices`, gathered row by row."""
        if isinstance(self.data, Held):
            return self.data.arrays
        return jax.tree.map(times_one, self.data.take(indices))

    def hold(self, indices: Indices) -> "Target":
        """A view of this target whose minibatch `indices` is already gathered; valid only for those indices."""
        return eqx.tree_at(lambda target: target.data, self, Held(self.take(indices), self.num_data))

    def in_coordinates(self, coordinates: AbstractCoordinates) -> "Target":
        """The posterior of z, where θ = c + L z: the same data, with one vector z in place of the parameters."""
        likelihood = CoordinateLikelihood(self.likelihood, coordinates)
        prior = CoordinatePrior(self.log_prior, coordinates)
        return eqx.tree_at(
            lambda target: (target.likelihood, target.log_prior, target.init, target.support),
            self,
            (likelihood, prior, coordinates.start(), None),
            is_leaf=lambda node: node is None,
        )

    def constrain(self, position: Position) -> Position:
        """The parameters at a position, as draws have them, deterministic sites included; without constraints, it."""
        return position if self.support is None else self.support.constrain(position)

    def seen_at(self, position: Position) -> Position:
        """The shapes and dtypes of the parameters at a position."""
        return jax.eval_shape(lambda position: self.constrain(position), position)  # a bound method is compared by data

    def unconstrain(self, parameters: Position) -> Position:
        """The position of parameters such as `init` or a draw: what the methods of a target take."""
        return parameters if self.support is None else self.support.unconstrain(parameters)

    def starting_at(self, init: Position) -> Position:
        """The position of a starting point that a user gave, as arrays; raises InputError if it is not one."""
        check_start(init)
        init = pytree.as_arrays(init)
        if self.support is None:
            return init
        check_parameters(init)
        self.support.check(init)
        return unconstrained(self.support, init)

    def draws_at(self, positions: Position, leading: int = 2) -> Position:
        """The parameters at positions that are stacked along `leading` axes."""
        if self.support is None:
            return positions
        return jax.tree.map(np.asarray, constrained(self.support, positions, leading))

    def positions_of(self, draws: Position, leading: int = 2) -> Position:
        """The positions of draws that are stacked along `leading` axes."""
        if self.support is None:
            return draws
        return jax.tree.map(np.asarray, unconstrained(self.support, draws, leading))

    @property
    def is_centred(self) -> bool:
        """Whether the parameters are coordinates z (`in_coordinates`), whose origin is near the posterior's centre."""
        return isinstance(self.likelihood, CoordinateLikelihood)

    def force(self, position: Position, indices: Indices) -> Position:
        """(n/b) Σ_{i in batch} ∇(−V_i): the stochastic force of a minibatch."""
        return self.weighted_force(position, indices, jnp.full(indices.shape, 1 / indices.shape[0]))

    def weighted_force(self, position: Position, indices: Indices, weights: Float[Array, " b"]) -> Position:
        """n Σ_i w_i ∇(−V_i); the weights need not sum to one."""
        weights = weights.astype(pytree.wide_dtype(position))
        likelihood = self.likelihood.gradient(position, self.take(indices), self.num_data * weights)
        return pytree.combined(1, likelihood, jnp.sum(weights), self.prior_force(position))

    def forces(self, position: Position, indices: Indices) -> Position:
        """n ∇(−V_i) for each datum of the batch, stacked along a leading axis."""
        likelihood = self.likelihood.gradients(position, self.take(indices))
        prior = jax.tree.map(lambda leaf: leaf[None], self.prior_force(position))
        return pytree.combined(self.num_data, likelihood, 1, prior)

    def directional(self, position: Position, indices: Indices, direction: Position) -> Float[Array, " b"]:
        """n ∇(−V_i) · direction for each datum of the batch, without forming the gradients."""
        likelihood = self.likelihood.directional(position, self.take(indices), direction)
        return pytree.combined(self.num_data, likelihood, 1, pytree.dot(self.prior_force(position), direction)[None])

    def prior_force(self, position: Position) -> Position:
        """∇ log π(θ)."""
        return jax.grad(self.log_prior)(position)

    def full_force(self, position: Position) -> Position:
        """∇(−V) over all n data, in blocks of rows so that memory does not grow with n."""
        zero = pytree.widened(pytree.zeros_like(position))
        likelihood = self.sum_blocks(position, self.block_force, zero)
        return pytree.cast_like(pytree.combined(1, likelihood, 1, self.prior_force(position)), position)

    def log_density(self, position: Position) -> Float[Array, ""]:
        """−V(θ), up to the posterior's normalising constant, in at least float32.

        Its gradient is `full_force`, whose memory does not grow with n either.
        """
        return log_density(self, position)

    def block_force(self, position: Position, batch: Batch, count: int) -> Position:
        """Σ ∇ℓ_i over a block of rows."""
        return self.likelihood.gradient(position, batch, jnp.ones(count, pytree.wide_dtype(position)))

    def block_value(self, position: Position, batch: Batch, count: int) -> Float[Array, ""]:
        """Σ ℓ_i over a block of rows."""
        del count
        values = self.likelihood.values(position, batch)
        return jnp.sum(values.astype(pytree.wide_dtype(position)))

    def sum_blocks(self, position: Position, function: Callable, zero: Position) -> Position:
        """Σ over blocks of rows of function(position, batch, count), in the dtypes of `zero`."""

        def add(total: Position, start: Array | int, count: int) -> Position:
            part = function(position, self.data.rows(start, count), count)
            return pytree.add_scaled(total, 1, pytree.cast_like(part, zero))

        block = self.block(position, min(_ROWS_PER_BLOCK, self.num_data))
        whole, rest = divmod(self.num_data, block)
        total = jax.lax.fori_loop(0, whole, lambda k, total: add(total, k * block, block), zero)
        return add(total, whole * block, rest) if rest else total

    def block(self, position: Position, most: int, memory: int = _BLOCK_BYTES) -> int:
        """The number of data, at most `most`, whose intermediates fit into `memory` bytes."""
        return max(1, min(most, memory // self.datum_bytes(position)))

    def datum_bytes(self, position: Position) -> int:
        """Bytes of intermediates per datum, from the jaxpr."""
        return self.likelihood.datum_bytes(position, self.data.arrays)

    def check(self, position: Position) -> None:
        """Raise InputError, before anything is compiled, if these parameters or densities cannot be sampled."""
        check_parameters(position)
        datum = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.data.arrays)
        check_scalar("log_likelihood", "(params, datum) of one datum", "the datum", self.likelihood, position, datum)
        check_scalar("log_prior", "(params)", "the parameters", self.log_prior, position)
