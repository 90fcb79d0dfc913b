"""The methods of the paper by name: thin presets of an estimator and an integrator.

Example:
    >>> import ewsg
    >>> ewsg.recipes.sghmc(batch_size=10, step_size=1e-3, friction=5.0)
    Method(estimator=Uniform(...), integrator=Underdamped(...))
"""

from typing import NamedTuple

from ._types import Schedule
from .estimators import AbstractEstimator, Exponential, Full, Uniform
from .integrators import AbstractIntegrator, Overdamped, Underdamped


class Method(NamedTuple):
    """An estimator and an integrator: `ewsg.sample(target, method, ...)` takes it in their place."""

    estimator: AbstractEstimator
    integrator: AbstractIntegrator


def full_gradient(step_size: float | Schedule, friction: float, temperature: float = 1.0) -> Method:
    """Underdamped Langevin with the full gradient: the paper's FG."""
    return Method(Full(), Underdamped(step_size, friction, temperature))


def sgld(batch_size: int, step_size: float | Schedule, temperature: float = 1.0) -> Method:
    """Stochastic gradient Langevin dynamics (Welling and Teh 2011)."""
    return Method(Uniform(batch_size), Overdamped(step_size, temperature))


def sghmc(batch_size: int, step_size: float | Schedule, friction: float, temperature: float = 1.0) -> Method:
    """SGHMC as the paper uses it: underdamped Langevin, uniform minibatches, no noise estimate (B̂ = 0)."""
    return Method(Uniform(batch_size), Underdamped(step_size, friction, temperature))


def ewsg(
    batch_size: int,
    step_size: float | Schedule,
    friction: float,
    chain_length: int = 1,
    temperature: float = 1.0,
) -> Method:
    """The paper's method, Alg. 1."""
    return Method(Exponential(batch_size, chain_length), Underdamped(step_size, friction, temperature))


def ewsg_overdamped(
    batch_size: int,
    step_size: float | Schedule,
    chain_length: int = 1,
    x: str = "zero",
    temperature: float = 1.0,
) -> Method:
    """EWSG for overdamped Langevin, App. E."""
    return Method(Exponential(batch_size, chain_length, x=x), Overdamped(step_size, temperature))
