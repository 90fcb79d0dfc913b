"""Affine coordinates θ = c + L z, chosen so that a posterior is nearly N(0, I): a transformation of targets."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .._core import pytree
from .._core.component import Component, as_real
from .._core.types import Batch, HostOrDevice, Position
from ..errors import InputError, shown
from .likelihood import AbstractLikelihood, AbstractMapped

Vector = Float[HostOrDevice, " d"]


class AbstractCoordinates(Component):
    """θ = c + L z for parameters θ, a pytree, and coordinates z, one vector of d numbers.

    A subclass gives the products with L, Lᵀ and L⁻¹. A force g on θ is the force Lᵀ g on z; a velocity r of z is the
    velocity L r of θ.
    """

    center: eqx.AbstractVar[Position]

    @abc.abstractmethod
    def push(self, vector: Vector) -> Vector:
        """L v."""

    @abc.abstractmethod
    def pull(self, vector: Vector) -> Vector:
        """Lᵀ v."""

    @abc.abstractmethod
    def solve(self, vector: Vector) -> Vector:
        """L⁻¹ v."""

    @property
    def dimension(self) -> int:
        """d."""
        return pytree.size(self.center)

    def place(self, z: Vector) -> Position:
        """θ = c + L z."""
        center, unravel = ravel_pytree(jax.tree.map(jnp.asarray, self.center))
        return unravel(center + self.push(z).astype(center.dtype))

    def locate(self, position: Position) -> Vector:
        """z = L⁻¹ (θ − c)."""
        return self.solve(ravel_pytree(pytree.subtract(position, self.center))[0])

    def start(self) -> Float[np.ndarray, " d"]:
        """z = 0, where θ = c."""
        return np.zeros(self.dimension, pytree.wide_dtype(self.center))


class Dense(AbstractCoordinates):
    """θ = c + L z with a matrix L: for up to a few hundred parameters.

    Args:
        center: c, a pytree like the parameters.
        root: L, of shape (d, d), rows in the order of `jax.flatten_util.ravel_pytree`; must be invertible.
    """

    center: Position = eqx.field(converter=pytree.as_arrays)
    root: Float[Array, "d d"] = eqx.field(converter=pytree.as_arrays)

    def __check_init__(self):
        _check("Dense", "root", self.root, (self.dimension, self.dimension))

    def push(self, vector: Vector) -> Vector:
        return self.root @ vector

    def pull(self, vector: Vector) -> Vector:
        return vector @ self.root

    def solve(self, vector: Vector) -> Vector:
        return jnp.linalg.solve(self.root, vector)


class Diagonal(AbstractCoordinates):
    """θ = c + s ∘ z: each parameter in its own unit, for any number of parameters.

    Args:
        center: c, a pytree like the parameters.
        scale: s, of shape (d,), in the order of `jax.flatten_util.ravel_pytree`; positive.
    """

    center: Position = eqx.field(converter=pytree.as_arrays)
    scale: Vector = eqx.field(converter=pytree.as_arrays)

    def __check_init__(self):
        _check("Diagonal", "scale", self.scale, (self.dimension,), positive=True)

    def push(self, vector: Vector) -> Vector:
        return self.scale * vector

    def pull(self, vector: Vector) -> Vector:
        return self.scale * vector

    def solve(self, vector: Vector) -> Vector:
        return vector / self.scale


class LowRank(AbstractCoordinates):
    """θ = c + s ∘ (z + U (e ∘ Uᵀ z)): each parameter in its own unit, and k directions U stretched by 1 + e.

    Args:
        center: c, a pytree like the parameters.
        scale: s, of shape (d,), in the order of `jax.flatten_util.ravel_pytree`; positive.
        directions: U, of shape (d, k), with orthonormal columns.
        stretch: 1 + e, of shape (k,); positive.
    """

    center: Position = eqx.field(converter=pytree.as_arrays)
    scale: Vector = eqx.field(converter=pytree.as_arrays)
    directions: Float[Array, "d k"] = eqx.field(converter=pytree.as_arrays)
    stretch: Float[Array, " k"] = eqx.field(converter=pytree.as_arrays)

    def __check_init__(self):
        _check("LowRank", "scale", self.scale, (self.dimension,), positive=True)
        _check("LowRank", "stretch", self.stretch, np.shape(self.stretch)[:1], positive=True)
        _check("LowRank", "directions", self.directions, (self.dimension, np.size(self.stretch)))

    def push(self, vector: Vector) -> Vector:
        return self.scale * self._stretched(vector, self.stretch - 1)

    def pull(self, vector: Vector) -> Vector:
        return self._stretched(self.scale * vector, self.stretch - 1)

    def solve(self, vector: Vector) -> Vector:
        return self._stretched(vector / self.scale, 1 / self.stretch - 1)

    def _stretched(self, vector: Vector, by: Float[HostOrDevice, " k"]) -> Vector:
        return vector + self.directions @ (by * (vector @ self.directions))


class CoordinateLikelihood(AbstractMapped):
    """ℓ_i(c + L z), a function of z."""

    likelihood: AbstractLikelihood
    coordinates: AbstractCoordinates

    def place(self, params: Vector) -> Position:
        return self.coordinates.place(params)

    def gradient(self, params: Vector, batch: Batch, weights: Float[Array, " b"]) -> Vector:
        gradient = self.likelihood.gradient(self.place(params), batch, weights)
        return self.coordinates.pull(ravel_pytree(gradient)[0]).astype(params.dtype)

    def gradients(self, params: Vector, batch: Batch) -> Float[HostOrDevice, "b d"]:
        return self._pulled(self.likelihood.gradients(self.place(params), batch), params)

    def gradient_changes(self, params: Vector, anchor: Vector, batch: Batch) -> Float[HostOrDevice, "b d"]:
        changes = self.likelihood.gradient_changes(self.place(params), self.place(anchor), batch)
        return self._pulled(changes, params)

    def _pulled(self, each: Position, params: Vector) -> Float[HostOrDevice, "b d"]:
        """Lᵀ g of stacked gradients g: d² operations for each."""
        return jax.vmap(self.coordinates.pull)(pytree.rows(each)).astype(params.dtype)


class CoordinatePrior(eqx.Module):
    """log π(c + L z), a function of z, without the constant log |det L|."""

    log_prior: Callable
    coordinates: AbstractCoordinates

    def __call__(self, params: Vector) -> Float[Array, ""]:
        return self.log_prior(self.coordinates.place(params))


def as_coordinates(value: Any) -> AbstractCoordinates | None:
    """Coordinates, or None, as they are; InputError for anything else."""
    if value is None or isinstance(value, AbstractCoordinates):
        return value
    raise InputError(f"coordinates must be ewsg coordinates, not {shown(value)}: see the module ewsg.coordinates")


def _check(owner: str, name: str, value: Any, shape: tuple[int, ...], *, positive: bool = False) -> None:
    """Raise InputError unless a setting is an array of this shape with finite (and, if asked, positive) entries."""
    array = as_real(value)
    if array is None or array.shape != shape:
        found = getattr(array, "shape", type(value).__name__)
        raise InputError(f"{owner}: {name} must be an array of numbers of shape {shape}, not {found}")
    if isinstance(array, jax.core.Tracer):
        return
    if not np.all(np.isfinite(array)) or (positive and not np.all(array > 0)):
        raise InputError(f"{owner}: {name} must have {'positive, ' if positive else ''}finite entries only")
