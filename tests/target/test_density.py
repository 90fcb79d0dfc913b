"""The log density and its derivatives: right, in bounded memory, and in enough digits for any dtype of parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import ewsg
from ewsg import models
from ewsg._core.jaxpr import bodies

START = {"a": jnp.array([0.3, -0.2]), "b": jnp.array(0.1)}


def log_likelihood(params, x):
    return -jax.nn.softplus(-jnp.dot(x, params["a"]) - params["b"])


def log_prior(params):
    return -0.25 * jnp.sum(params["a"] ** 4) - 0.5 * params["b"] ** 2


def made(n):
    return ewsg.Target(log_likelihood, log_prior, np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32))


def directly(target):
    """−V written out, without blocks."""
    rows = target.data.arrays
    return lambda params: target.log_prior(params) + jnp.sum(target.likelihood.values(params, rows))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(ewsg.target.target, "_ROWS_PER_BLOCK", 4)


def close(one, other, rtol=2e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-5)


ALONG = {"a": jnp.array([1.0, -2.0]), "b": jnp.array(0.5)}


def derivatives(density):
    """Values of all kinds of derivatives at the start."""
    flat, unravel = ravel_pytree(START)
    starts = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), START)
    return {
        "value and gradient": jax.value_and_grad(density)(START),
        "forward": jax.jvp(density, (START,), (ALONG,)),
        "linear": jax.linearize(density, START)[1](ALONG),
        "hessian times vector": jax.jvp(jax.grad(density), (START,), (ALONG,))[1],
        "hessian": jax.hessian(lambda p: density(unravel(p)))(flat),
        "twice reverse": jax.jacrev(jax.jacrev(lambda p: density(unravel(p))))(flat),
        "of many": jax.vmap(jax.grad(density))(starts),
        "of a part": jax.grad(lambda b: density({"a": START["a"], "b": b}))(START["b"]),
    }


@pytest.mark.usefixtures("small_blocks")
def test_derivatives_of_the_log_density():
    target = made(11)
    found, right = (jax.jit(lambda f=f: derivatives(f))() for f in (target.log_density, directly(target)))
    close(found, right)
    close(found["value and gradient"][1], jax.jit(target.full_force)(START))


@pytest.mark.usefixtures("small_blocks")
def test_derivatives_by_the_settings_of_a_target():
    def density(scale, noise):
        target = models.linear(np.eye(6)[:, :2], np.arange(6.0), noise_scale=noise, prior_precision=scale)
        return target.log_density(jnp.array([0.5, -1.0]))

    by_precision, by_noise = jax.jit(jax.grad(density, argnums=(0, 1)))(2.0, 3.0)
    assert float(by_precision) == pytest.approx(-0.5 * 1.25)
    residuals = np.arange(6.0) - [0.5, -1.0, 0, 0, 0, 0]
    assert float(by_noise) == pytest.approx((residuals**2).sum() / 27 - 6 / 3, rel=1e-4)


def largest(jaxpr) -> int:
    """The number of entries of the largest intermediate result."""
    sizes = [var.aval.size for eqn in jaxpr.eqns for var in eqn.outvars]
    return max([*sizes, *(largest(body) for eqn in jaxpr.eqns for body in bodies(eqn))], default=0)


def test_memory_of_the_gradient_does_not_grow_with_n(monkeypatch):
    monkeypatch.setattr(ewsg.target.target, "_ROWS_PER_BLOCK", 8)
    few, many = (largest(jax.make_jaxpr(jax.value_and_grad(made(n).log_density))(START).jaxpr) for n in (17, 801))
    assert few == many


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("leaves", ["narrow", "mixed"])
def test_weights_have_the_digits_of_float32(dtype, leaves):
    """n = 3·2^20 + 4097 is no bfloat16 and beyond float16; a datum's gradient is 2^-20."""
    n = 3 * 2**20 + 4097
    data = jnp.broadcast_to(jnp.float16(2.0**-10), (n,))
    second = dtype if leaves == "narrow" else jnp.float32
    position = {"a": jnp.zeros((), dtype), "b": jnp.zeros((), second)}

    def linear_log_likelihood(params, x):
        small = x.astype(second) * jnp.asarray(2.0**-10, second)
        return small * (params["a"].astype(second) + params["b"])

    target = ewsg.Target(linear_log_likelihood, None, data)
    exact = n / 2**20
    three = jnp.arange(3)
    for force in (target.force(position, three), jax.tree.map(lambda leaf: leaf[0], target.forces(position, three))):
        assert float(force["a"]) == float(jnp.asarray(exact, dtype))
        assert float(force["b"]) == pytest.approx(exact, rel=1e-6 if leaves == "mixed" else 2.0**-8)


@pytest.mark.parametrize("model", ["logistic", "linear", "unknown", "poisson", "negative", "softmax"])
def test_models_take_parameters_of_few_digits(model):
    rows, labels = np.array([[1.0, 2.0], [0.5, -1.0], [-2.0, 0.25]]), [0, 1, 1]
    target = {
        "logistic": lambda: models.logistic(rows, labels),
        "linear": lambda: models.linear(rows, labels, noise_scale=1.0),
        "unknown": lambda: models.linear(rows, labels),
        "poisson": lambda: models.poisson(rows, labels),
        "negative": lambda: models.negative_binomial(rows, labels),
        "softmax": lambda: models.softmax(rows, labels),
    }[model]()
    wide = jnp.zeros((2, 2)) if model == "softmax" else jnp.zeros(2)
    scalar = {"unknown": "log_scale", "negative": "log_dispersion"}.get(model)
    wide = {"coefficients": wide, scalar: jnp.zeros(())} if scalar else wide
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), wide)
    both = jax.jit(lambda position: (target.force(position, jnp.arange(3)), target.log_density(position)))
    (found, density), (right, right_density) = both(narrow), both(wide)
    assert all(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(found))
    close(jax.tree.map(lambda leaf: leaf.astype(jnp.float32), found), right, rtol=2.0**-7)
    assert density.dtype == jnp.float32
    np.testing.assert_allclose(density, right_density, rtol=2.0**-7)
