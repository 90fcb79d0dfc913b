"""Theorem 1: the unbiased weights of least variance, by linear programming."""

from typing import NamedTuple

import jax
import numpy as np
from scipy.optimize import linprog

from .._core import pytree
from .._core.types import Position
from ..errors import InputError
from ..target.target import Target
from .gradients import datum_gradients

_ENTRIES_LIMIT = 5_000_000
_SUPPORT_TOLERANCE = 1e-9
_RANK_TOLERANCE = 1e-10
_CONSTANT_TOLERANCE = 1e-12
_BIAS_TOLERANCE = 1e-8


class OptimalWeights(NamedTuple):
    """The solution of Theorem 1.

    Attributes:
        probabilities: p*, shape (n,).
        support: how many of them are not zero; at most d + 1.
        trace: Tr E_{I~p*}[b_I b_Iᵀ], the least local variance that an unbiased choice of data can have.
    """

    probabilities: np.ndarray
    support: int
    trace: float


def optimal_weights(target: Target, position: Position) -> OptimalWeights:
    r"""The best unbiased probabilities for drawing one datum at θ.

    p* = argmin_p Σ_i p_i ‖b_i‖²  s.t.  Σ_i p_i b_i = 0, Σ_i p_i = 1, p ≥ 0;  b_i = n∇V_i − ∇V  (Thm 1, eq. 2)

    A vertex of this linear program has at most rank(b) + 1 ≤ d + 1 non-zeros, which is the theorem's claim
    (it asks for n > d; for n ≤ d + 1 it says nothing). HiGHS's dual simplex returns a vertex; this, and that the
    weights are unbiased, is checked. All n gradients are needed, so this is a yardstick and not a sampler.

    Args:
        target: the posterior; n·d is at most 5 million, about a minute's work.
        position: θ.

    Raises:
        InputError: n·d is too large.
        RuntimeError: HiGHS did not solve the program.

    Example:
        >>> import jax.numpy as jnp, ewsg, ewsg.theory
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.array([-3.0, -1.0, 1.0, 3.0]))
        >>> best = ewsg.theory.optimal_weights(target, jnp.array(0.0))
        >>> best.probabilities.round(6).tolist(), best.support  # the two data next to the mean
        ([0.0, 0.5, 0.5, 0.0], 2)
    """
    size = target.num_data * pytree.size(jax.tree.map(np.asarray, position))
    if size > _ENTRIES_LIMIT:
        raise InputError(f"n·d = {size:,} is above {_ENTRIES_LIMIT:,}, too large a program: take fewer data")
    return solve(datum_gradients(target, position))


def solve(gradients: np.ndarray) -> OptimalWeights:
    """The linear program for given n∇V_i, shape (n, d)."""
    errors = _errors(gradients)
    costs = np.sum(errors**2, axis=1)
    constraints = _constraints(errors)
    probabilities = _polish(_vertex(costs, constraints), constraints)
    support = int(np.sum(probabilities > 0))
    if support > len(constraints):
        limit = len(constraints)
        raise RuntimeError(f"HiGHS returned no vertex: {support} non-zeros under {limit} constraints")
    bias, scale = np.linalg.norm(probabilities @ errors), np.sqrt(np.mean(costs))
    if bias > _BIAS_TOLERANCE * scale:
        raise RuntimeError(f"HiGHS's weights are biased by {bias:.1e}, where gradients vary by {scale:.1e}")
    return OptimalWeights(probabilities, support, float(probabilities @ costs))


def _errors(gradients: np.ndarray) -> np.ndarray:
    """b_i, with exact zeros in coordinates where all gradients agree to rounding."""
    errors = gradients - np.mean(gradients, axis=0)
    constant = np.max(np.abs(errors), axis=0) <= _CONSTANT_TOLERANCE * np.max(np.abs(gradients), axis=0)
    return np.where(constant, 0.0, errors)


def _constraints(errors: np.ndarray) -> np.ndarray:
    """Rows A with A p = (0, .., 0, 1): Σ p_i b_i = 0 as rank(b) orthogonal rows, then Σ p_i = 1."""
    norms = np.linalg.norm(errors, axis=0)
    scaled = (errors / np.where(norms > 0, norms, 1.0)).T
    _, values, rows = np.linalg.svd(scaled, full_matrices=False)
    rank = int(np.sum(values > _RANK_TOLERANCE * max(values[0], 1e-300)))
    return np.vstack([np.sqrt(len(errors)) * rows[:rank], np.ones(len(errors))])


def _vertex(costs: np.ndarray, constraints: np.ndarray) -> np.ndarray:
    """An optimal vertex, by HiGHS's dual simplex."""
    unit = np.mean(costs) or 1.0
    right = _right_hand_side(constraints)
    result = linprog(costs / unit, A_eq=constraints, b_eq=right, method="highs-ds")
    if result.status != 0:
        raise RuntimeError(
            f"HiGHS did not solve the linear program of Theorem 1 (status {result.status}): {result.message}"
        )
    return result.x


def _polish(vertex: np.ndarray, constraints: np.ndarray) -> np.ndarray:
    """The same vertex to double precision: its constraints are solved again on its support."""
    support = np.flatnonzero(vertex > _SUPPORT_TOLERANCE)
    solved = np.linalg.lstsq(constraints[:, support], _right_hand_side(constraints), rcond=None)[0]
    values = solved if np.all(solved > 0) else vertex[support]
    probabilities = np.zeros_like(vertex)
    probabilities[support] = values / np.sum(values)
    return probabilities


def _right_hand_side(constraints: np.ndarray) -> np.ndarray:
    return np.append(np.zeros(len(constraints) - 1), 1.0)
