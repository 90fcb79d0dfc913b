"""Theorem 2: the covariance of one stochastic gradient, given θ, under uniform, EWSG and optimal weights."""

import math
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from .._core import pytree
from .._core.component import check_positive
from .._core.types import Position
from ..errors import InputError
from ..target.target import Target
from . import optimal
from .gradients import datum_gradients


class LocalTraces(NamedTuple):
    """Tr cov_{I~p}[n∇V_I | θ] under three choices of p, each about its own mean, and the bias of the second.

    Attributes:
        uniform: p_i = 1/n.
        exponential: EWSG's p_i ∝ exp(½‖x + n a_i‖²).
        optimal: Theorem 1's p, the least trace without bias; NaN when it was not asked for.
        bias: ‖E_p[n∇V_I] − ∇V‖ under EWSG; zero for the other two.
    """

    uniform: float
    exponential: float
    optimal: float
    bias: float


def momentum_x(momentum: Position, step_size: float, friction: float, temperature: float = 1.0) -> Position:
    """x = √h γ r/σ, the paper's recommended hyper-parameter; σ² = 2γT."""
    _check(step_size, friction, temperature)
    return pytree.scaled(math.sqrt(step_size * friction / (2 * temperature)), momentum)


def ewsg_weights(
    target: Target,
    position: Position,
    x: Position,
    step_size: float,
    friction: float,
    temperature: float = 1.0,
) -> np.ndarray:
    r"""EWSG's probability of each datum, by enumeration: the limit of its index chain for batches of one.

    p_i ∝ exp(½‖x + n a_i‖²),   a_i = √h ∇V_i/σ,   σ² = 2γT                                          (eq. 4)

    Args:
        target: the posterior.
        position: θ.
        x: the hyper-parameter, a pytree like θ; `momentum_x` gives the recommended one.
        step_size: h.
        friction: γ.
        temperature: T.

    Returns:
        p, shape (n,).
    """
    _check(step_size, friction, temperature)
    noise = math.sqrt(2 * friction * temperature)
    return weights_of(datum_gradients(target, position), _like(x, position), step_size, noise)


def local_covariance(target: Target, position: Position, weights: ArrayLike) -> np.ndarray:
    """The covariance of one stochastic gradient about its mean under the weights, as in Theorem 2.

    cov_{I~p}[n∇V_I | θ] = Σ_i p_i (n∇V_i − m)(n∇V_i − m)ᵀ,   m = Σ_i p_i n∇V_i

    Args:
        target: the posterior.
        position: θ.
        weights: p, shape (n,).

    Returns:
        d × d.
    """
    weights = np.asarray(weights, np.float64)
    normal = np.all(weights >= 0) and math.isclose(np.sum(weights), 1, rel_tol=1e-6)
    if weights.shape != (target.num_data,) or not normal:
        raise InputError(f"weights must be {target.num_data} probabilities that sum to one, one per datum")
    deviations = _deviations(datum_gradients(target, position), weights)
    return deviations.T @ (weights[:, None] * deviations)


def local_traces(
    target: Target,
    position: Position,
    momentum: Position,
    step_size: float,
    friction: float,
    temperature: float = 1.0,
    with_optimal: bool = True,
) -> LocalTraces:
    r"""The local variances that Theorem 2 compares, at one point (θ, r) of phase space.

    Δ = Tr cov_{I~p^E}[n∇V_I | θ] − Tr cov_{I~p^U}[n∇V_I | θ] = exponential − uniform,   x = √h γ r/σ  (Thm 2)

    Theorem 2 states E[Δ] < 0. Its proof takes the p_i as given before the gradients are drawn; EWSG's depend on them,
    and then Δ may have either sign: see `first_order_change`.

    Args:
        target: the posterior.
        position: θ.
        momentum: r, a pytree like θ.
        step_size: h.
        friction: γ.
        temperature: T.
        with_optimal: also solve Theorem 1's linear program.
    """
    gradients = datum_gradients(target, position)
    x = _like(momentum_x(momentum, step_size, friction, temperature), position)
    uniform = np.full(len(gradients), 1 / len(gradients))
    exponential = weights_of(gradients, x, step_size, math.sqrt(2 * friction * temperature))
    return LocalTraces(
        uniform=trace_of(gradients, uniform),
        exponential=trace_of(gradients, exponential),
        optimal=optimal.optimal_weights(target, position).trace if with_optimal else math.nan,
        bias=float(np.linalg.norm((exponential - uniform) @ gradients)),
    )


def first_order_change(
    target: Target,
    position: Position,
    momentum: Position,
    step_size: float,
    friction: float,
    temperature: float = 1.0,
) -> float:
    r"""Theorem 2's Δ to first order in h, in closed form.

    With G_i = n∇V_i, its uniform mean m = ∇V and the deviations e_i = G_i − m, over uniform i,

    Δ = (h/2σ²) · ( Var ‖e‖²  +  2 (γ r + m)·E[e ‖e‖²] ) + O(h²)

    (tilt the uniform law by exp((h/2σ²)‖γ r + G_i‖²) and differentiate). The first term is never negative:
    EWSG prefers long gradients, and these spread more. So Δ > 0 for gradients with symmetric errors, unless
    all errors are equally long; Δ < 0 needs skewness against γ r + ∇V, or a tilt so strong (h large) that few
    data are left.

    Args:
        target: the posterior.
        position: θ.
        momentum: r, a pytree like θ.
        step_size: h.
        friction: γ.
        temperature: T; σ² = 2γT.
    """
    _check(step_size, friction, temperature)
    gradients = datum_gradients(target, position)
    mean = np.mean(gradients, axis=0)
    errors = gradients - mean
    squares = np.sum(errors**2, axis=1)
    skewness = np.mean(errors * squares[:, None], axis=0)
    drift = friction * _like(momentum, position) + mean
    return float(step_size / (4 * friction * temperature) * (np.var(squares) + 2 * drift @ skewness))


def weights_of(gradients: np.ndarray, x: np.ndarray, step_size: float, noise: float) -> np.ndarray:
    """p_i ∝ exp(½‖x + (√h/σ) n∇V_i‖²) for given n∇V_i, shape (n, d), and σ; without overflow."""
    scaled = math.sqrt(step_size) / noise * gradients
    return softmax(0.5 * np.sum(scaled**2, axis=1) + scaled @ x)


def trace_of(gradients: np.ndarray, weights: np.ndarray) -> float:
    """Tr cov_{I~p}[n∇V_I]."""
    return float(weights @ np.sum(_deviations(gradients, weights) ** 2, axis=1))


def _deviations(gradients: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return gradients - weights @ gradients


def _like(vector: Position, position: Position) -> np.ndarray:
    """A momentum or x as a flat vector; raise InputError unless it has the shape of the position."""
    shapes = [jax.tree.map(np.shape, tree) for tree in (vector, position)]
    if shapes[0] != shapes[1]:
        raise InputError(f"x and the momentum must have the shape of the position, {shapes[1]}, not {shapes[0]}")
    return pytree.host_rows(vector, leading=0)


def _check(step_size: float, friction: float, temperature: float) -> None:
    for name, value in (("step_size", step_size), ("friction", friction), ("temperature", temperature)):
        check_positive("theory", name, value)
