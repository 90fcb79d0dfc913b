"""The last appendix: the mean of SGHMC converges as (I + Ah)^k, and that of EWSG stays O(h) close."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from .._core.component import check_count, check_positive
from .._core.types import Batch, Position
from ..errors import InputError
from ..target.likelihood import AbstractLikelihood
from ..target.target import Target


class QuadraticTerm(AbstractLikelihood):
    """−V_i(θ) = −(θ − μ_i)²/(2n), for a scalar θ."""

    num_data: int = eqx.field(static=True)

    def __call__(self, params: Position, datum: Batch) -> Float[Array, ""]:
        return -((params - datum) ** 2) / (2 * self.num_data)


def quadratic_target(mu: ArrayLike) -> Target:
    r"""The appendix's potential.

    V_i(θ) = (θ − μ_i)²/(2n) with Σ_i μ_i = 0, hence V(θ) = θ²/2 + const and n∇V_i = θ − μ_i.

    Args:
        mu: the n constants, with sum zero.
    """
    mu = np.asarray(mu)
    if mu.ndim != 1 or mu.size == 0:
        raise InputError(f"mu must be a vector of constants, not an array of shape {mu.shape}")
    if not abs(np.sum(mu, dtype=np.float64)) <= 1e-5 * np.sum(np.abs(mu), dtype=np.float64):
        raise InputError(f"mu must sum to zero, not {np.sum(mu):g}: subtract its mean")
    return Target(QuadraticTerm(mu.size), None, mu)


def mean_matrix(friction: float) -> np.ndarray:
    """A = [[0, 1], [−1, −γ]]: the drift of (E θ, E r) under V(θ) = θ²/2."""
    check_positive("mean_matrix", "friction", friction)
    return np.array([[0.0, 1.0], [-1.0, -friction]])


def mean_trajectory(x0: ArrayLike, step_size: float, friction: float, steps: int) -> np.ndarray:
    r"""The means of SGHMC on the appendix's potential: exact for uniform subsampling, within O(h) for EWSG.

    x_k = (E θ_k, E r_k) = (I + Ah)^k x_0,   k = 0..steps

    Args:
        x0: (E θ_0, E r_0).
        step_size: h.
        friction: γ.
        steps: the last k.

    Returns:
        Shape (steps + 1, 2).
    """
    check_positive("mean_trajectory", "step_size", step_size)
    check_count("mean_trajectory", "steps", steps, 0)
    start = np.asarray(x0, np.float64)
    if start.shape != (2,):
        raise InputError(f"x0 must be the pair of means of θ and r, not an array of shape {start.shape}")
    transition = np.eye(2) + step_size * mean_matrix(friction)
    path = [start]
    for _ in range(steps):
        path.append(transition @ path[-1])
    return np.stack(path)


def contraction(step_size: float, friction: float) -> float:
    """The spectral radius of I + Ah, below 1 when the mean converges.

    ρ(I + Ah) = √(1 − hγ + h²) for 0 < γ < 2, below 1 while h < γ; from real eigenvalues for γ ≥ 2.
    """
    check_positive("contraction", "step_size", step_size)
    eigenvalues = np.linalg.eigvals(np.eye(2) + step_size * mean_matrix(friction))
    return float(np.max(np.abs(eigenvalues)))
