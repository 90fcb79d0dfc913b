"""Newton's method for the mode of a posterior."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from .._core.types import Position
from .curvature import curvature
from .target import Target

_SMALLEST_EIGENVALUE_RATIO = 1e-6
_VALUE_NOISE_RATIO = 1e-6
_SMALLEST_STEP_SCALE = 1e-6


class Expansion(NamedTuple):
    """V, −∇V and ∇²V at a point, in double precision on the host."""

    value: float
    force: np.ndarray
    hessian: np.ndarray


class End(NamedTuple):
    """The end of Newton's method: V, −∇V and ∇²V there, ∇Vᵀ H⁻¹ ∇V, and whether V curves down in some direction."""

    position: Position
    expansion: Expansion
    decrement: float
    passes: int
    saddle: bool


def newton(target: Target, start: Position, max_passes: int, tolerance: float) -> End:
    """Newton's method on V from `start`, its linear algebra in double precision on the host."""
    flat, unravel = ravel_pytree(start)
    scale, here, passes = 1.0, _expand(target, start), 1
    step, decrement, saddle = _newton_step(here)
    while decrement > tolerance and passes < max_passes and scale > _SMALLEST_STEP_SCALE:
        candidate = flat + jnp.asarray(scale * step, flat.dtype)
        there = _expand(target, unravel(candidate))
        passes += 1
        if there.value <= here.value + _VALUE_NOISE_RATIO * abs(here.value) and _is_finite(there):
            flat, here, scale = candidate, there, 1.0
            step, decrement, saddle = _newton_step(here)
        else:
            scale /= 2
    return End(unravel(flat), here, decrement, passes, saddle)


def _newton_step(at: Expansion) -> tuple[np.ndarray, float, bool]:
    """H⁻¹ ∇(−V), eigenvalues of H bounded from below; its product with ∇(−V); whether V curves down in a direction."""
    if not _is_finite(at):
        return at.force, float("nan"), False
    eigenvalues, vectors = np.linalg.eigh(at.hessian)
    floor = _SMALLEST_EIGENVALUE_RATIO * (np.max(np.abs(eigenvalues)) or 1.0)
    step = vectors @ ((at.force @ vectors) / np.maximum(eigenvalues, floor))
    return step, float(at.force @ step), bool(eigenvalues[0] < -floor)


def _is_finite(at: Expansion) -> bool:
    return bool(np.isfinite(at.value) and np.all(np.isfinite(at.force)) and np.all(np.isfinite(at.hessian)))


def _expand(target: Target, position: Position) -> Expansion:
    value, force, hessian = (np.asarray(part, np.float64) for part in _derivatives(target, position))
    return Expansion(-float(value), force, hessian)


@jax.jit
def _derivatives(target: Target, position: Position) -> tuple[Array, Array, Array]:
    """−V, its gradient and minus its Hessian."""
    value, force = jax.value_and_grad(target.log_density)(position)
    return value, ravel_pytree(force)[0], curvature(target, position)
