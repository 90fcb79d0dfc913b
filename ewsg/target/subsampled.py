"""The mode of a posterior in a few passes over the data: first subsamples, then all data and a surrogate in turn."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._core.types import Position
from .account import Account
from .curvature import Spectrum, curvature, hessian_product, lanczos
from .looks import Look, Sample
from .quasi_newton import Objective, descend, is_lower
from .surrogate import Surrogate
from .target import Target

_TALL_DATA_PER_PARAMETER = 100
_FIRST_DATA, _FIRST_DATA_PER_PARAMETER, _GROWTH_FACTOR = 1000, 20, 8
_FIRST_LOOKS, _LATER_LOOKS, _LAST_LOOKS = 100, 10, 2
_SUBSAMPLE_NEAR_SD = 0.3
_IDLE_ROUNDS = 4
_PROGRESS_RATIO = 0.9
_FEWEST_LOOKS = 2
_HESSIAN_DATA, _MOST_HESSIANS = 2000, 4
_LANCZOS_DATA, _LANCZOS_DATA_PER_PARAMETER, _LANCZOS_STEPS = 500, 10, 6
_NEGATIVE_EIGENVALUE = 0.1


class Found(NamedTuple):
    """The end of the search: the last look at all data, the precision matrix there, and the total cost."""

    position: Position
    look: Look
    precision: Float[np.ndarray, "d d"]
    distance: float
    converged: bool
    cost: int
    num_negative: int
    num_flat: int


def search(target: Target, start: Position, max_passes: int, tolerance: float, seed: int) -> Found:
    """The mode, from `start`; see `find_mode`."""
    account = Account(target, start, max_passes, tolerance, np.random.default_rng(seed))
    if target.num_data >= _TALL_DATA_PER_PARAMETER * account.dimension:
        return _of_tall_data(account)
    return _of_few_data(account)


def _found(account: Account, look: Look, precision: np.ndarray, spectrum: Spectrum, extra_cost: int = 0) -> Found:
    """The result; it has converged if it is near, with no negative eigenvalue, and not flat in every direction."""
    distance = spectrum.distance(look.force + look.prior_force)
    near = distance <= account.tolerance
    position = account.everything.position(look.theta)
    converged = bool(near and not spectrum.num_negative and spectrum.num_flat < account.dimension)
    return Found(
        position,
        look,
        precision,
        distance,
        converged,
        account.cost + extra_cost,
        spectrum.num_negative,
        spectrum.num_flat,
    )


def _of_tall_data(account: Account) -> Found:
    """Subsamples, then rounds, each a pass over all data and a search for the mode of a surrogate."""
    theta, root = _from_subsamples(account)
    everything = Objective(account.everything)
    here = account.everything.look(theta, root)
    if not here.is_finite and account.passes_left:
        here = account.everything.look(account.init, root)
    if not here.is_finite:
        return _found(account, here, np.eye(account.dimension), Spectrum(np.eye(account.dimension)))
    surrogate = None if root is None else Surrogate(account)
    best, idle = np.inf, 0
    while True:
        precision = _fisher(here, account.num_data)
        spectrum = Spectrum(precision)
        found = _found(account, here, precision, spectrum)
        idle = 0 if found.distance < _PROGRESS_RATIO * best else idle + 1
        best = min(best, found.distance)
        if found.converged or idle == _IDLE_ROUNDS or account.passes_left == 0:
            return _with_saddles(account, found)
        if surrogate is not None:
            surrogate.judge(found.distance)
        if surrogate is None or surrogate.size > account.num_data // 2:
            most = min(account.passes_left, _LATER_LOOKS)
            here = descend(everything, [here], most, account.tolerance / 2)[-1]
            continue
        if account.looks_left(surrogate.size) < _FEWEST_LOOKS:
            return _with_saddles(account, found)
        theta = surrogate.mode(here, found.distance)
        there = account.everything.look(theta, spectrum.root)
        if there.is_finite and is_lower(everything, here, there, spectrum):
            here = there
        else:
            surrogate.enlarge()


def _with_saddles(account: Account, found: Found) -> Found:
    """The same, with the number of negative eigenvalues of the Hessian, which the Fisher information cannot show.

    They are those of Rᵀ∇²V R, with R Rᵀ the inverse of the precision in all directions that are not flat. A few steps
    of Lanczos' method on a subsample find them, or some of them.
    """
    root, dimension = Spectrum(found.precision).root, account.dimension
    size = min(account.num_data, max(_LANCZOS_DATA, _LANCZOS_DATA_PER_PARAMETER * dimension))
    indices = np.sort(account.random.choice(account.num_data, size, replace=False))
    sample = Sample(account.target, account.start, indices)
    scale, prior, cost = account.num_data / size, found.look.prior_precision, 0

    def product(z: np.ndarray) -> np.ndarray:
        nonlocal cost
        cost += 2 * size
        direction = root @ z
        along = sample.theta(hessian_product(sample.target, found.position, sample.position(direction)))
        return root.T @ (scale * (along - prior @ direction) + prior @ direction)

    start = account.random.normal(size=root.shape[1])
    negative = int(np.sum(lanczos(product, start, min(start.size, _LANCZOS_STEPS)) < -_NEGATIVE_EIGENVALUE))
    return found._replace(
        num_negative=max(found.num_negative, negative),
        converged=found.converged and not negative,
        cost=found.cost + cost,
    )


def _fisher(look: Look, num_data: int) -> Float[np.ndarray, "d d"]:
    """Σ g_i g_iᵀ − (Σ g_i)(Σ g_i)ᵀ/n − ∇² log π, with g_i = ∇ℓ_i for n data."""
    return look.products - np.outer(look.force, look.force) / num_data + look.prior_precision


def _from_subsamples(account: Account) -> tuple[np.ndarray, np.ndarray | None]:
    """The point where quasi-Newton on growing uniform subsamples ends, and a root of the inverse Fisher information.

    The log-likelihood of a subsample is not scaled up to n, so that with few data the prior keeps the mode from running
    away. The root is None if there are too few data for a subsample.
    """
    theta, root, num_data = account.init, None, account.num_data
    size = max(_FIRST_DATA, _FIRST_DATA_PER_PARAMETER * account.dimension)
    while size <= num_data // _GROWTH_FACTOR:
        sample = account.sample(np.sort(account.random.choice(num_data, size, replace=False)))
        most = _LAST_LOOKS if size > num_data // _GROWTH_FACTOR**2 else _LATER_LOOKS
        most = _FIRST_LOOKS if root is None else most
        starts = (sample.look(at) for at in (theta, account.init) if account.looks_left(size))
        first = next((look for look in starts if look.is_finite), None)
        if first is None:
            break
        objective = Objective(sample)
        if objective.spectrum(first).num_flat:  # far from the mode, a few data may dominate the metric
            start = dataclasses.replace(objective, diagonal=True)
            first = descend(start, [first], min(most, account.looks_left(size)), _SUBSAMPLE_NEAR_SD)[-1]
        last = descend(objective, [first], min(most, account.looks_left(size)), _SUBSAMPLE_NEAR_SD)[-1]
        theta, root = last.theta, objective.spectrum(last).root
        size *= _GROWTH_FACTOR
    return theta, root


def _of_few_data(account: Account) -> Found:
    """Quasi-Newton over all data in the metric of the Fisher information, then in that of the Hessian at its end."""
    path, dimension, extra = [account.everything.look(account.init)], account.dimension, 0
    if not path[-1].is_finite:
        return _found(account, path[-1], np.eye(dimension), Spectrum(np.eye(dimension)))
    objective = Objective(account.everything)
    for hessians in itertools.count(1):
        looks = account.everything.looks
        path = descend(objective, path, account.passes_left, account.tolerance / 2)
        stuck = hessians > 1 and account.everything.looks == looks
        precision, cost = _hessian(account, path[-1])
        extra += cost
        found = _found(account, path[-1], precision, Spectrum(precision, path[-1].prior_precision), extra)
        if found.converged and account.passes_left:
            rises = _rises_beyond(objective, found)
            return found._replace(converged=rises, cost=account.cost + extra)
        if found.converged or stuck or hessians == _MOST_HESSIANS or account.passes_left == 0:
            return found
        objective = dataclasses.replace(objective, metric=precision)
    raise AssertionError


def _rises_beyond(objective: Objective, found: Found) -> bool:
    """Whether V rises one standard deviation beyond the point found, in the direction of the next step.

    If the classes can be separated and the prior is flat, V falls forever while ∇Vᵀ H⁻¹ ∇V goes to 0.
    """
    spectrum, force = Spectrum(found.precision), found.look.force + found.look.prior_force
    length = spectrum.length(force)
    if length == 0:
        return True
    beyond = objective.sample.look(found.look.theta + spectrum.solve(force) / length)
    return not objective.value(beyond) <= objective.value(found.look)


def _hessian(account: Account, at: Look) -> tuple[np.ndarray, int]:
    """∇²V from up to max(2000, 20 d) data, scaled to all n; and its cost, 2 d datum gradients for each of them."""
    n, d = account.num_data, account.dimension
    size = min(n, max(_HESSIAN_DATA, _FIRST_DATA_PER_PARAMETER * d))
    some = None if size == n else np.sort(account.random.choice(n, size, replace=False))
    sample = Sample(account.target, account.start, some)
    of_sample = np.asarray(curvature(sample.target, sample.position(at.theta)), np.float64)
    hessian = n / size * (of_sample - at.prior_precision) + at.prior_precision
    return hessian, 2 * d * size
