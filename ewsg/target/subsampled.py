"""The mode of a posterior in a few passes over the data: subsamples first, then all data and a surrogate in turn."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._core.types import Position
from .curvature import Spectrum, curvature, hessian_product, lanczos
from .looks import Look, Sample
from .quasi_newton import Objective, descend, is_lower
from .target import Target

_TALL = 100
_FIRST_SIZE, _FIRST_PER_PARAMETER, _GROWTH = 1000, 20, 8
_FIRST_LOOKS, _LATER_LOOKS, _LAST_LOOKS = 100, 10, 2
_LEVEL_NEAR = 0.3
_SURROGATE_SHARE, _SURROGATE_LOOKS, _SURROGATE_NEAR = 32, 30, (0.05, 0.03)
_LARGEST_SHARE, _FEWEST_LOOKS = 4, 2
_UNIFORM_SHARE = 0.5
_POOR = 0.25
_IDLE_ROUNDS = 4
_PROGRESS = 0.9
_HESSIAN_SIZE, _HESSIANS = 2000, 4
_LANCZOS_SIZE, _LANCZOS_PER_PARAMETER, _LANCZOS_STEPS = 500, 10, 6
_NEGATIVE = 0.1
_ONE_COORDINATE, _LOOSE = 2.5, 0.01


class Found(NamedTuple):
    """Where the search ended: the last look at all data there, the precision matrix, and the cost of it all."""

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
    account = _Account(target, start, max_passes, tolerance, np.random.default_rng(seed))
    if target.num_data >= _TALL * account.dimension:
        return _of_tall_data(account)
    return _of_few_data(account)


class _Account:
    """A search's settings, and the samples it looks at."""

    def __init__(self, target: Target, start: Position, max_passes: int, tolerance: float, random: np.random.Generator):
        self.target, self.start, self.tolerance, self.random = target, start, tolerance, random
        self.everything = Sample(target, start)
        self.init = self.everything.theta(start)
        self.dimension, self.num_data = self.init.size, target.num_data
        self._samples = [self.everything]
        self._most = max_passes * target.num_data

    def sample(self, indices: np.ndarray, weights: np.ndarray | None = None) -> Sample:
        """Some of the data."""
        self._samples.append(Sample(self.target, self.start, indices, weights))
        return self._samples[-1]

    @property
    def cost(self) -> int:
        """Datum gradients so far."""
        return sum(sample.cost for sample in self._samples)

    @property
    def passes_left(self) -> int:
        """How many passes over all data may still be made."""
        return max(0, self._most - self.cost) // self.num_data

    def looks_left(self, size: int) -> int:
        """How many looks at so many data may still be taken, with one pass over all data after them."""
        return max(0, self._most - self.num_data - self.cost) // size

    def found(self, look: Look, precision: np.ndarray, spectrum: Spectrum, extra_cost: int = 0) -> Found:
        """The result, and whether it is one: near in all, no coordinate far off, no negative eigenvalue."""
        distance, farthest = _distances(look, precision, spectrum)
        near = distance <= self.tolerance and farthest <= _ONE_COORDINATE * self.tolerance
        position = self.everything.position(look.theta)
        converged = bool(near and not spectrum.num_negative and spectrum.num_flat < self.dimension)
        return Found(
            position,
            look,
            precision,
            distance,
            converged,
            self.cost + extra_cost,
            spectrum.num_negative,
            spectrum.num_flat,
        )


def _distances(look: Look, precision: np.ndarray, spectrum: Spectrum) -> tuple[float, float]:
    """To the mode in posterior standard deviations: over all directions, and the largest |∂_j V| / √H_jj.

    The second is over coordinates of which the prior says little. It sees one that runs off to infinity, such as that
    of a column in which there is only one class.
    """
    gradient = look.force + look.prior_force
    loose = np.diag(look.prior_precision) <= _LOOSE * np.diag(precision)
    return spectrum.distance(gradient), float(np.max(loose * np.abs(gradient) / spectrum.scale))


def _of_tall_data(account: _Account) -> Found:
    """Subsamples, then rounds: a pass over all data, and the mode of a surrogate from a sample of them."""
    theta, root = _from_subsamples(account)
    everything = Objective(account.everything)
    here = account.everything.look(theta, root)
    if not here.is_finite and account.passes_left:
        here = account.everything.look(account.init, root)
    if not here.is_finite:
        return account.found(here, np.eye(account.dimension), Spectrum(np.eye(account.dimension)))
    surrogate = None if root is None else _Surrogate(account)
    best, idle = np.inf, 0
    while True:
        precision = _fisher(here, account.num_data)
        spectrum = Spectrum(precision)
        found = account.found(here, precision, spectrum)
        idle = 0 if found.distance < _PROGRESS * best else idle + 1
        best = min(best, found.distance)
        if found.converged or idle == _IDLE_ROUNDS or account.passes_left == 0:
            return _without_saddle(account, found)
        if surrogate is not None:
            surrogate.judge(found.distance)
        if surrogate is None or surrogate.size > account.num_data // 2:
            most = min(account.passes_left, _LATER_LOOKS)
            here = descend(everything, [here], most, account.tolerance / 2)[-1]
            continue
        if account.looks_left(surrogate.size) < _FEWEST_LOOKS:
            return _without_saddle(account, found)
        theta = surrogate.mode(here, found.distance)
        there = account.everything.look(theta, spectrum.root)
        if there.is_finite and is_lower(everything, here, there, spectrum):
            here = there
        else:
            surrogate.enlarge()


def _without_saddle(account: _Account, found: Found) -> Found:
    """The same, with the negative eigenvalues of the Hessian, which the Fisher information cannot have.

    Those of Rᵀ∇²V R, with R Rᵀ the inverse of the precision, by a few steps of Lanczos' method over a subsample: at
    least as many as it finds are there.
    """
    spectrum, dimension = Spectrum(found.precision), account.dimension
    size = min(account.num_data, max(_LANCZOS_SIZE, _LANCZOS_PER_PARAMETER * dimension))
    indices = np.sort(account.random.choice(account.num_data, size, replace=False))
    sample = Sample(account.target, account.start, indices)
    root, scale, prior = spectrum.root, account.num_data / size, found.look.prior_precision

    def product(z: np.ndarray) -> np.ndarray:
        direction = sample.position(root @ z)
        along = sample.theta(hessian_product(sample.target, found.position, direction))
        return root.T @ (scale * (along - prior @ (root @ z)) + prior @ (root @ z))

    steps = min(dimension, _LANCZOS_STEPS)
    eigenvalues = lanczos(product, account.random.normal(size=dimension), steps)
    negative = int(np.sum(eigenvalues < -_NEGATIVE))
    return found._replace(
        num_negative=max(found.num_negative, negative),
        converged=found.converged and not negative,
        cost=found.cost + 2 * steps * size,
    )


def _fisher(look: Look, num_data: int) -> Float[np.ndarray, "d d"]:
    """Σ g gᵀ − (Σg)(Σg)ᵀ/n − ∇² log π, with g the gradients of the log-likelihoods of n data."""
    return look.products - np.outer(look.force, look.force) / num_data + look.prior_precision


def _from_subsamples(account: _Account) -> tuple[np.ndarray, np.ndarray | None]:
    """Where quasi-Newton on growing uniform subsamples ends, and a root of the inverse Fisher information there.

    The log-likelihood of a subsample is not scaled up to n: with few data the prior is to keep the mode from running
    away. None in place of the root, if the data are too few for a subsample.
    """
    theta, root, num_data = account.init, None, account.num_data
    size = max(_FIRST_SIZE, _FIRST_PER_PARAMETER * account.dimension)
    while size <= num_data // _GROWTH:
        sample = account.sample(np.sort(account.random.choice(num_data, size, replace=False)))
        most = _LAST_LOOKS if size > num_data // _GROWTH**2 else _LATER_LOOKS
        most = _FIRST_LOOKS if root is None else most
        starts = (sample.look(at) for at in (theta, account.init) if account.looks_left(size))
        first = next((look for look in starts if look.is_finite), None)
        if first is None:
            break
        objective = Objective(sample)
        if objective.spectrum(first).num_flat:  # far away, where few data outweigh all others
            start = dataclasses.replace(objective, diagonal=True)
            first = descend(start, [first], min(most, account.looks_left(size)), _LEVEL_NEAR)[-1]
        last = descend(objective, [first], min(most, account.looks_left(size)), _LEVEL_NEAR)[-1]
        theta, root = last.theta, objective.spectrum(last).root
        size *= _GROWTH
    return theta, root


class _Surrogate:
    """Ṽ(θ) = −Σ_{i∈S} w_i ℓ_i(θ) − log π(θ) + (∇V(a) − ∇V_S(a))·θ: V to first order at a, then like a sample S.

    With S drawn by the size of the gradients at a, so that rare classes and rare features are in it: inclusion
    probabilities π_i ∝ ½ + ½ n ρ_i/Σρ with ρ_i = ‖Rᵀ∇ℓ_i(a)‖, weights w_i = 1/π_i.

    References:
        M. Jordan, J. Lee and Y. Yang, Communication-efficient distributed statistical inference, JASA 114 (2019).
    """

    def __init__(self, account: _Account):
        n, least = account.num_data, max(_FIRST_SIZE, _FIRST_PER_PARAMETER * account.dimension)
        self.size = min(n // _LARGEST_SHARE, max(n // _SURROGATE_SHARE, _GROWTH * least))
        self._data = _SURROGATE_LOOKS * self.size
        self._account = account
        self._sample: Sample | None = None
        self._path: list[Look] = []
        self._before, self._solved = np.inf, False

    def judge(self, distance: float) -> None:
        """Forget a sample whose mode, though found, has not brought that of all data much nearer."""
        if self._sample is not None and self._solved and distance > _POOR * self._before:
            self.enlarge()
        self._before = distance

    def enlarge(self) -> None:
        """Forget the sample; the next one is twice as large."""
        self._sample = None
        self.size *= 2

    def mode(self, here: Look, distance: float) -> np.ndarray:
        """θ where the surrogate around `here` is least."""
        if self._sample is None:
            scores = np.ones(self._account.num_data) if here.scores is None else here.scores
            indices, weights = draw(self._account.random, scores, self.size)
            self._sample, self._path = self._account.sample(indices, weights), []
        if not self._path or not np.array_equal(self._path[-1].theta, here.theta):
            self._path = [*self._path, self._sample.look(here.theta)]
        inside = self._path[-1]
        slope = inside.force + inside.prior_force - here.force - here.prior_force
        near = max(_SURROGATE_NEAR[0], _SURROGATE_NEAR[1] * distance)
        most = min(self._data // self.size, self._account.looks_left(self.size))
        looks = self._sample.looks
        self._path = descend(Objective(self._sample, slope), self._path, most, near)
        self._solved = self._sample.looks - looks < most
        return self._path[-1].theta


def draw(random: np.random.Generator, scores: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """`size` different row numbers, by Pareto sampling with half of the probability uniform; and their weights 1/π_i.

    References:
        B. Rosén, On sampling with probability proportional to size, J. Statistical Planning and Inference 62 (1997).
    """
    total, count = float(np.sum(scores, dtype=np.float64)), len(scores)
    uneven = scores / total if np.isfinite(total) and total > 0 else np.full(count, 1 / count)
    included = size * (_UNIFORM_SHARE / count + (1 - _UNIFORM_SHARE) * uneven.astype(np.float64))
    while np.any(included > 1):  # those are certain; the others share what is left
        certain = included >= 1
        included = np.where(certain, 1.0, included * (size - np.sum(certain)) / np.sum(included[~certain]))
    uniform = random.uniform(size=count)
    keys = uniform / (1 - uniform) * (1 - included) / included
    indices = np.sort(np.argpartition(keys, size - 1)[:size])
    return indices, 1 / included[indices]


def _of_few_data(account: _Account) -> Found:
    """Quasi-Newton over all data, in the metric of the Fisher information and then of the Hessian where that ended."""
    path, dimension, extra = [account.everything.look(account.init)], account.dimension, 0
    if not path[-1].is_finite:
        return account.found(path[-1], np.eye(dimension), Spectrum(np.eye(dimension)))
    objective = Objective(account.everything)
    for hessians in itertools.count(1):
        looks = account.everything.looks
        path = descend(objective, path, account.passes_left, account.tolerance / 2)
        stuck = hessians > 1 and account.everything.looks == looks
        precision, cost = _hessian(account, path[-1])
        extra += cost
        found = account.found(path[-1], precision, Spectrum(precision, path[-1].prior_precision), extra)
        if found.converged and account.passes_left:
            rises = _rises_beyond(objective, found)
            return found._replace(converged=rises, cost=account.cost + extra)
        if found.converged or stuck or hessians == _HESSIANS or account.passes_left == 0:
            return found
        objective = dataclasses.replace(objective, metric=precision)
    raise AssertionError


def _rises_beyond(objective: Objective, found: Found) -> bool:
    """Whether V rises one standard deviation beyond the mode, in the direction of the last step to it.

    Under a flat prior, and classes that can be separated, V falls for ever while its decrement goes to 0.
    """
    spectrum, force = Spectrum(found.precision), found.look.force + found.look.prior_force
    length = spectrum.length(force)
    if length == 0:
        return True
    beyond = objective.sample.look(found.look.theta + spectrum.solve(force) / length)
    return not objective.value(beyond) <= objective.value(found.look)


def _hessian(account: _Account, at: Look) -> tuple[np.ndarray, int]:
    """∇²V from up to max(2000, 20 d) data, scaled to all of them; and its cost, 2 d gradients per datum."""
    n, d = account.num_data, account.dimension
    size = min(n, max(_HESSIAN_SIZE, _FIRST_PER_PARAMETER * d))
    some = None if size == n else np.sort(account.random.choice(n, size, replace=False))
    sample = Sample(account.target, account.start, some)
    of_sample = np.asarray(curvature(sample.target, sample.position(at.theta)), np.float64)
    hessian = n / size * (of_sample - at.prior_precision) + at.prior_precision
    return hessian, 2 * d * size
