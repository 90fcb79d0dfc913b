"""Theorem 3 on the paper's Gaussian: time averages of θ², whose mean square error has three terms.

φ(θ) = ‖θ − c̄‖²/d, the variance, whose expectation is 1/n. The centres are those of draw 42, shifted to mean c̄ = 0.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.linalg

from .... import recipes
from ....problems.gaussian import centres, log_likelihood
from ....recipes import Method
from ....result.run import Run
from ....target.target import Target
from .shared import FIRST_DRAW, FRICTION, NUM_DATA

EXACT = 1 / NUM_DATA
_DIMENSION = 2
_MICRO = 1e-6
READING = [
    "The test function is φ(θ) = ‖θ − mean of the centres‖²/2, with expectation 1/50; one draw of the centres (42).",
    "Step sizes, times and numbers of chains are not given in the paper: ours are in the settings.",
    "Chains start in the posterior, so that 1/T is the variance of the dynamics and not its transient.",
]


def data() -> np.ndarray:
    """The centres, with mean zero."""
    drawn = centres(FIRST_DRAW).astype(np.float64)
    return (drawn - drawn.mean(0)).astype(np.float32)


def target() -> Target:
    """V(θ) = Σ ½‖θ − c_i‖² with Σ c_i = 0: the posterior is N(0, I/n)."""
    return Target(log_likelihood, None, data())


def start(key: jax.Array) -> jax.Array:
    """A draw from the posterior."""
    return jax.random.normal(key, (_DIMENSION,)) / np.float32(np.sqrt(NUM_DATA))


def methods(h: float) -> dict[str, Method]:
    """One datum per draw, as in the paper; paired takes two, as EWSG with M = 1 does."""
    return {
        "EWSG, M = 1": recipes.ewsg(1, h, FRICTION),
        "SGHMC": recipes.sghmc(1, h, FRICTION),
        "paired (ours)": recipes.paired(1, h, FRICTION),
    }


def phi(run: Run) -> np.ndarray:
    """φ of every draw, shape (chain, draw)."""
    return np.mean(np.square(np.asarray(run.good_draws(), np.float64)), axis=-1)


class Spread(NamedTuple):
    """Bias and variance of a time average, and their standard errors."""

    bias: float
    bias_error: float
    variance: float
    variance_error: float

    @property
    def mse(self) -> float:
        """E(φ̂ − φ̄)²."""
        return self.bias**2 + self.variance


def spread(values: np.ndarray) -> dict[str, float]:
    """The time average of each row, as one independent repeat."""
    errors = values.mean(1) - EXACT
    number = len(errors)
    centred = errors - errors.mean()
    variance = float(errors.var(ddof=1))
    fourth = float(np.mean(centred**4))
    found = Spread(
        float(errors.mean()),
        float(np.sqrt(variance / number)),
        variance,
        float(np.sqrt((fourth - variance**2) / number)),
    )
    return found._asdict()


def stationary(h: float, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A and S with S = A S Aᵀ + Q: Euler–Maruyama of one coordinate, gradient noise of the given variance."""
    a = np.array([[1.0, h], [-h * NUM_DATA, 1 - h * FRICTION]])
    q = np.diag([0.0, 2 * FRICTION * h + h**2 * noise])
    return a, scipy.linalg.solve_discrete_lyapunov(a, q)


def uniform_bias(h: float) -> float:
    """The exact bias of φ under SGHMC with one datum per step, as T → ∞."""
    variances = data().astype(np.float64).var(0) * NUM_DATA**2
    return float(np.mean([stationary(h, noise)[1][0, 0] for noise in variances])) - EXACT


def full_gradient(h: float, steps: int, thin: int = 1) -> Spread:
    """Bias and variance of φ̂ for the full gradient, from its stationary law: exact, θ being Gaussian.

    Var φ̂ = (2/d) (1/K²) Σ_{j,k ≤ K} C²_{(j−k)·thin},  C_m = (A^m S)_{θθ}
    """
    a, s = stationary(h)
    jump = np.linalg.matrix_power(a, thin)
    number = steps // thin
    covariances, current = np.empty(number), s
    for k in range(number):
        covariances[k] = current[0, 0]
        current = jump @ current
    weights = 2.0 * (number - np.arange(number))
    weights[0] = number
    variance = 2 / _DIMENSION * float(weights @ covariances**2) / number**2
    return Spread(float(s[0, 0]) - EXACT, 0.0, variance, 0.0)


def micro(values: Any) -> list[float]:
    """In units of 10⁻⁶, for axes."""
    return (np.asarray(values, np.float64) / _MICRO).tolist()
