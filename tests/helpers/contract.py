"""Two worlds in which an estimator is asked for forces, and chains of every pair in them: see test_contract.py."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import components
import jax
import jax.numpy as jnp
import numpy as np

import ewsg
from ewsg.errors import InputError
from ewsg.interface import Kick
from ewsg.sampler import check_parts
from ewsg.target.likelihood import AbstractLikelihood

N, H, COLD = 12, 0.05, 0.3
START = jnp.array([0.3, -0.2])
DATA = np.random.default_rng(0).normal(size=(N, 2)).astype(np.float32)
METRIC = jnp.array([4.0, 0.25])
ROOT = jnp.sqrt(METRIC)
ESTIMATORS = components.estimators(START)
WRAPPED = components.wrapped(START)  # what wraps another hands it the whole kick
INTEGRATORS = components.integrators()
FEW = ("BAOAB", "Preconditioned")  # one with a momentum and a factor, one with a metric: for the variants


def plain(name: str) -> bool:
    return "(" not in name


class View(NamedTuple):
    """The estimator's world: its potential is V'(θ') = scale · V(θ'/stretch); how kicks get there and forces back."""

    scale: float
    stretch: Any
    kick: Callable[[Kick], Kick]
    force: Callable[[Any], Any]


def under_a_metric(kick: Kick) -> Kick:
    """θ' = √P θ."""
    position, momentum, decay = jax.tree.map(lambda leaf: ROOT * leaf, (kick.position, kick.momentum, kick.decay))
    metric = METRIC if kick.metric is None else METRIC * kick.metric
    return kick._replace(position=position, momentum=momentum, decay=decay, metric=metric)


def when_cold(kick: Kick) -> Kick:
    """V' = TV at temperature T: the same law, with r' = √T r and h' = h/√T, or h' = h/T without momentum."""
    kick = kick._replace(temperature=COLD * kick.temperature)
    if kick.momentum is None:
        return kick._replace(step_size=kick.step_size / COLD)
    root = math.sqrt(COLD)
    momentum, decay, noise_scale = jax.tree.map(lambda x: root * x, (kick.momentum, kick.decay, kick.noise_scale))
    return kick._replace(momentum=momentum, decay=decay, noise_scale=noise_scale, step_size=kick.step_size / root)


HERE = View(1.0, jnp.ones(2), lambda kick: kick, lambda force: force)
THERE = View(COLD, ROOT, lambda kick: when_cold(under_a_metric(kick)), lambda force: ROOT * force / COLD)


class Curve(AbstractLikelihood):
    """−scale · (log cosh(z₀ − x₀) + (z₁ − z₀x₁)²/2), z = θ/stretch: no two data have the same gradient.

    In closed form, as tracing derivatives for every primitive would take most of the time.
    """

    scale: float
    stretch: Any

    def __call__(self, params, datum):
        z = params / self.stretch.astype(params.dtype)
        return -self.scale * (jnp.log(jnp.cosh(z[0] - datum[0])) + 0.5 * (z[1] - z[0] * datum[1]) ** 2)

    def gradients(self, params, batch):
        stretch = self.stretch.astype(params.dtype)
        z, slope = params / stretch, -self.scale / stretch
        x, y = batch[:, 0], batch[:, 1]
        residual = z[1] - z[0] * y
        return jnp.stack([slope[0] * (jnp.tanh(z[0] - x) - y * residual), slope[1] * residual], axis=1)

    def gradient(self, params, batch, weights):
        return (weights @ self.gradients(params, batch).astype(weights.dtype)).astype(params.dtype)

    def directional(self, params, batch, direction):
        return self.gradients(params, batch) @ direction

    def datum_bytes(self, params, data):
        return 8


def potential(view: View, dtype=jnp.float32) -> ewsg.Target:
    def log_prior(theta):
        return -0.5 * view.scale * jnp.sum((theta / view.stretch.astype(dtype)) ** 2)

    return ewsg.Target(Curve(view.scale, view.stretch), log_prior, DATA.astype(dtype))


class Asked(NamedTuple):
    """What an estimator was asked at a step, and where the chain went."""

    key: Any
    kick: Kick
    state: Any
    position: Any


def chain(view: View, estimator: Any, integrator_at: Callable[[int], Any], steps: int = 2) -> list[Asked]:
    """A few steps of the integrator, the estimator being asked in its own world."""
    target, place, trail = potential(view), view.stretch * START, []
    estimator, _ = estimator.prepare(target)
    state, phase = estimator.init(jax.random.key(1), target, place), integrator_at(0).init(jax.random.key(2), START)

    def ask(key, kick, state):
        trail.append([key, kick, state])
        force, state, info = estimator.estimate(key, target, view.kick(kick), state)
        return view.force(force), state, info

    for t in range(steps):
        phase, state, _ = integrator_at(t).step(jax.random.key(3 + t), phase, jnp.int32(t), ask, state)
        trail[-1].append(phase.position)
    return [Asked(*entry) for entry in trail]


def drawn_alike(part: Any) -> Any:
    """The estimator with the law of its draws as found here: that depends on the coordinates, the forces do not."""
    if not any(hasattr(each, "table") for each in (part, getattr(part, "inner", None))):
        return part
    prepared, _ = part.prepare(potential(HERE))
    if hasattr(part, "table"):
        return dataclasses.replace(part, table=prepared.table)
    return dataclasses.replace(part, inner=dataclasses.replace(part.inner, table=prepared.inner.table))


def moved(trail: list[Asked]) -> np.ndarray:
    return np.stack([np.asarray(asked.position) for asked in trail])


def refusal(estimator: str, integrator: str) -> str | None:
    """The sentence with which a pair is refused, if it is."""
    try:
        ewsg.compose(potential(HERE), (ESTIMATORS | WRAPPED)[estimator], INTEGRATORS[integrator])
    except InputError as error:
        return str(error)
    return None


@functools.cache
def reference(estimator: str, integrator: str) -> list[Asked]:
    """The chain of a pair, seen from here, with steps H and 2H by a schedule."""
    move = INTEGRATORS[integrator].in_sum_units(N)
    scheduled = dataclasses.replace(move, step_size=lambda t: H * (1.0 + t.astype(float)))
    return chain(HERE, (ESTIMATORS | WRAPPED)[estimator], lambda t: scheduled)


NESTED = {
    f"SVRG({name})": ewsg.SVRG(part, 2)
    for name, part in ESTIMATORS.items()
    if getattr(part, "rule", None) == "sequential" or name == "CovarianceFriction"
}


def samplers(estimator: str, integrators: Iterable[str], step_size: Any, dtype=jnp.float32) -> dict[str, Any]:
    """The estimator, prepared once, with those of the integrators that it is not refused with."""
    part, target, found = (ESTIMATORS | NESTED)[estimator], potential(HERE, dtype), {}
    for name in ("anchor", "points"):
        if getattr(part, name, None) is not None:
            part = dataclasses.replace(part, **{name: getattr(part, name).astype(dtype)})
    prepared, _ = part.prepare(target)
    for integrator in integrators:
        with contextlib.suppress(InputError):
            move = dataclasses.replace(INTEGRATORS[integrator], step_size=step_size)
            check_parts(target, part, move)
            found[integrator] = ewsg.sampler.Sampler(target, prepared, move.in_sum_units(N))
    return found


def warm_up(step):
    return H * step.astype(float)


def accepting(part: str) -> str:
    """An integrator that the estimator is not refused with."""
    return next(name for name in FEW if refusal(part, name) is None)
