"""The likely cause of a chain's failure, from the step size and the curvature at its start."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import _random
from .._core import pytree
from .._core.types import Indices, Key, Position
from ..estimators.covariance_friction import CovarianceFriction
from ..sampler import AbstractSampler
from ..target.target import Target
from .remedy import PLAN

_PROBED_DATA = 10_000
_LATER = (
    "Later the chain diverged, hot and farther away than divergence_limit= allows, or reached a point where the "
    "density is not finite: lower the step size, start nearer the mode, raise divergence_limit= if the chain only "
    f"started far away, check log_likelihood and log_prior far from the mode, or {PLAN}."
)
_UNKNOWN = (
    "The chain diverged, hot and farther away than divergence_limit= allows, or reached a point where the density is "
    "not finite. Lower the step size, if the method has one, check log_likelihood and log_prior far from the mode, or "
    f"{PLAN}."
)
_UNBOUNDED = (
    "Where the gradient noise is large, CovarianceFriction without a bound can remove more than the whole momentum in "
    "one step. Give it bound=1.0, or lower the step size."
)


def likely_cause(sampler: AbstractSampler, position: Position) -> str:
    """A sentence or two about a chain that diverged or became NaN or infinite: the cause, and what to do.

    Args:
        sampler: the sampler that was run.
        position: the start of the chain.
    """
    try:
        return _diagnosed(sampler, position)
    except Exception:  # an explanation must not hide the failure that it explains
        return _UNKNOWN


def _diagnosed(sampler: AbstractSampler, position: Position) -> str:
    frictions = _covariance_frictions(getattr(sampler, "estimator", None))
    if frictions:  # the limits below are for the integrator's friction alone
        bounded = all(friction.bound is not None for friction in frictions)
        return _UNKNOWN if bounded else _UNBOUNDED
    target = sampler.target
    start = jax.tree.map(jnp.asarray, position)
    count = target.block(start, min(target.num_data, _PROBED_DATA))
    indices = jnp.asarray(np.linspace(0, target.num_data - 1, count).round(), jnp.int32)
    largest = float(_curvature(target, start, indices, jax.random.key(0)))
    limit = sampler.stability(largest)
    if limit is None or not largest > 0:
        return _UNKNOWN
    excess, condition = float(limit[0]), limit[1]
    if np.isfinite(excess) and excess > 1:
        return (
            f"Likely cause: the step size is {excess:.2g} times the stability limit at the start "
            f"({condition}, and λ_max is about {largest:.3g}). Lower it by at least that factor, or {PLAN}."
        )
    return (
        f"The step size is within the stability limit at the start ({condition}, and λ_max is about {largest:.3g}). "
        f"{_LATER}"
    )


def _covariance_frictions(estimator: Any) -> list[CovarianceFriction]:
    """All `CovarianceFriction`s in a stack of wrapped estimators."""
    inner = getattr(estimator, "inner", None)
    found = [] if inner is None else _covariance_frictions(inner)
    return [estimator, *found] if isinstance(estimator, CovarianceFriction) else found


@jax.jit
def _curvature(target: Target, position: Position, indices: Indices, key: Key) -> Array:
    """The largest eigenvalue of the Hessian of V at `position`, by power iteration on the given data."""

    def improve(_, direction: Position) -> Position:
        product = jax.jvp(lambda p: target.force(p, indices), (position,), (direction,))[1]
        return pytree.scaled(1 / jnp.sqrt(pytree.dot(product, product)), product)

    direction = jax.lax.fori_loop(0, 30, improve, _random.normal_like(key, position))
    product = jax.jvp(lambda p: target.force(p, indices), (position,), (direction,))[1]
    return -pytree.dot(direction, product) / pytree.dot(direction, direction)
