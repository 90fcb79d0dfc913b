"""NumPyro models as targets: the log density is minus NumPyro's potential energy, for both kinds of plates."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer import init_to_median
from numpyro.infer.util import constrain_fn, potential_energy
from numpyro_models import MODELS, data

import ewsg
from ewsg._core.promotion import lenient

RNG = np.random.default_rng(3)
Y = np.array([0.4, -1.1, 2.3, 0.9, 1.7], np.float32)


def numpyros(function, *args):
    """A function of NumPyro, which mixes dtypes and ranks."""
    with lenient():
        return jax.jit(function)(*args)


@pytest.mark.parametrize("subsample", [None, 16], ids=["arguments", "subsampled"])
@pytest.mark.parametrize("name", MODELS)
def test_log_density_and_gradient_are_those_of_numpyro(name, subsample):
    model, args = MODELS[name], data(name)
    target = ewsg.Target.from_numpyro(model, *args, subsample=subsample)
    assert target.num_data == len(args[-1])
    assert target.likelihood.model.by_index == (subsample is not None)
    start = target.starting_at(target.init)
    position = jax.tree.map(lambda leaf: leaf + RNG.normal(size=leaf.shape).astype(leaf.dtype), start)

    def log_density(position):
        return -potential_energy(model, args, {}, position)

    value, slope = numpyros(jax.value_and_grad(log_density), position)
    own = jax.jit(lambda target, at: (target.log_density(at), target.full_force(at), target.constrain(at)))
    found, force, parameters = own(target, position)
    np.testing.assert_allclose(found, value, rtol=2e-5)
    for site in position:
        size = float(jnp.max(jnp.abs(slope[site])))
        np.testing.assert_allclose(force[site], slope[site], rtol=1e-3, atol=2e-4 * max(1.0, size))
    with lenient():
        expected = constrain_fn(model, args, {}, position, return_deterministic=True)
    assert set(parameters) == set(expected)
    for site, at in expected.items():
        np.testing.assert_allclose(parameters[site], at, rtol=1e-5)
    back = target.unconstrain(parameters)
    for site, at in position.items():
        np.testing.assert_allclose(back[site], at, rtol=1e-3, atol=1e-3)


def normal(y, factor=1.0, subsample=None):
    """Every scale that NumPyro's handlers give: of the plate, of a handler around it, and of a factor inside it."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    with handlers.scale(scale=0.5):
        scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    numpyro.factor("soft", -0.1 * mean**2)
    numpyro.deterministic("ratio", mean / scale)
    numpyro.deterministic("total", jnp.sum(y) + mean)
    numpyro.deterministic("fits", y + mean)
    with numpyro.plate("data", len(y), subsample_size=subsample) as rows, handlers.scale(scale=3.0):
        numpyro.deterministic("shifted", y[rows] - mean)
        numpyro.sample("y", dist.Normal(mean, scale), obs=numpyro.subsample(y, event_dim=0))
        numpyro.factor("extra", factor * jnp.cos(y[rows] - mean))


def exact(y, factor, mean, scale):
    """log density of `normal` by hand, over (mean, log scale)."""
    y, log = np.asarray(y, np.float64), np.log(scale)
    prior = -0.5 * (mean / 2) ** 2 - np.log(2) - 0.5 * np.log(2 * np.pi) - 0.1 * mean**2
    prior += 0.5 * (-0.5 * log**2 - 0.5 * np.log(2 * np.pi) - log + log)  # the log-Jacobian is scaled as the site is
    rows = -0.5 * ((y - mean) / scale) ** 2 - log - 0.5 * np.log(2 * np.pi) + factor * np.cos(y - mean)
    return prior + 3 * rows.sum(), 3 * rows


@pytest.mark.parametrize("subsample", [None, 2], ids=["arguments", "subsampled"])
def test_scales_factors_and_deterministic_sites(subsample):
    target = ewsg.Target.from_numpyro(normal, Y, factor=0.7, subsample=subsample)
    position = {"mean": jnp.array(0.3), "scale": jnp.array(0.2)}
    total, rows = exact(Y, 0.7, 0.3, np.exp(0.2))
    np.testing.assert_allclose(target.log_density(position), total, rtol=1e-5)
    indices = jnp.array([4, 0, 0, 1, 3])  # as many as there are data, which numpyro.subsample takes for all of them
    np.testing.assert_allclose(target.likelihood.values(position, target.take(indices)), rows[indices], rtol=1e-4)
    # On one row of its arguments a model does not see the sum of all; "fits" and "shifted" have a value per row.
    assert target.support.derived == (("ratio",) if subsample is None else ("ratio", "total"))
    np.testing.assert_allclose(target.constrain(position)["ratio"], 0.3 / np.exp(0.2), rtol=1e-5)


def test_a_model_that_closes_over_its_data_takes_the_rows_of_its_plate():
    def model():
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        with numpyro.plate("data", len(Y)) as rows:
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=jnp.asarray(Y)[rows])

    target = ewsg.Target.from_numpyro(model)
    rows = -0.5 * (Y - 0.3) ** 2 - 0.5 * np.log(2 * np.pi)
    values = target.likelihood.values({"mean": jnp.array(0.3)}, target.take(jnp.array([3, 1])))
    np.testing.assert_allclose(values, rows[[3, 1]], rtol=1e-5)


def test_a_plate_of_several_observations_per_row_is_named():
    table = RNG.normal(size=(6, 4)).astype(np.float32)

    def model(table):
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        with numpyro.plate("rows", len(table), dim=-2), numpyro.plate("columns", 4):
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=table)

    target = ewsg.Target.from_numpyro(model, table, plate="rows")
    each = (-0.5 * (table - 0.3) ** 2 - 0.5 * np.log(2 * np.pi)).sum(1)
    values = target.likelihood.values({"mean": jnp.array(0.3)}, target.take(jnp.arange(6)))
    np.testing.assert_allclose(values, each, rtol=1e-5)


def test_chains_start_where_numpyro_does():
    target = ewsg.Target.from_numpyro(normal, Y)

    def start():
        model = handlers.substitute(handlers.seed(normal, jax.random.key(0)), substitute_fn=init_to_median())
        return {name: site["value"] for name, site in handlers.trace(model).get_trace(jnp.asarray(Y)).items()}

    with jax.debug_key_reuse(False):
        expected = numpyros(start)
    assert list(target.init) == ["mean", "scale"]
    for name, value in target.init.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4)
