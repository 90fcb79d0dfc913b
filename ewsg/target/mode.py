"""The mode of a posterior and the curvature there: the one search that every part of the package uses."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from .._core import process, pytree
from .._core.component import check_choice, check_count, check_positive
from .._core.types import Position, Scalar
from ..errors import InputError, shown
from ..interface import Cost
from . import subsampled
from .curvature import Spectrum, curvature as curvature
from .newton import newton
from .target import Target

_TOLERANCES = {"lbfgs": 1e-4, "newton": 1e-4, "subsamples": 0.2}
_STEPS_REMEMBERED = 10
_LINE_SEARCH_STEPS = 20
_IDLE_ITERATIONS = 3
_NEAR_SQUARED_SD = 1e-2


@dataclasses.dataclass(frozen=True, eq=False)
class Mode:
    """The result of `find_mode`.

    Attributes:
        position: the best point found, θ̂, in the structure and dtypes of `init`.
        log_density: −V(θ̂), up to the posterior's normalising constant.
        gradient_norm: ‖∇V(θ̂)‖, over all data.
        converged: whether θ̂ is within 0.1 posterior standard deviations of the mode, by the method's own estimate of
            the curvature (or as near as the rounding error of the log density allows), and is not a saddle. For
            "subsamples": within `tolerance`, by the same estimate.
        passes: the number of evaluations of the log density and its derivatives over all n data. For "subsamples",
            the cost divided by n, not a whole number.
        cost: the cost of the search in datum gradients.
        precision: ∇²V(θ̂), or an estimate of it, of shape (d, d), float64, in the order of
            `jax.flatten_util.ravel_pytree`. Negative eigenvalues are kept. None for "lbfgs".
        distance: √(∇Vᵀ H⁻¹ ∇V / d), with H the precision, its eigenvalues replaced by their absolute values, bounded
            from below: the distance to the mode in posterior standard deviations, as a root mean square over all
            directions that are not flat. None for "lbfgs".
        force: ∇(−V)(θ̂) over all data, of shape (d,), float64, in the same order.
        num_negative: the number of directions in which V curves down beyond rounding errors; if any, θ̂ is a saddle
            and not a mode. None for "lbfgs".
        num_flat: the number of directions in which V does not curve: eigenvalues of at most 1e-6 of the largest, each
            parameter in units of its own precision. Under a flat prior, collinear columns or a column with only one
            class make such directions; `converged` is about the others. None for "lbfgs".
    """

    position: Position
    log_density: float
    gradient_norm: float
    converged: bool
    passes: float
    cost: Cost
    precision: Float[np.ndarray, "d d"] | None = None
    distance: float | None = None
    force: Float[np.ndarray, " d"] | None = None
    num_negative: int | None = None
    num_flat: int | None = None


class _Found(NamedTuple):
    """The end of a search: V and −∇V at `position`, ∇Vᵀ H⁻¹ ∇V, and H if the method knows it."""

    position: Position
    value: Scalar
    force: Any
    decrement: Scalar
    passes: Any
    hessian: np.ndarray | None = None
    saddle: bool = False


def find_mode(
    target: Target,
    init: Position,
    *,
    method: str = "lbfgs",
    max_passes: int = 500,
    tolerance: float | None = None,
    seed: int = 0,
) -> Mode:
    r"""The mode of a posterior: θ̂ = argmax_θ −V(θ) = argmax_θ log π(θ) + Σ_i ℓ_i(θ).

    The search is deterministic (for "subsamples", given `seed`) and starts from one point, so it may end at a local
    mode. A search that stops early returns the best point it found, with `converged` False. A start where ∇V = 0, such
    as a network whose weights are all 0, is returned as it is by "lbfgs"; "newton" also looks at the curvature and
    reports a saddle.

    - method="lbfgs": limited-memory BFGS with a line search (optax). A pass costs n datum gradients.
    - method="newton": Newton's method with the Hessian H of V, its eigenvalues bounded from below, the step halved
      where it overshoots. For up to a few hundred parameters, and for posteriors with very different scales. A pass is
      counted as n (d + 1) datum gradients: one gradient and d products with H.
    - method="subsamples": quasi-Newton on growing subsamples, then alternately a pass over all data and a search on a
      surrogate. A pass gives the gradient and, if n ≥ 100 d, the empirical Fisher information
      F = Σ g_i g_iᵀ − (Σ g_i)(Σ g_i)ᵀ/n − ∇² log π in place of H; the surrogate, a sample of the data with a corrected
      gradient, gives the next point. For large n this takes a few passes in all, subsamples included. If n < 100 d all
      data are used from the start, and H is the Hessian over up to max(2000, 20 d) data, which costs 2 d datum
      gradients for each of them. For up to a few hundred parameters.

    Args:
        target: the posterior.
        init: where the search starts, a pytree of floating-point arrays. The mode of a target with constraints is that
            of its density over unconstrained positions, and `Mode.position` is one (`target.constrain`).
        method: "lbfgs", "newton" or "subsamples".
        max_passes: no iteration begins after this many passes over the data.
        tolerance: when the search ends. For "lbfgs" (default 1e-4), ‖∇V‖ ≤ tolerance · ‖∇V(init)‖; it then restarts
            from there while the mode is more than 0.1 posterior standard deviations away. For "newton" (1e-4),
            ∇Vᵀ H⁻¹ ∇V ≤ tolerance, the squared distance to the mode in posterior standard deviations. For "subsamples"
            (0.2), √(∇Vᵀ H⁻¹ ∇V / d) ≤ tolerance, the root mean square of that distance over directions.
        seed: of the subsamples; the other methods draw nothing at random.

    Returns:
        The mode, its log density, and the cost of finding it (`Mode`).

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.models.linear([[1.0], [2.0]], [3.0, 1.0], noise_scale=1.0, prior_precision=1.0)
        >>> found = ewsg.find_mode(target, jnp.zeros(1))
        >>> round(found.position.item(), 4), found.converged  # (XᵀX + I)⁻¹ Xᵀy = 5/6
        (0.8333, True)

    References:
        J. Nocedal and S. Wright, Numerical Optimization, 2nd edition (2006), algorithms 3.2 and 7.5.
        M. Jordan, J. Lee and Y. Yang, Communication-efficient distributed statistical inference, JASA 114 (2019).
    """
    process.check()
    if not isinstance(target, Target):
        raise InputError(f"find_mode(target, init) takes an ewsg.Target first, not {shown(target)}")
    return find_mode_from(target, target.starting_at(init), method, max_passes, tolerance, seed)


def find_mode_from(
    target: Target, init: Position, method: str = "lbfgs", max_passes: int = 500, tolerance: Any = None, seed: int = 0
) -> Mode:
    """`find_mode` from a position, unconstrained."""
    check_choice("find_mode", "method", method, tuple(_TOLERANCES))
    check_count("find_mode", "max_passes", max_passes, 1)
    tolerance = _TOLERANCES[method] if tolerance is None else tolerance
    check_positive("find_mode", "tolerance", tolerance)
    check_count("find_mode", "seed", seed, 0)
    init = pytree.as_arrays(init)
    target.check(init)
    with jax.numpy_dtype_promotion("standard"):  # inside optax, and in pytrees of several dtypes
        if method == "subsamples":
            mode = _from_subsamples(target, init, max_passes, tolerance, seed)
        else:
            mode = _from_all_data(target, init, method, max_passes, tolerance)
    if not np.isfinite(mode.log_density):
        raise InputError("the log density is not finite at init: start the search elsewhere")
    return mode


def _from_subsamples(target: Target, init: Position, max_passes: int, tolerance: float, seed: int) -> Mode:
    found = subsampled.search(target, init, max_passes, tolerance, seed)
    force = found.look.force + found.look.prior_force
    return Mode(
        position=jax.device_put(found.position),
        log_density=found.look.value + found.look.prior,
        gradient_norm=float(np.linalg.norm(force)),
        converged=found.converged,
        passes=found.cost / target.num_data,
        cost=Cost(found.cost),
        precision=found.precision,
        distance=found.distance,
        force=force,
        num_negative=found.num_negative,
        num_flat=found.num_flat,
    )


def _from_all_data(target: Target, init: Position, method: str, max_passes: int, tolerance: float) -> Mode:
    if method == "lbfgs":
        found = _lbfgs_searches(target, init, max_passes, tolerance)
    else:
        end = newton(target, init, max_passes, tolerance)
        at = end.expansion
        found = _Found(end.position, at.value, at.force, end.decrement, end.passes, at.hessian, end.saddle)
    passes, force = int(found.passes), np.asarray(found.force, np.float64)
    hessian = found.hessian
    spectrum = None if hessian is None or not np.all(np.isfinite(hessian)) else Spectrum(hessian)
    return Mode(
        position=found.position,
        log_density=-float(found.value),
        gradient_norm=float(np.linalg.norm(force)),
        converged=_is_near(found) and not found.saddle,
        passes=passes,
        cost=Cost(passes * target.num_data * (1 if method == "lbfgs" else 1 + pytree.size(init))),
        precision=hessian,
        distance=spectrum and spectrum.distance(force),
        force=force,
        num_negative=spectrum and spectrum.num_negative,
        num_flat=spectrum and spectrum.num_flat,
    )


def _is_near(found: _Found) -> bool:
    """Whether another step would be shorter than 0.1 standard deviations, or gain less than rounding errors."""
    rounding = float(jnp.finfo(pytree.wide_dtype(found.position)).eps) * abs(float(found.value))
    return abs(float(found.decrement)) <= max(_NEAR_SQUARED_SD, rounding)


def _lbfgs_searches(target: Target, start: Position, max_passes: int, tolerance: Scalar) -> _Found:
    """L-BFGS, restarted from where it ended: from a distant start, its tolerance is met far from the mode."""
    found = _lbfgs(target, start, max_passes, tolerance)
    passes = int(found.passes)
    while not _is_near(found) and passes < max_passes:
        again = _lbfgs(target, found.position, max_passes - passes, tolerance)
        passes += int(again.passes)
        if not float(again.value) < float(found.value):
            break
        found = again
    return found._replace(passes=passes)


class _Search(NamedTuple):
    """State of L-BFGS: the best point so far, V and ∇V there, evaluations made, and iterations without a gain."""

    position: Position
    value: Scalar
    gradient: Position
    optimizer: Any
    evaluations: Int[Array, ""]
    idle: Int[Array, ""]


@jax.jit
def _lbfgs(target: Target, start: Position, max_passes: Int[Array, ""] | int, tolerance: Scalar) -> _Found:
    """L-BFGS on V from `start` until ∇V is small, only rounding errors are left to gain, or max_passes is reached."""
    import optax

    @jax.custom_vjp
    def potential(position: Position) -> Scalar:
        return -target.log_density(position)

    potential.defvjp(
        lambda position: (potential(position), target.full_force(position)),
        lambda force, cotangent: (pytree.scaled(-cotangent, force),),
    )
    line_search = optax.scale_by_zoom_linesearch(_LINE_SEARCH_STEPS, initial_guess_strategy="one")
    optimizer = optax.lbfgs(memory_size=_STEPS_REMEMBERED, linesearch=line_search)

    def is_large(gradient: Position) -> Array:
        return jnp.asarray(_norm(gradient) > tolerance * _norm(first_gradient))

    def unfinished(now: _Search) -> Array:
        return is_large(now.gradient) & (now.evaluations < max_passes) & (now.idle < _IDLE_ITERATIONS)

    def improve(now: _Search) -> _Search:
        updates, state = optimizer.update(
            now.gradient, now.optimizer, now.position, value=now.value, grad=now.gradient, value_fn=potential
        )
        line = _last_part(state)
        old = now.position, now.value, now.gradient
        new = pytree.cast_like((optax.apply_updates(now.position, updates), line.value, line.grad), old)
        failed = ~((line.value < now.value) | (line.info.decrease_error <= 0))
        gained = (line.value < now.value) | (_norm(line.grad) < _norm(now.gradient))
        idle = jnp.where(failed, _IDLE_ITERATIONS, jnp.where(gained, 0, now.idle + 1))
        evaluations = now.evaluations + line.info.num_linesearch_steps.astype(jnp.int32)
        position, value, gradient = pytree.where(failed, old, new)
        return _Search(position, value, gradient, state, evaluations, idle)

    value, first_gradient = jax.value_and_grad(potential)(start)
    end = jax.lax.while_loop(
        unfinished, improve, _Search(start, value, first_gradient, optimizer.init(start), jnp.int32(1), jnp.int32(0))
    )
    step, _ = optax.scale_by_lbfgs(_STEPS_REMEMBERED).update(end.gradient, end.optimizer[0], end.position)
    force = -ravel_pytree(end.gradient)[0]
    return _Found(end.position, end.value, force, pytree.dot(end.gradient, step), end.evaluations)


def _norm(tree: Position) -> Scalar:
    return jnp.sqrt(pytree.dot(tree, tree))


def _last_part(chain_state: Any) -> Any:
    """The state of the line search, the last of optax's chained transformations."""
    return chain_state[-1]
