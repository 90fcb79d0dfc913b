"""The mode of a posterior, and the curvature there: one search for every part of the package that needs either."""

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
from .target import Target

_METHODS = ("lbfgs", "newton")
_STEPS_REMEMBERED = 10
_LINE_SEARCH_STEPS = 20
_IDLE_ITERATIONS = 3
_SMALLEST_EIGENVALUE = 1e-6
_VALUE_NOISE = 1e-6
_SMALLEST_NEWTON_STEP = 1e-6
_CURVATURE_BYTES = 256 * 2**20
_NEAR_SQUARED_SD = 1e-2


@dataclasses.dataclass(frozen=True, eq=False)
class Mode:
    """The result of `find_mode`.

    Attributes:
        position: the best point found, θ̂, in the structure and dtypes of `init`.
        log_density: −V(θ̂), up to the posterior's normalising constant.
        gradient_norm: ‖∇V(θ̂)‖, over all data.
        converged: whether the mode is within 0.1 posterior standard deviations, by the method's own estimate of the
            curvature (or as near as the rounding error of the log density allows), and is not a saddle.
        passes: evaluations of the log density and its derivatives, each over all n data.
        cost: the same in datum gradients.
    """

    position: Position
    log_density: float
    gradient_norm: float
    converged: bool
    passes: int
    cost: Cost


class _Found(NamedTuple):
    """Where a method ended: V and ∇V there, ∇Vᵀ H⁻¹ ∇V, and whether H is known not to be positive definite."""

    position: Position
    value: Scalar
    gradient_norm: Scalar
    decrement: Scalar
    passes: Any
    saddle: bool = False


def find_mode(
    target: Target, init: Position, *, method: str = "lbfgs", max_passes: int = 500, tolerance: float = 1e-4
) -> Mode:
    r"""The mode of a posterior: θ̂ = argmax_θ −V(θ) = argmax_θ log π(θ) + Σ_i ℓ_i(θ).

    Deterministic, over all data, from one starting point: a mode that is not the only one may be a local one. A search
    that stops early returns the best point it has, with `converged` False. A start where ∇V = 0 already, such as a
    network whose weights are all 0, is returned as it is by "lbfgs"; "newton" looks at the curvature, and says so.

    - method="lbfgs": limited-memory BFGS with a line search (optax). A pass costs n datum gradients.
    - method="newton": Newton's method with the Hessian H of V, its eigenvalues bounded from below, the step halved
      where it overshoots. For up to some hundreds of parameters d, and for posteriors of very different scales. A pass
      costs n (d + 1) datum gradients: H is d derivatives of the gradient.

    Args:
        target: the posterior.
        init: where the search starts, a pytree of floating-point arrays.
        method: "lbfgs" or "newton".
        max_passes: no iteration begins once so many passes over the data have been made.
        tolerance: where the search ends: for "lbfgs", ‖∇V‖ ≤ tolerance · ‖∇V(init)‖ (it goes on, from where it is, as
            long as the mode is farther than 0.1 posterior standard deviations); for "newton", ∇Vᵀ H⁻¹ ∇V ≤ tolerance,
            the squared distance to the mode in posterior standard deviations.

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
    """
    process.check()
    if not isinstance(target, Target):
        raise InputError(f"find_mode(target, init) takes an ewsg.Target first, not {shown(target)}")
    check_choice("find_mode", "method", method, _METHODS)
    check_count("find_mode", "max_passes", max_passes, 1)
    check_positive("find_mode", "tolerance", tolerance)
    init = pytree.as_arrays(init)
    target.check(init)
    search = _lbfgs_searches if method == "lbfgs" else _newton
    with jax.numpy_dtype_promotion("standard"):  # inside optax, and in pytrees of several dtypes
        found = search(target, init, max_passes, tolerance)
    if not np.isfinite(float(found.value)):
        raise InputError("the log density is not finite at init: start the search elsewhere")
    passes = int(found.passes)
    return Mode(
        position=found.position,
        log_density=-float(found.value),
        gradient_norm=float(found.gradient_norm),
        converged=_is_near(found) and not found.saddle,
        passes=passes,
        cost=Cost(passes * target.num_data * (1 if method == "lbfgs" else 1 + pytree.size(init))),
    )


def _is_near(found: _Found) -> bool:
    """Whether another step would gain less than a tenth of a standard deviation, or than rounding errors."""
    rounding = float(jnp.finfo(pytree.wide_dtype(found.position)).eps) * abs(float(found.value))
    return abs(float(found.decrement)) <= max(_NEAR_SQUARED_SD, rounding)


@jax.jit
def curvature(target: Target, position: Position) -> Float[Array, "d d"]:
    """∇²V(θ), the Hessian of the potential over all data, in the order of `jax.flatten_util.ravel_pytree`.

    Its inverse at the mode is the covariance of Laplace's approximation. Costs n d datum gradients; the d columns are
    computed as many at a time as fit into 256 MiB.
    """
    flat, unravel = ravel_pytree(position)
    rows = target.block(position, target.num_data) * target.datum_bytes(position)

    def force(theta: Float[Array, " d"]) -> Float[Array, " d"]:
        return ravel_pytree(target.full_force(unravel(theta)))[0]

    def column(direction: Float[Array, " d"]) -> Float[Array, " d"]:
        return jax.jvp(force, (flat,), (direction,))[1]

    together = max(1, min(flat.size, _CURVATURE_BYTES // rows))
    hessian = -jax.lax.map(column, jnp.eye(flat.size, dtype=flat.dtype), batch_size=together)
    return (hessian + hessian.T) / 2


def _lbfgs_searches(target: Target, start: Position, max_passes: int, tolerance: Scalar) -> _Found:
    """L-BFGS, and again from where it ended: from a far start, its tolerance is reached long before the mode is."""
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
    """State of L-BFGS: the best point so far, V and ∇V there, and the number of evaluations."""

    position: Position
    value: Scalar
    gradient: Position
    optimizer: Any
    evaluations: Int[Array, ""]
    idle: Int[Array, ""]


@jax.jit
def _lbfgs(target: Target, start: Position, max_passes: Int[Array, ""] | int, tolerance: Scalar) -> _Found:
    """L-BFGS on V from `start`, until ∇V is small, only rounding errors are left to gain, or max_passes."""
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
    return _Found(end.position, end.value, _norm(end.gradient), pytree.dot(end.gradient, step), end.evaluations)


def _norm(tree: Position) -> Scalar:
    return jnp.sqrt(pytree.dot(tree, tree))


def _last_part(chain_state: Any) -> Any:
    """The state of the line search, which ends the chain of transformations."""
    return chain_state[-1]


class _Expansion(NamedTuple):
    """V, −∇V and ∇²V at a point, in double precision on the host."""

    value: float
    force: np.ndarray
    hessian: np.ndarray


def _newton(target: Target, start: Position, max_passes: int, tolerance: Scalar) -> _Found:
    """Newton's method on V from `start`; the linear algebra is done in double precision on the host."""
    flat, unravel = ravel_pytree(start)
    scale, here, passes = 1.0, _expand(target, start), 1
    step, decrement, saddle = _newton_step(here)
    while decrement > tolerance and passes < max_passes and scale > _SMALLEST_NEWTON_STEP:
        candidate = flat + jnp.asarray(scale * step, flat.dtype)
        there = _expand(target, unravel(candidate))
        passes += 1
        if there.value <= here.value + _VALUE_NOISE * abs(here.value) and _is_finite(there):
            flat, here, scale = candidate, there, 1.0
            step, decrement, saddle = _newton_step(here)
        else:
            scale /= 2
    norm = float(np.linalg.norm(here.force))
    return _Found(unravel(flat), here.value, norm, decrement, passes, saddle)


def _newton_step(at: _Expansion) -> tuple[np.ndarray, float, bool]:
    """H⁻¹ ∇(−V) with eigenvalues of H bounded from below; its product with ∇(−V); whether V curves down somewhere."""
    if not _is_finite(at):
        return at.force, float("nan"), False
    eigenvalues, vectors = np.linalg.eigh(at.hessian)
    floor = _SMALLEST_EIGENVALUE * (np.max(np.abs(eigenvalues)) or 1.0)
    step = vectors @ ((at.force @ vectors) / np.maximum(eigenvalues, floor))
    return step, float(at.force @ step), bool(eigenvalues[0] < -floor)


def _is_finite(at: _Expansion) -> bool:
    return bool(np.isfinite(at.value) and np.all(np.isfinite(at.force)) and np.all(np.isfinite(at.hessian)))


def _expand(target: Target, position: Position) -> _Expansion:
    value, force, hessian = (np.asarray(part, np.float64) for part in _derivatives(target, position))
    return _Expansion(-float(value), force, hessian)


@jax.jit
def _derivatives(target: Target, position: Position) -> tuple[Array, Array, Array]:
    """−V, its gradient and minus its Hessian."""
    value, force = jax.value_and_grad(target.log_density)(position)
    return value, ravel_pytree(force)[0], curvature(target, position)
