"""The methods of the paper by name: thin presets of an estimator and an integrator.

Example:
    >>> import ewsg
    >>> ewsg.recipes.sghmc(batch_size=10, step_size=1e-3, friction=5.0)
    Method(estimator=Uniform(...), integrator=Underdamped(...))
"""

from ._core.types import Position, Schedule
from .estimators import (
    SVRG,
    Clustered,
    ControlVariate,
    CovarianceFriction,
    Exponential,
    Full,
    Paired,
    Uniform,
)
from .integrators import BAOAB, Overdamped, Preconditioned, Thermostat, Underdamped
from .kernels import AbstractBound, FlyMC
from .sampler import Method as Method


def full_gradient(step_size: float | Schedule, friction: float, temperature: float = 1.0) -> Method:
    """Underdamped Langevin with the full gradient: the paper's FG."""
    return Method(Full(), Underdamped(step_size, friction, temperature))


def sgld(batch_size: int, step_size: float | Schedule, temperature: float = 1.0) -> Method:
    """Stochastic gradient Langevin dynamics (Welling and Teh 2011)."""
    return Method(Uniform(batch_size), Overdamped(step_size, temperature))


def psgld(batch_size: int, step_size: float | Schedule, temperature: float = 1.0) -> Method:
    """Preconditioned SGLD (Li et al. 2016), λ = 1e−5 and α = 0.99 as in the paper."""
    return Method(Uniform(batch_size), Preconditioned(step_size, temperature=temperature))


def sgnht(batch_size: int, step_size: float | Schedule, friction: float, temperature: float = 1.0) -> Method:
    """The stochastic gradient Nosé–Hoover thermostat (Ding et al. 2014)."""
    return Method(Uniform(batch_size), Thermostat(step_size, friction, temperature))


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


def ewsg_vr(
    batch_size: int,
    step_size: float | Schedule,
    friction: float,
    passes_per_calibration: int = 1,
    chain_length: int = 1,
    temperature: float = 1.0,
    bound: float | None = None,
) -> Method:
    """EWSG-VR, Alg. 2, as printed; `bound=1` keeps the extra friction within Euler–Maruyama's limit of stability."""
    inner = Exponential(batch_size, chain_length)
    estimator = CovarianceFriction(inner, passes=passes_per_calibration, bound=bound)
    return Method(estimator, Underdamped(step_size, friction, temperature))


def ewsg_overdamped(
    batch_size: int,
    step_size: float | Schedule,
    chain_length: int = 1,
    x: str = "zero",
    temperature: float = 1.0,
) -> Method:
    """EWSG for overdamped Langevin, App. E."""
    return Method(Exponential(batch_size, chain_length, x=x), Overdamped(step_size, temperature))


def paired(
    batch_size: int, step_size: float | Schedule, friction: float, rule: str = "weight", temperature: float = 1.0
) -> Method:
    """Paired selection, ours: 2·batch_size data per step, under BAOAB."""
    return Method(Paired(batch_size, rule), BAOAB(step_size, friction, temperature))


def svrg_ld(batch_size: int, step_size: float | Schedule, period: int, temperature: float = 1.0) -> Method:
    """SVRG-LD (Dubey et al. 2016): overdamped, with a control variate anchored anew every `period` steps."""
    return Method(SVRG(Uniform(batch_size), period), Overdamped(step_size, temperature))


def cp_sghmc(
    num_clusters: int,
    draws_per_cluster: int,
    step_size: float | Schedule,
    friction: float,
    temperature: float = 1.0,
) -> Method:
    """CP-SGHMC (Fu and Zhang 2017): minibatches stratified by k-means clusters of the data."""
    return Method(Clustered(num_clusters, draws_per_cluster), Underdamped(step_size, friction, temperature))


def sgld_cv(batch_size: int, step_size: float | Schedule, start: Position, temperature: float = 1.0) -> Method:
    """SGLD with control variates at the mode (Baker et al. 2019), searched from `start`."""
    return Method(ControlVariate(Uniform(batch_size), start=start), Overdamped(step_size, temperature))


def flymc(bound: AbstractBound, step_size: float, resample: float | int = 0.1, temperature: float = 1.0) -> FlyMC:
    """Firefly Monte Carlo (Maclaurin and Adams 2015): exact, given a lower bound of the likelihood."""
    return FlyMC(bound, step_size, resample, temperature)
