"""Control variates by hand: a target of six data, its corrected forces, and a likelihood that counts."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import ewsg
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.svrg import SVRG
from ewsg.interface import Kick
from ewsg.target.likelihood import AbstractLikelihood

N = 6
ANCHOR = {"w": jnp.array([0.1, 0.4, -0.3]), "b": jnp.array(-0.2)}
POSITION = {"w": jnp.array([0.3, -0.2, 0.5]), "b": jnp.array(0.4)}
UNDERDAMPED = ewsg.Underdamped(step_size=0.02, friction=4.0)


def log_likelihood(params, datum):
    return -jnp.cosh(datum["y"] - params["w"] @ datum["x"] - params["b"])


def log_prior(params):
    return -0.7 * jnp.sum(params["w"] ** 4) - params["b"] ** 2


_gradient, _prior_gradient = jax.jit(jax.grad(log_likelihood)), jax.jit(jax.grad(log_prior))


def flat(tree):
    """{w, b} as one vector in float64, along the last axis."""
    return np.concatenate([np.asarray(tree["w"], float), np.asarray(tree["b"], float)[..., None]], axis=-1)


def each_gradient(target, point):
    """∇ℓ_i, one datum at a time, from the user's function itself."""
    data = jax.tree.map(np.asarray, target.data.arrays)
    rows = [jax.tree.map(lambda leaf, i=i: leaf[i], data) for i in range(N)]
    return np.stack([flat(_gradient(point, row)) for row in rows])


def corrected_forces(target, position, anchor):
    """G_i(θ) − G_i(a) + F(a) for every datum, with the prior shared out."""
    prior, prior_there = flat(_prior_gradient(position)), flat(_prior_gradient(anchor))
    here, there = each_gradient(target, position), each_gradient(target, anchor)
    return N * (here - there) + prior - prior_there + (there.sum(0) + prior_there)


def close(found, expected, tolerance=2e-5):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def kick_at(position, step=0):
    momentum = jax.tree.map(lambda leaf: 0.5 * jnp.cos(leaf) - 0.3, position)
    decay = jax.tree.map(lambda leaf: 0.02 * 4.0 * leaf, momentum)
    return Kick(position, momentum, decay, None, 0.02, float(np.sqrt(2 * 4.0 * 0.02)), 1.0, jnp.int32(step))


class Rows(list):
    """A list that JAX accepts as a static setting."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Watched(AbstractLikelihood):
    """A likelihood that notes how many rows each gradient is taken over, while it runs."""

    density: Callable = eqx.field(static=True)
    seen: Rows = eqx.field(static=True)

    def __call__(self, params, datum):
        return self.density(params, datum)

    def gradient(self, params, batch, weights):
        jax.debug.callback(lambda _: self.seen.append(batch.shape[0]), params)
        return super().gradient(params, batch, weights)


def wrapped(kind, inner):
    return SVRG(inner, 7) if kind == "svrg" else ControlVariate(inner, start=jnp.array([3.0, -2.0]))
