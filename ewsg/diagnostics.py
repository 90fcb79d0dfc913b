"""How far draws are from the posterior: without a reference (KSD) and against one (moments, Gaussian KL).

R-hat and ESS compare chains with each other, so they cannot see the bias that all of them share: the heat of
subsampling, the error of the step size. The diagnostics here compare them with the target.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from . import _random
from ._core import pytree
from ._core.component import check_count, check_positive
from ._core.types import Key, Position
from .errors import InputError, shown
from .result.run import Run
from .target.target import Target

_BATCHED_DRAWS = 64


def ksd(
    draws: Position | Run,
    target: Target,
    *,
    temperature: float | None = None,
    bandwidth: float = 1.0,
    exponent: float = -0.5,
    batch_size: int | None = None,
    block: int = 1024,
    seed: int = 0,
) -> float:
    r"""Kernel Stein discrepancy between draws and a target, by the inverse multi-quadric kernel.

    With k(x, y) = (c² + ‖x − y‖²)^β and the score s(θ) = ∇ log p(θ) = force(θ)/T of p ∝ exp(−V/T),

        k_p(x, y) = s(x)·s(y) k + s(x)·∇_y k + s(y)·∇_x k + ∇_x·∇_y k
        KSD² = (1/m²) Σ_{i,j = 1..m} k_p(θ_i, θ_j)

    The result is KSD, the **square root** of this V-statistic (diagonal included), over the m draws of all
    chains. It tends to 0 as m → ∞ only if the draws come from p, and needs neither the normalising constant
    nor a reference. For independent exact draws E KSD² = E k_p(θ, θ)/m, so KSD falls as m^−½. It depends on
    the units of θ: compare samplers on one target with one c, of the order of the posterior's sd. In many
    dimensions it loses power.

    **With `batch_size`** each draw gets a minibatch of its own, in two independent halves with scores a_i and
    b_i; the score ŝ_i of the whole batch is unbiased for s(θ_i). k_p is affine in either score, so the pairs
    i ≠ j stay unbiased. On the diagonal ‖ŝ_i‖² exceeds ‖s(θ_i)‖² by Tr Cov(ŝ_i) on average: a bias of c^2β Tr
    Cov/m, which with Cov ~ n²/b would swamp KSD². There a_i·b_i is used instead, and the sum is unbiased for
    the full-data KSD² of the same draws. The price: it is no longer a sum of squares. When it comes out
    negative, 0 is returned; and as the root is concave, the mean of KSD over seeds lies below the full-data
    KSD. Average squares, not roots, and raise `batch_size` until seeds agree.

    Work: m full gradients (or m·b datum gradients), then O(m² d) on the host in float64, block by block;
    memory O(block² + m·d).

    Args:
        draws: pytree like the parameters, leading axes (chain, draw); or a `Run`, whose good chains are used. Of a
            target with constraints θ is the unconstrained position.
        target: the posterior.
        temperature: T; by default that of the run, or 1.
        bandwidth: c > 0.
        exponent: β in (−1, 0), where KSD detects non-convergence in any dimension.
        batch_size: data per draw, drawn with replacement; None takes all n.
        block: rows and columns of pairs at a time; the result does not depend on it.
        seed: of the minibatches.

    References:
        J. Gorham and L. Mackey, Measuring sample quality with kernels, ICML 2017 (sections 3.1 and 3.3).
        J. Gorham, A. Raj and L. Mackey, Stochastic Stein discrepancies, NeurIPS 2020.

    Example:
        >>> import jax, jax.numpy as jnp, ewsg
        >>> data = jnp.array([-1.0, 0.0, 0.0, 1.0])
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2 / 4, None, data)  # posterior N(0, 1)
        >>> draws = jax.random.normal(jax.random.key(0), (4, 500))
        >>> ewsg.diagnostics.ksd(draws, target) < 0.06 < ewsg.diagnostics.ksd(1.3 * draws, target)
        True
    """
    if not isinstance(target, Target):
        raise InputError(f"ksd: target must be an ewsg target, not {shown(target)}: write ksd(draws, target)")
    if temperature is None:
        temperature = draws.temperature if isinstance(draws, Run) else 1.0
    check_positive("ksd", "temperature", temperature)
    check_positive("ksd", "bandwidth", bandwidth)
    check_count("ksd", "block", block, 1)
    if not -1 < exponent < 0:
        raise InputError(f"ksd: exponent must lie between -1 and 0, not {exponent!r}")
    positions = target.positions_of(_stacked(draws)[0], leading=1)
    places = pytree.host_rows(positions)
    target.check(jax.tree.map(lambda leaf: leaf[0], positions))
    scores, squares = _scores(target, positions, temperature, batch_size, seed)
    dimension = places.shape[1]
    diagonal = bandwidth ** (2 * exponent) * (squares - 2 * exponent * dimension / bandwidth**2)
    pairs = _pair_sum(places - places.mean(0), scores, bandwidth, exponent, block)
    return math.sqrt(max(0.0, math.fsum(diagonal) + pairs) / len(places) ** 2)


class MomentErrors(NamedTuple):
    """Errors of the posterior's moments, over all scalar parameters.

    Attributes:
        mean_max: the largest |mean − reference mean| / reference sd.
        mean_rms: its root mean square.
        sd_ratio_worst: sd / reference sd where it is farthest from 1 (0.5 and 2 are equally far).
        sd_ratio_median: its median.
    """

    mean_max: float
    mean_rms: float
    sd_ratio_worst: float
    sd_ratio_median: float


def moment_errors(draws: Position | Run, mean: Any, sd: Any) -> MomentErrors:
    """(mean(draws) − mean)/sd and sd(draws)/sd, summarised over the coordinates.

    Exact draws err too: for m effective draws mean_rms ≈ 1/√m, and the sd ratios are 1 ± 1/√(2m).

    Args:
        draws: as in `ksd`; all chains are pooled.
        mean: of the reference, flat in the order of `ravel_pytree`, or a pytree like the parameters.
        sd: likewise.
    """
    places = _stacked(draws)[1]
    mean, sd = _vector("mean", mean, places.shape[1]), _vector("sd", sd, places.shape[1])
    if not np.all(sd > 0):
        raise InputError("moment_errors: every reference sd must be positive")
    errors = (places.mean(0) - mean) / sd
    ratios = places.std(0, ddof=1) / sd
    with np.errstate(divide="ignore"):
        worst = ratios[np.argmax(np.abs(np.log(ratios)))]
    return MomentErrors(
        mean_max=float(np.max(np.abs(errors))),
        mean_rms=float(np.sqrt(np.mean(errors**2))),
        sd_ratio_worst=float(worst),
        sd_ratio_median=float(np.median(ratios)),
    )


def moments(draws: Position | Run) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """The sample mean and (unbiased) covariance, all chains pooled, in float64.

    Args:
        draws: as in `ksd`; the scalars come in the order of `jax.flatten_util.ravel_pytree`.
    """
    places = _stacked(draws)[1]
    mean = places.mean(0)
    centred = places - mean
    return mean, centred.T @ centred / (len(places) - 1)


def gaussian_kl(reference_mean: Any, reference_cov: Any, draws: Position | Run) -> float:
    r"""KL(N(μ₀, Σ₀) ‖ N(μ₁, Σ₁)), the reference's moments first, the draws' second.

        KL = ½ [tr(Σ₁⁻¹Σ₀) − d + (μ₁ − μ₀)ᵀ Σ₁⁻¹ (μ₁ − μ₀) + ln det Σ₁ − ln det Σ₀]

    It is zero when mean and covariance agree, whatever the shapes; m independent exact draws of a Gaussian give about
    d(d + 3)/(4m).

    Args:
        reference_mean: μ₀, flat in the order of `ravel_pytree`, or a pytree like the parameters.
        reference_cov: Σ₀, of shape (d, d) (a number for a single parameter).
        draws: as in `ksd`; all chains are pooled.
    """
    mean, cov = moments(draws)
    dimension = len(mean)
    difference = mean - _vector("reference_mean", reference_mean, dimension)
    reference_cov = np.atleast_2d(np.asarray(reference_cov, np.float64))
    if reference_cov.shape != cov.shape:
        raise InputError(f"reference_cov has shape {reference_cov.shape}, the draws need {cov.shape}")
    root = _cholesky(cov, "sample covariance", "take more draws than parameters, none of them constant")
    _cholesky(reference_cov, "reference covariance", "it must be positive definite")
    whitened = np.linalg.solve(root, np.linalg.solve(root, reference_cov).T)
    ratios = np.linalg.eigvalsh((whitened + whitened.T) / 2) - 1
    shift = np.linalg.solve(root, difference)
    return float(np.sum(ratios - np.log1p(ratios)) + shift @ shift) / 2


def flatten(draws: Position) -> Float[np.ndarray, "chain draw d"]:
    """Draws as one float64 array on the host, the scalars in the order of `ravel_pytree`."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
    if not leaves or any(leaf.ndim < 2 or leaf.shape[:2] != leaves[0].shape[:2] for leaf in leaves):
        raise InputError("draws must be a pytree of arrays that share their leading axes (chain, draw)")
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
        raise InputError("draws must be floating-point: pass the draws of parameters")
    return pytree.host_rows(leaves, leading=2)


def _stacked(draws: Position | Run) -> tuple[Position, Float[np.ndarray, "m d"]]:
    """The draws with chains pooled into one leading axis: as a pytree, and as rows."""
    draws = draws.good_draws() if isinstance(draws, Run) else draws
    places = flatten(draws)
    places = places.reshape(-1, places.shape[2])
    if len(places) < 2:
        raise InputError(f"at least 2 draws are needed, and there are {len(places)}")
    if not np.all(np.isfinite(places)):
        raise InputError("draws has NaN or infinite entries (a failed chain): pass the Run or good_draws()")
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), draws), places


def _vector(name: str, value: Any, dimension: int) -> Float[np.ndarray, " d"]:
    """A flat vector, or a pytree like the parameters, as a flat float64 vector of the right length."""
    vector = pytree.host_rows(value, leading=0)
    if len(vector) != dimension:
        raise InputError(f"{name} has {len(vector)} entries, the draws have {dimension} parameters")
    return vector


def _cholesky(cov: Float[np.ndarray, "d d"], name: str, remedy: str) -> Float[np.ndarray, "d d"]:
    """L with L Lᵀ = cov; InputError if cov is singular up to rounding, in units of its own diagonal."""
    scale = np.sqrt(np.maximum(np.diag(cov), 0.0))
    if np.all(scale > 0):
        correlation = cov / np.outer(scale, scale)
        if np.linalg.eigvalsh(correlation)[0] > 100 * len(cov) * np.finfo(np.float64).eps:
            return scale[:, None] * np.linalg.cholesky(correlation)
    raise InputError(f"the {name} is singular: {remedy}")


def _scores(
    target: Target, positions: Position, temperature: float, batch_size: int | None, seed: int
) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
    """The score at every draw, and ‖score‖²: both exact, or both unbiased by a minibatch."""
    if batch_size is None:
        parts, shares = [_full_forces(target, positions)], [1]
    else:
        check_count("ksd", "batch_size", batch_size, 2)
        half = batch_size // 2
        parts = _half_forces(target, positions, _random.checked_key(seed), half, batch_size - half)
        shares = [half, batch_size - half]
    rows = [pytree.host_rows(part) / temperature for part in parts]
    scores = np.average(rows, axis=0, weights=shares)
    finite = np.isfinite(scores).all(1)
    if not finite.all():
        raise InputError(f"the gradient of the log density is not finite at draw {np.argmin(finite)}")
    return scores, np.sum(rows[0] * rows[-1], axis=1)


@jax.jit
def _full_forces(target: Target, positions: Position) -> Position:
    """The full force at each of the stacked positions."""
    return jax.lax.map(target.full_force, positions)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _half_forces(target: Target, positions: Position, key: Key, *sizes: int) -> list[Position]:
    """Two independent stochastic forces at each of the stacked positions, from batches of the given sizes."""

    def at(number_position):
        number, position = number_position
        indices = _random.indices(_random.fold(key, number), target.num_data, sum(sizes))
        return [target.force(position, part) for part in (indices[: sizes[0]], indices[sizes[0] :])]

    numbers = jnp.arange(jax.tree.leaves(positions)[0].shape[0])
    return jax.lax.map(at, (numbers, positions), batch_size=_BATCHED_DRAWS)


def _pair_sum(
    x: Float[np.ndarray, "m d"], s: Float[np.ndarray, "m d"], bandwidth: float, exponent: float, block: int
) -> float:
    """Σ_{i≠j} k_p(x_i, x_j), by blocks on and above the diagonal."""
    rows = [slice(start, start + block) for start in range(0, len(x), block)]
    sums = []
    for k, one in enumerate(rows):
        for other in rows[k:]:
            values = _stein_kernel(x[one], s[one], x[other], s[other], bandwidth, exponent)
            if one is other:
                np.fill_diagonal(values, 0.0)
            sums.append((1 if one is other else 2) * float(values.sum()))
    return math.fsum(sums)


def _stein_kernel(
    x: Float[np.ndarray, "a d"],
    s: Float[np.ndarray, "a d"],
    y: Float[np.ndarray, "b d"],
    t: Float[np.ndarray, "b d"],
    c: float,
    beta: float,
) -> Float[np.ndarray, "a b"]:
    """k_p for all pairs of rows, x with scores s and y with scores t.

    With r = x − y and q = c² + ‖r‖²: k_p = q^β [s·t − (2β/q) ((s − t)·r + d + 2(β − 1) ‖r‖²/q)].
    """
    square = np.maximum(np.sum(x * x, 1)[:, None] + np.sum(y * y, 1)[None, :] - 2 * (x @ y.T), 0.0)
    drift = np.sum(s * x, 1)[:, None] + np.sum(t * y, 1)[None, :] - s @ y.T - x @ t.T
    q = c**2 + square
    return q**beta * (s @ t.T - 2 * beta / q * (drift + x.shape[1] + 2 * (beta - 1) * square / q))
