"""Affine coordinates: the algebra of L, and the posterior of z."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import ewsg
from ewsg.coordinates import Dense, Diagonal, LowRank

RNG = np.random.default_rng(0)
CENTER = {"a": np.array([1.0, -2.0], np.float32), "b": np.float32(0.5)}
BASIS = np.linalg.qr(RNG.normal(size=(3, 2)))[0].astype(np.float32)
SCALE = np.array([0.5, 2.0, 30.0], np.float32)
STRETCH = np.array([0.2, 5.0], np.float32)
DENSE = RNG.normal(size=(3, 3)).astype(np.float32)
KINDS = {
    "dense": (Dense(CENTER, DENSE), DENSE),
    "diagonal": (Diagonal(CENTER, SCALE), np.diag(SCALE)),
    "low rank": (
        LowRank(CENTER, SCALE, BASIS, STRETCH),
        np.diag(SCALE) @ (np.eye(3) + BASIS @ np.diag(STRETCH - 1) @ BASIS.T),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def test_products_are_those_with_the_matrix(kind):
    coordinates, root = kind
    vectors = RNG.normal(size=(4, 3)).astype(np.float32)
    np.testing.assert_allclose(jax.vmap(coordinates.push)(vectors), vectors @ root.T, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jax.vmap(coordinates.pull)(vectors), vectors @ root, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        jax.vmap(lambda v: coordinates.solve(coordinates.push(v)))(vectors), vectors, rtol=1e-4, atol=1e-4
    )


def test_parameters_and_back(kind):
    coordinates, root = kind
    z = jnp.array([0.3, -1.0, 2.0])
    position = coordinates.place(z)
    assert jax.tree.structure(position) == jax.tree.structure(CENTER)
    flat = ravel_pytree(CENTER)[0] + root @ z
    np.testing.assert_allclose(ravel_pytree(position)[0], flat, rtol=1e-5)
    np.testing.assert_allclose(coordinates.locate(position), z, rtol=1e-3, atol=1e-4)


def posterior():
    x = RNG.normal(size=(7, 3)).astype(np.float32)

    def log_likelihood(params, row):
        return -jnp.log1p(jnp.exp(row[:2] @ params["a"] + row[2] * params["b"]))

    return ewsg.Target(log_likelihood, lambda params: -0.5 * jnp.sum(params["a"] ** 2) - params["b"] ** 4, x)


def test_densities_and_their_derivatives_are_those_of_the_parameters(kind):
    coordinates, root = kind
    target = posterior()
    within = target.in_coordinates(coordinates)
    z, direction = 0.1 * jnp.array([0.3, -1.0, 0.2]), jnp.array([1.0, 0.5, -2.0])
    position = coordinates.place(z)
    indices = jnp.array([1, 4, 4])
    np.testing.assert_allclose(within.log_density(z), target.log_density(position), rtol=1e-5)
    np.testing.assert_allclose(within.full_force(z), root.T @ ravel_pytree(target.full_force(position))[0], rtol=1e-4)
    each = jnp.stack([ravel_pytree(target.force(position, jnp.array([i])))[0] for i in (1, 4, 4)])
    np.testing.assert_allclose(within.forces(z, indices), each @ root, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(within.force(z, indices), (each @ root).mean(0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(within.directional(z, indices, direction), each @ root @ direction, rtol=1e-4, atol=1e-4)


def test_changes_of_the_gradients_are_those_of_the_parameters_pulled_back(kind):
    coordinates, root = kind
    target = posterior()
    z, anchor = jnp.array([0.3, -1.0, 0.2]), jnp.array([-0.1, 0.4, 0.0])
    ours = target.in_coordinates(coordinates).likelihood.gradient_changes(z, anchor, target.data.arrays)

    def gradients(at):
        each = jax.vmap(jax.grad(target.likelihood), (None, 0))(coordinates.place(at), target.data.arrays)
        return np.column_stack([each["a"], each["b"]])

    np.testing.assert_allclose(ours, (gradients(z) - gradients(anchor)) @ root, rtol=1e-4, atol=1e-4)


def test_draws_come_back_as_parameters():
    """The exact posterior of a Gaussian, N(mean, cov), from chains that run in z."""
    x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    y = np.array([1.0, 0.0, 2.0, 1.5])
    target = ewsg.models.linear(x, y, noise_scale=0.5, prior_precision=1.0)
    cov = np.linalg.inv(x.T @ x / 0.25 + np.eye(2))
    mean = cov @ x.T @ y / 0.25
    coordinates = Dense(mean.astype(np.float32), np.linalg.cholesky(cov).astype(np.float32))
    run = ewsg.sample(
        target,
        ewsg.Full(),
        ewsg.BAOAB(0.5, 1.0),
        coordinates=coordinates,
        init=lambda key: jnp.asarray(mean, jnp.float32) + jax.random.normal(key, (2,)),
        num_chains=64,
        num_steps=2000,
    )
    draws = run.draws.reshape(-1, 2)
    error = 1 / np.sqrt(64 * 1000 * 0.5 / 4)
    np.testing.assert_allclose((draws.mean(0) - mean) / np.sqrt(np.diag(cov)), 0, atol=5 * error)
    np.testing.assert_allclose(np.cov(draws.T), cov, rtol=12 * error)
    np.testing.assert_allclose(run.stats["virial"].mean((0, 1)), 1, atol=10 * error)
    np.testing.assert_allclose(run.stats["virial_slope"].mean((0, 1)), 0, atol=30 * error)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dense(CENTER, np.eye(2)), "shape (3, 3), not (2, 2)"),
        (lambda: Dense(CENTER, "wide"), "root must be an array of numbers"),
        (lambda: Diagonal(CENTER, np.array([1.0, 0.0, 1.0])), "positive, finite"),
        (lambda: LowRank(CENTER, SCALE, BASIS[:, :1], STRETCH), "directions must be"),
    ],
)
def test_bad_coordinates_are_refused(make, message):
    with pytest.raises(ewsg.errors.InputError) as caught:
        make()
    assert message in str(caught.value)


def test_coordinates_of_other_parameters_are_refused():
    target = ewsg.models.logistic(np.ones((3, 2)), [0, 1, 1])
    method = ewsg.Full(), ewsg.BAOAB(0.1, 1.0)
    with pytest.raises(ewsg.errors.InputError, match="must be like the parameters"):
        ewsg.sample(target, *method, coordinates=Diagonal(np.zeros(3), np.ones(3)))
    with pytest.raises(ewsg.errors.InputError, match="coordinates must be"):
        ewsg.sample(target, *method, coordinates=np.eye(2))


def test_a_run_in_coordinates_goes_on_where_it_stopped(tmp_path):
    target = ewsg.models.logistic(RNG.normal(size=(50, 3)), RNG.integers(0, 2, 50))
    coordinates = Dense(np.zeros(3, np.float32), DENSE)
    parts = target, ewsg.Uniform(5), ewsg.BAOAB(0.02, 1.0)
    whole = ewsg.sample(*parts, coordinates=coordinates, num_steps=60, discard=0, thin=2)
    ewsg.sample(*parts, coordinates=coordinates, num_steps=40, discard=0, thin=2).save(tmp_path / "run.npz")
    both = ewsg.resume(tmp_path / "run.npz", target, num_steps=20)
    np.testing.assert_array_equal(whole.draws, both.draws)


def test_so_does_one_whose_parameters_are_a_tree(tmp_path):
    def log_likelihood(params, datum):
        return -0.5 * (params["a"] - datum) ** 2 - 0.5 * jnp.sum(params["b"] ** 2)

    target = ewsg.Target(log_likelihood, None, np.linspace(-1, 1, 8, dtype=np.float32))
    center = {"a": np.float32(0), "b": np.zeros(2, np.float32)}
    parts, options = (ewsg.Uniform(4), ewsg.BAOAB(0.1, 1.0)), {"discard": 0, "thin": 2, "num_chains": 2}
    options["coordinates"] = Diagonal(center, np.full(3, 0.3, np.float32))
    whole = ewsg.sample(target, *parts, num_steps=60, **options)
    ewsg.sample(target, *parts, num_steps=40, **options).save(tmp_path / "run.npz")
    both = ewsg.resume(tmp_path / "run.npz", target, num_steps=20)
    jax.tree.map(np.testing.assert_array_equal, whole.draws, both.draws)
