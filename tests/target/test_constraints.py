"""Constrained parameters of plain targets: densities over positions, with Jacobians that are known or computed."""

import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np
import numpyro.distributions as dist
import pytest
from jax.flatten_util import ravel_pytree

import ewsg
from ewsg.errors import InputError

X = np.random.default_rng(1).exponential(0.5, 40).astype(np.float32)
LOWER = np.linalg.cholesky(np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.5], [-0.2, 0.5, 1.0]])).astype(np.float32)
INSIDE = {
    "positive": np.array([0.3, 2.0], np.float32),
    "unit_interval": np.array([0.1, 0.8], np.float32),
    "simplex": np.array([0.2, 0.5, 0.3], np.float32),
    "ordered": np.array([-1.0, 0.4, 0.5], np.float32),
    "corr_cholesky": LOWER,
}
FREE = {"simplex": lambda share: share[:-1], "corr_cholesky": lambda lower: lower[np.tril_indices(3, -1)]}
"""The coordinates of a constrained parameter, as many as it has degrees of freedom."""


def rate_target(**options):
    """Exponential waiting times: with the prior Gamma(2, 1), the posterior of the rate is Gamma(n + 2, Σx + 1)."""
    return ewsg.Target(
        lambda params, x: jnp.log(params["rate"]) - params["rate"] * x,
        lambda params: stats.gamma.logpdf(params["rate"], 2.0),
        X,
        init={"rate": 1.5},
        constraints={"rate": "positive"},
        **options,
    )


def test_the_log_of_a_rate_has_the_density_of_the_gamma_posterior_times_the_rate():
    target = rate_target()
    shape, inverse_scale = len(X) + 2, float(X.sum()) + 1
    logs = np.log(np.array([0.7, 1.9, 4.0], np.float32))

    @jax.jit
    def look(z):
        return target.log_density({"rate": z}), target.full_force({"rate": z})["rate"]

    found = np.array([[float(part) for part in look(z)] for z in logs])
    expected = shape * logs.astype(np.float64) - inverse_scale * np.exp(logs)  # of the logarithm: one power more
    np.testing.assert_allclose(np.diff(found[:, 0]), np.diff(expected), rtol=1e-5)
    np.testing.assert_allclose(found[:, 1], shape - inverse_scale * np.exp(logs), rtol=1e-4)


@pytest.mark.parametrize("kind", INSIDE)
def test_log_volumes_are_those_of_the_jacobian(kind):
    target = ewsg.Target(lambda params, x: 0.0 * x, None, X, init={"a": INSIDE[kind]}, constraints={"a": kind})
    position = target.starting_at(target.init)
    np.testing.assert_allclose(target.constrain(position)["a"], INSIDE[kind], rtol=1e-4, atol=1e-6)
    position = {"a": position["a"] + jnp.linspace(-0.4, 0.9, position["a"].size)}

    def free(z):
        value = target.constrain({"a": z})["a"]
        return FREE.get(kind, lambda whole: whole)(value)

    jacobian = np.asarray(jax.jit(jax.jacfwd(free))(position["a"]), np.float64)
    np.testing.assert_allclose(target.log_prior(position), np.linalg.slogdet(jacobian)[1], rtol=1e-4, atol=1e-4)


def nested():
    """Parameters within parameters; one constrained, by a constraint of NumPyro."""
    init = {"scales": {"tau": np.array([0.5, 2.0], np.float32), "shift": np.float32(-0.3)}, "share": INSIDE["simplex"]}

    def log_likelihood(params, x):
        tau, share = params["scales"]["tau"], params["share"]
        return jnp.sum(share[:2] * jnp.cos(x * tau)) + params["scales"]["shift"] * share[2] * x

    return ewsg.Target(
        log_likelihood,
        lambda params: -jnp.sum(params["scales"]["tau"]) - params["scales"]["shift"] ** 2,
        X,
        init=init,
        constraints={"scales.tau": dist.constraints.interval(0.1, 3.0), "share": "simplex"},
    )


def test_derivatives_are_those_of_the_density_over_positions():
    target = nested()
    position = target.starting_at(target.init)
    flat, unravel = ravel_pytree(position)
    assert flat.size == 5  # 2 + 1, and a simplex of three has two degrees of freedom
    indices, direction = jnp.array([3, 0, 3]), jnp.array([0.3, -1.0, 0.2, 0.7, 1.0], jnp.float32)

    def each(flat):
        return target.likelihood.values(unravel(flat), target.take(indices))

    slopes = jax.jit(jax.jacrev(each))(flat)
    batch = target.take(indices)
    weights = jnp.array([0.5, 2.0, -1.0])
    likelihood = target.likelihood
    found = ravel_pytree(likelihood.gradient(position, batch, weights))[0]
    np.testing.assert_allclose(found, weights @ slopes, rtol=1e-4, atol=1e-5)
    stacked = jax.vmap(lambda row: ravel_pytree(row)[0])(likelihood.gradients(position, batch))
    np.testing.assert_allclose(stacked, slopes, rtol=1e-4, atol=1e-5)
    along = likelihood.directional(position, batch, unravel(direction))
    np.testing.assert_allclose(along, slopes @ direction, rtol=1e-4, atol=1e-5)
    single = likelihood(position, jax.tree.map(lambda leaf: leaf[0], batch))
    np.testing.assert_allclose(single, each(flat)[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("init", "constraints", "sentence"),
    [
        ({"rate": -1.0}, {"rate": "positive"}, r"init rate is -1.0, but its support is positive: start inside"),
        ({"rate": 0.0}, {"rate": "positive"}, "init rate is 0.0, but its support is positive"),
        ({"p": 2.0}, {"p": "unit_interval"}, "init p is 2.0, but its support is unit interval"),
        ({"p": [0.5, 0.7]}, {"p": "simplex"}, "init p is .* but its support is simplex"),
        ({"p": [0.5, 0.2]}, {"p": "ordered"}, "init p is .* but its support is ordered vector"),
        ({"p": 0.5}, {"p": "simplex"}, r"shapes that its constraints need: p \(simplex\)"),
        ({"rate": 1.0}, {"rtae": "positive"}, r"unknown parameter in constraints= 'rtae'; did you mean 'rate'\?"),
        ({"rate": 1.0}, {"rate": "positve"}, r"unknown constraint 'positve'; did you mean 'positive'\?"),
        ({"rate": 1.0}, {"rate": 3}, "the constraint of rate must be one of positive, unit_interval, simplex"),
        ({"rate": 1.0}, {"rate": dist.constraints.positive_integer}, "has no bijector in NumPyro"),
        ({"rate": 1.0}, "positive", "constraints must be a dict from names"),
        (1.0, {"rate": "positive"}, "constraints are for parameters in a dict"),
    ],
)
@pytest.mark.untyped
def test_starts_outside_and_unknown_constraints_are_one_sentence(init, constraints, sentence):
    if isinstance(init, dict):
        init = {name: np.asarray(value, np.float32) for name, value in init.items()}
    with pytest.raises(InputError, match=sentence):
        ewsg.Target(lambda params, x: 0.0 * x, None, X, init=init, constraints=constraints)


def test_a_start_for_one_run_is_checked_too():
    move = ewsg.Uniform(4), ewsg.BAOAB(0.01, 1.0)
    with pytest.raises(InputError, match=r"init rate is -2\.0, but its support is positive"):
        ewsg.sample(rate_target(), *move, init={"rate": jnp.float32(-2.0)}, num_steps=4)
    with pytest.raises(InputError, match=r"init rate is -2\.0, but its support is positive"):
        ewsg.sample(rate_target(), *move, init=lambda key: {"rate": jnp.float32(-2.0)}, num_steps=4)
