"""Theorem 3: the mean squared error of a time average, and its three terms."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from .._core.component import check_count, check_positive
from .._core.types import Position
from ..errors import InputError
from ..result.run import Run
from .slope import as_covariance

_BOOTSTRAP = 400
_COLLINEAR = 1e-6


class SquaredErrors(NamedTuple):
    """The error of the running time average φ̂_K at several times T = K·h, over independent chains.

    Attributes:
        time: T, shape (m,).
        mse: E(φ̂_K − φ̄)².
        standard_error: of `mse`.
        covariance: of `mse` between times, (m, m), for `fit_slope`: running averages are strongly correlated.
        bias: E φ̂_K − φ̄.
        bias_error: its standard error.
    """

    time: np.ndarray
    mse: np.ndarray
    standard_error: np.ndarray
    covariance: np.ndarray
    bias: np.ndarray
    bias_error: np.ndarray

    @property
    def squared_bias(self) -> np.ndarray:
        """An unbiased estimate of (E φ̂_K − φ̄)², the part of the MSE that stays as T → ∞."""
        return self.bias**2 - self.bias_error**2


class MseConstants(NamedTuple):
    """C₁, C₂, C₃ of the fitted model; NaN where the observations do not determine them."""

    dynamics: float
    subsampling: float
    bias: float


class MseTerms(NamedTuple):
    """The MSE of every observation, split in three.

    Attributes:
        dynamics: C₁/T, the variance of the continuous dynamics; shape (m,).
        subsampling: C₂ (h/T)·mean trace, the contribution of the gradients' noise.
        bias: C₃ h².
        constants: C₁, C₂, C₃.
        low: lower ends of their confidence intervals, which assume that the model is true.
        high: upper ends.
        misfit: χ² over its degrees of freedom: about 1 when the three terms describe independent observations
            within their errors, large when they do not.
    """

    dynamics: np.ndarray
    subsampling: np.ndarray
    bias: np.ndarray
    constants: MseConstants
    low: MseConstants
    high: MseConstants
    misfit: float


def squared_errors(
    run: Run, phi: Callable[[Position], Any] | None, exact: float, *, num_times: int = 32
) -> SquaredErrors:
    r"""The MSE of a run's time averages against the exact expectation of φ.

    E(φ̂_K − φ̄)²,   φ̂_K = (1/K) Σ_{k=1..K} φ(θ_k),   T = K·h                        (Thm 3, left-hand side)

    estimated over the run's chains. For the average in the theorem, run with discard=0 and thin=1. With
    `discard` time counts from there, and the initial transient is missing; with `thin` the average is over
    every thin-th step, which is the same as long as φ changes little in thin·h.

    Args:
        run: many independent chains, with a constant step size.
        phi: the test function, from one position to a scalar; None when the run kept its values already
            (`collect=phi`), which saves memory.
        exact: φ̄, its expectation under the posterior at the run's temperature.
        num_times: at how many times, spaced evenly on a logarithmic scale.
    """
    step_size = (run.settings.get("integrator_in_sum_units") or {}).get("step_size")
    if not isinstance(step_size, int | float):
        raise InputError("Theorem 3 is about a constant step size: run an integrator without a schedule")
    if not run.ok.all():
        failed = f"{int(np.sum(~run.ok))} of {len(run.ok)} chains failed"
        raise InputError(f"{failed}, and leaving them out would understate the error: lower the step size")
    values = jax.tree.map(jnp.asarray, run.draws)
    if phi is not None:
        values = jax.vmap(jax.vmap(phi))(values)
    if not hasattr(values, "shape"):
        raise InputError("phi must return one scalar for each draw (with phi=None the draws are its values)")
    return running_errors(values, exact, time_step=step_size * run.settings["thin"], num_times=num_times)


def running_errors(
    values: ArrayLike,
    exact: float,
    *,
    time_step: float = 1.0,
    num_times: int = 32,
) -> SquaredErrors:
    """The same from an array of φ, shape (chain, draw), with `time_step` = h·thin between draws."""
    values = np.asarray(values, np.float64)
    check_positive("running_errors", "time_step", time_step)
    check_count("running_errors", "num_times", num_times, 1)
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 1:
        shape = "(chain, draw) with two chains or more"
        raise InputError(f"the values of phi must have shape {shape}, not {values.shape}")
    num_chains, num_draws = values.shape
    counts = np.unique(np.geomspace(1, num_draws, num_times).round().astype(int))
    errors = np.cumsum(values, axis=1)[:, counts - 1] / counts - exact
    covariance = np.atleast_2d(np.cov(errors**2, rowvar=False)) / num_chains
    return SquaredErrors(
        time=time_step * counts,
        mse=np.mean(errors**2, axis=0),
        standard_error=np.sqrt(np.diag(covariance)),
        covariance=covariance,
        bias=np.mean(errors, axis=0),
        bias_error=np.std(errors, axis=0, ddof=1) / np.sqrt(num_chains),
    )


def mse_terms(
    time: ArrayLike,
    step_size: ArrayLike,
    mean_trace: ArrayLike,
    mse: ArrayLike,
    error: ArrayLike,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> MseTerms:
    r"""The three terms of Theorem 3, fitted to MSEs observed at several times and step sizes.

    MSE ≈ C₁·(1/T) + C₂·(h/T)·mean_k Tr cov(n∇V_{I_k} | F_k) + C₃·h²,   C₁, C₂, C₃ ≥ 0                 (eq. 5)

    by non-negative least squares, weighted by the errors; intervals by refitting to perturbed observations.

    What is identified: the theorem is an upper bound, and these are the constants of the equality that fits
    best, not the theorem's. C₁ needs several T; only rows with different h·trace separate C₂ from C₁; C₃ needs rows
    with T so large that h² shows.

    What is not identified: the dynamics itself has a contribution of order h/T (the paper's proof absorbs it in 1/T),
    which within one estimator, where the trace hardly varies, looks like the second term. Estimators with
    other traces would tell them apart, but do not have the same C₃: subsampling heats the chain in proportion
    to h·trace, and the square of that bias, of order h²·trace², sits in the third term. So fit one estimator
    and one batch size at a time, and compare the fits.

    Args:
        time: T, shape (m,); all arguments are broadcast to the shape of `mse`.
        step_size: h.
        mean_trace: the factor of the middle term, from `ewsg.theory.mean_trace`; all zero for full gradients,
            whose C₂ is NaN.
        mse: the observed errors.
        error: their standard errors (m,) or covariance (m, m), from `squared_errors`.
        confidence: of the intervals.
        seed: of the perturbations.
    """
    mse = np.atleast_1d(np.asarray(mse, np.float64))
    time, step_size, mean_trace = (
        np.broadcast_to(np.asarray(a, np.float64), mse.shape) for a in (time, step_size, mean_trace)
    )
    design = np.stack([1 / time, step_size * mean_trace / time, step_size**2], axis=1)
    covariance = as_covariance(error, len(mse))
    _check_design(design / np.sqrt(np.diag(covariance))[:, None])
    constants = _fit(design, mse, covariance)
    rng = np.random.default_rng(seed)
    perturbed = rng.multivariate_normal(mse, covariance, _BOOTSTRAP, check_valid="ignore", method="eigh")
    fits = np.array([_fit(design, sample, covariance) for sample in perturbed])
    low, high = np.quantile(fits, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    as_constants = [MseConstants(*map(float, values)) for values in (constants, low, high)]
    terms = design * constants
    residuals = (mse - np.nansum(terms, axis=1)) / np.sqrt(np.diag(covariance))
    freedom = max(1, len(mse) - np.count_nonzero(constants > 0))
    return MseTerms(*terms.T, *as_constants, misfit=float(np.sum(residuals**2) / freedom))


def _fit(design: np.ndarray, mse: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Non-negative least squares in units of the errors, columns of length one; NaN for columns of zeros."""
    errors = np.sqrt(np.diag(covariance))
    rows = design / errors[:, None]
    norms = np.linalg.norm(rows, axis=0)
    present = norms > 0
    constants = np.full(design.shape[1], np.nan)
    constants[present] = nnls(rows[:, present] / norms[present], mse / errors)[0] / norms[present]
    return constants


def _check_design(rows: np.ndarray) -> None:
    """Raise InputError if the observations cannot tell the terms apart."""
    norms = np.linalg.norm(rows, axis=0)
    rows = rows[:, norms > 0] / norms[norms > 0]
    if len(rows) < rows.shape[1] or np.linalg.svd(rows, compute_uv=False)[-1] < _COLLINEAR:
        raise InputError("these observations do not tell the terms of Theorem 3 apart: vary both T and h")
