"""Constrained parameters: chains sample unconstrained positions, which bijectors of NumPyro map onto the parameters."""

import abc
import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._core import pytree
from .._core.optional import require
from .._core.promotion import lenient
from .._core.types import Batch, Position
from ..errors import InputError, shown, unknown
from .likelihood import AbstractLikelihood, AbstractMapped

_NAMED = {
    "positive": "positive",
    "unit_interval": "unit_interval",
    "simplex": "simplex",
    "ordered": "ordered_vector",
    "corr_cholesky": "corr_cholesky",
}
"""Constraints that go by a name, and their names in `numpyro.distributions.constraints`."""
_ROUNDING = 1e-3


def distributions() -> Any:
    """`numpyro.distributions`, imported only when it is needed."""
    return require("numpyro.distributions", extra="numpyro")


class AbstractSupport(eqx.Module):
    """Where parameters lie: a map of unconstrained positions, a pytree of any real numbers, onto parameters."""

    @abc.abstractmethod
    def constrain(self, position: Position) -> Position:
        """The parameters at a position, with everything that is derived from them."""

    @abc.abstractmethod
    def unconstrain(self, parameters: Position) -> Position:
        """The position of parameters; what is derived from them is ignored."""

    @abc.abstractmethod
    def check(self, parameters: Position) -> None:
        """Raise InputError unless these parameters, which a user gave, have the right names and values."""

    @property
    @abc.abstractmethod
    def constrained(self) -> dict[str, str]:
        """Names of the constrained parameters, and what they are."""

    @property
    def derived(self) -> tuple[str, ...]:
        """Names of what is derived from the parameters."""
        return ()

    def in_words(self) -> dict[str, Any]:
        """For the settings of a run: what is constrained, and what is derived."""
        return {"constrained": self.constrained, "derived": list(self.derived)}

    def check_inside(self, parameters: Position) -> None:
        """Raise InputError unless every parameter is inside its support: there and back again must change nothing."""
        try:
            position = unconstrained(self, parameters)
            back = constrained(self, position)
        except InputError:
            raise
        except Exception as error:  # in a bijector, of shapes that it does not take
            names = ", ".join(f"{name} ({kind})" for name, kind in self.constrained.items())
            raise InputError(f"init does not have the shapes that its constraints need: {names}") from error
        places, found = named(position), named(back)
        for name, given in named(parameters).items():
            same = np.allclose(np.asarray(found[name]), np.asarray(given), rtol=_ROUNDING, atol=1e-6)
            if not same or not np.all(np.isfinite(places[name])):
                raise InputError(
                    f"init {name} is {shown(np.asarray(given).tolist())}, but its support is "
                    f"{self.constrained.get(name, 'real')}: start inside, not on the boundary"
                )


@dataclasses.dataclass(frozen=True, eq=False)
class _Constraints:
    """Constraints of NumPyro by name of the parameter; compared by identity."""

    by_name: dict[str, Any]
    words: dict[str, str]


class Bijections(AbstractSupport):
    """Parameters in a dict, some of them constrained: x_k = b_k(z_k), with b_k = `numpyro.distributions.biject_to`."""

    constraints: _Constraints = eqx.field(static=True)

    def constrain(self, position: Position) -> Position:
        return self._mapped(position, lambda bijector, leaf: bijector(leaf))

    def unconstrain(self, parameters: Position) -> Position:
        return self._mapped(parameters, lambda bijector, leaf: bijector.inv(leaf))

    def log_volume(self, position: Position) -> Float[Array, ""]:
        """Σ_k log |det ∂b_k/∂z_k|, which turns a density of the parameters into one of positions."""
        wide = pytree.wide_dtype(position)
        total = jnp.zeros((), wide)
        for name, leaf in named(position).items():
            if name in self.constraints.by_name:
                bijector, here = self._bijector(name), _wide(leaf)
                with lenient():
                    total = total + jnp.sum(bijector.log_abs_det_jacobian(here, bijector(here))).astype(wide)
        return total

    def check(self, parameters: Position) -> None:
        if not isinstance(parameters, dict):
            raise InputError(
                f"constraints are for parameters in a dict, by name, not for {shown(parameters)}: write "
                'init={"tau": 1.0} and constraints={"tau": "positive"}'
            )
        names = list(named(parameters))
        for name in self.constraints.by_name:
            if name not in names:
                raise unknown("parameter in constraints=", name, names)
        self.check_inside(parameters)

    @property
    def constrained(self) -> dict[str, str]:
        return self.constraints.words

    def _mapped(self, tree: Position, function: Callable[[Any, Array], Array]) -> Position:
        leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
        mapped = []
        for path, leaf in leaves:
            name = pytree.leaf_name(path)
            if name in self.constraints.by_name:
                with lenient():
                    leaf = function(self._bijector(name), _wide(leaf)).astype(leaf.dtype)
            mapped.append(leaf)
        return structure.unflatten(mapped)

    def _bijector(self, name: str) -> Any:
        return distributions().biject_to(self.constraints.by_name[name])


class ConstrainedLikelihood(AbstractMapped):
    """ℓ_i(b(z)), a function of the position z."""

    likelihood: AbstractLikelihood
    support: Bijections

    def place(self, params: Position) -> Position:
        return self.support.constrain(params)

    def gradient(self, params: Position, batch: Batch, weights: Float[Array, " b"]) -> Position:
        position, pull_back = jax.vjp(self.place, params)
        return pull_back(self.likelihood.gradient(position, batch, weights))[0]

    def gradients(self, params: Position, batch: Batch) -> Position:
        position, pull_back = jax.vjp(self.place, params)
        return jax.vmap(lambda gradient: pull_back(gradient)[0])(self.likelihood.gradients(position, batch))


class ConstrainedPrior(eqx.Module):
    """log π(b(z)) + log |det ∂b/∂z|, a function of the position z."""

    log_prior: Callable
    support: Bijections

    def __call__(self, params: Position) -> Float[Array, ""]:
        density = self.log_prior(self.support.constrain(params))
        return density + self.support.log_volume(params).astype(jnp.result_type(density))


@functools.partial(jax.jit, static_argnames="leading")
def constrained(support: AbstractSupport, position: Position, leading: int = 0) -> Position:
    """The parameters at a position, or those at positions stacked along `leading` axes, compiled."""
    return _along(support.constrain, leading)(position)


@functools.partial(jax.jit, static_argnames="leading")
def unconstrained(support: AbstractSupport, parameters: Position, leading: int = 0) -> Position:
    """The position of parameters, or those of parameters stacked along `leading` axes, compiled."""
    return _along(support.unconstrain, leading)(parameters)


def _along(function: Callable[[Position], Position], leading: int) -> Callable[[Position], Position]:
    for _ in range(leading):
        function = jax.vmap(function)
    return function


def bijections(constraints: Any) -> Bijections:
    """The support for the argument `constraints=` of a target: constraints, or their names, by parameter."""
    if not isinstance(constraints, Mapping) or not all(isinstance(name, str) for name in constraints):
        raise InputError(
            'constraints must be a dict from names of parameters to constraints, such as {"tau": "positive"}, not '
            f"{shown(constraints)}"
        )
    found = {name: _constraint(name, given) for name, given in constraints.items()}
    return Bijections(_Constraints(found, {name: in_words(constraint) for name, constraint in found.items()}))


def _constraint(name: str, given: Any) -> Any:
    known = distributions().constraints
    if isinstance(given, str):
        if given not in _NAMED:
            raise unknown("constraint", given, list(_NAMED))
        given = getattr(known, _NAMED[given])
    if not isinstance(given, known.Constraint):
        raise InputError(
            f"the constraint of {name} must be one of {', '.join(_NAMED)}, or one of "
            f"numpyro.distributions.constraints, not {shown(given)}"
        )
    try:
        distributions().biject_to(given)
    except NotImplementedError as error:
        raise InputError(
            f"the constraint of {name}, {in_words(given)}, has no bijector in NumPyro (numpyro.distributions.biject_to)"
        ) from error
    return given


def _wide(leaf: Any) -> Array:
    """In the dtype that JAX computes in by default: bijectors mix their own constants with what they are given."""
    return jnp.asarray(leaf).astype(jnp.result_type(float))


def in_words(constraint: Any) -> str:
    """The name of a constraint of NumPyro, for people."""
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(constraint).__name__.strip("_")).lower()


def named(tree: Position) -> dict[str, Any]:
    """Leaves by the names that summaries show."""
    return {pytree.leaf_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
