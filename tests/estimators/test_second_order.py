"""`ControlVariate(order=2)`: forces against Hessians taken by hand, the order of its noise, cost, and its posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from anchors import ANCHOR, POSITION, UNDERDAMPED, N, close, each_gradient, flat, log_likelihood, log_prior

import ewsg
from ewsg.errors import InputError
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.exponential import enumerate_batches
from ewsg.target.anchored import anchored, curvature_at, slope_at

_hessian = jax.jit(jax.hessian(log_likelihood))


def each_hessian(target, point):
    """∇²ℓ_i by jax.hessian of the user's function, one datum at a time; rows and columns as `flat` has them."""
    found = []
    for i in range(N):
        row = jax.tree.map(lambda leaf, i=i: leaf[i], target.data.arrays)
        blocks = _hessian(point, row)
        w = np.concatenate([blocks["w"]["w"], np.asarray(blocks["w"]["b"])[:, None]], axis=1)
        b = np.append(blocks["b"]["w"], blocks["b"]["b"])
        found.append(np.concatenate([w, b[None]]))
    return np.stack(found).astype(float)


def forces_by_hand(target, position):
    x = flat(position) - flat(ANCHOR)
    hessians = each_hessian(target, ANCHOR)
    here, there = each_gradient(target, position), each_gradient(target, ANCHOR)
    known = flat(jax.grad(log_prior)(position)) + there.sum(0) + hessians.sum(0) @ x
    return N * (here - there - hessians @ x) + known


def around(target, anchor=ANCHOR):
    return anchored(target, anchor, slope_at(target, anchor), curvature_at(target, anchor))


def test_the_curvature_is_the_sum_of_hessians(curved, monkeypatch):
    """In the order of ravel_pytree: b before w; in blocks of rows and of directions as well."""
    place = [3, 0, 1, 2]
    exact = each_hessian(curved, ANCHOR).sum(0)[np.ix_(place, place)]
    close(curvature_at(curved, ANCHOR), exact)
    monkeypatch.setattr(ewsg.Target, "block", lambda self, position, most, memory=0: min(most, 3))
    close(curvature_at(curved, ANCHOR), exact)


def test_forces_are_the_formula(curved):
    there, expected, indices = around(curved), forces_by_hand(curved, POSITION), jnp.array([4, 1, 1, 5])
    weights = np.array([0.1, 0.7, -0.2, 0.9], np.float32)  # they do not sum to one
    direction = {"w": jnp.array([0.2, -1.0, 0.7]), "b": jnp.array(0.3)}

    @jax.jit
    def found(target, position, weights):
        each, mean = target.forces(position, indices), target.force(position, indices)
        weighted = target.hold(indices).weighted_force(position, indices, weights)
        return each, mean, weighted, target.directional(position, indices, direction)

    each, mean, weighted, along = found(there, POSITION, weights)
    close(flat(each), expected[indices], 1e-4)
    close(flat(mean), expected[indices].mean(0), 1e-4)
    close(flat(weighted), weights.astype(float) @ expected[indices], 1e-4)
    close(along, expected[indices] @ flat(direction), 1e-4)


def test_no_density_and_no_full_force_is_changed(curved):
    there = around(curved)

    @jax.jit
    def found(target, point):
        data = target.data.arrays
        datum = jax.tree.map(lambda leaf: leaf[2], data)
        whole = target.log_density(point), target.full_force(point)
        one = target.likelihood(point, datum), jax.grad(target.likelihood)(point, datum)
        return whole, one, (target.likelihood.values(point, data), target.likelihood.gradients(point, data))

    for point in (POSITION, ANCHOR):
        (density, force), (value, gradient), (values, gradients) = found(there, point)
        expected, _, _ = found(curved, point)
        close(density, expected[0])
        close(flat(force), flat(expected[1]), 5e-5)
        close(value, values[2])
        close(flat(gradient), flat(gradients)[2], 5e-5)


def test_unbiased_by_enumeration(curved):
    there, batches = around(curved), jnp.asarray(enumerate_batches(N, 2, True))
    forces = flat(jax.jit(jax.vmap(lambda position, batch: there.force(position, batch), (None, 0)))(POSITION, batches))
    close(forces.mean(0), flat(curved.full_force(POSITION)), 5e-5)
    assert forces.std(0).min() > 0.01


@pytest.mark.parametrize(("order", "slope"), [(1, 1), (2, 2)])
def test_the_noise_vanishes_with_this_power_of_the_distance(curved, order, slope):
    there = around(curved) if order == 2 else anchored(curved, ANCHOR, slope_at(curved, ANCHOR))

    def noise(distance):
        point = jax.tree.map(lambda a, p: a + distance * (p - a), ANCHOR, POSITION)
        return np.sqrt(flat(there.forces(point, jnp.arange(N))).var(0).sum())

    assert np.log2(noise(0.2) / noise(0.1)) == pytest.approx(slope, abs=0.15)


@pytest.fixture(scope="module")
def regression():
    """Quadratic, with another Hessian for every datum: order 1 has noise, order 2 has none."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 2)).astype(np.float32)
    return ewsg.Target(lambda t, d: -0.5 * (d[1] - d[0] @ t) ** 2, None, (rows, rows.sum(1)))


@pytest.mark.parametrize(
    "inner", [ewsg.Uniform(2), ewsg.Reshuffled(3), ewsg.Exponential(1, 2), ewsg.Paired(2), ewsg.Paired(2, "sequential")]
)
def test_a_gaussian_likelihood_has_no_noise(regression, inner):
    options = {"init": jnp.array([1.0, -2.0]), "num_chains": 2, "num_steps": 30, "discard": 0, "thin": 1}
    full = ewsg.sample(regression, ewsg.Full(), UNDERDAMPED, **options)
    found = ewsg.sample(regression, ControlVariate(inner, anchor=jnp.ones(2), order=2), UNDERDAMPED, **options)
    np.testing.assert_allclose(found.draws, full.draws, atol=2e-4)
    assert np.abs(found.stats["noise_ratio"]).max() < 1e-6
    if isinstance(inner, ewsg.Uniform):
        first = ewsg.sample(regression, ControlVariate(inner, anchor=jnp.ones(2)), UNDERDAMPED, **options)
        assert np.mean(first.stats["noise_ratio"]) > 1e-3


def test_a_model_in_closed_form_agrees_with_a_function(regression):
    rows, y = (np.asarray(leaf) for leaf in regression.data.arrays)
    labels = (y > 0).astype(np.float32)
    model = ewsg.models.logistic(rows, labels)
    by_hand = ewsg.Target(
        lambda t, d: d[1] * (d[0] @ t) - jnp.logaddexp(0.0, d[0] @ t), model.log_prior, (rows, labels)
    )
    anchor, point, indices = jnp.array([0.3, 0.5]), jnp.array([0.9, -0.4]), jnp.array([3, 8])
    close(around(model, anchor).force(point, indices), around(by_hand, anchor).force(point, indices), 1e-4)


def test_cost_is_four_times_the_inner_one_and_two_passes_per_parameter(gaussian):
    options = {"init": jnp.zeros(2), "num_chains": 3, "data_passes": 9, "discard": 0, "thin": 1}
    estimator = ControlVariate(ewsg.Paired(3), anchor=jnp.ones(2), order=2)
    assert estimator.cost(50) == (24, 24)
    assert estimator.spent(7, 50) == 7 * 24
    assert estimator.probe_cost(50) == 4 * 32
    prepared = (1 + 2 * 2) * 50
    run = ewsg.sample(gaussian, estimator, UNDERDAMPED, **options)
    steps = (450 - prepared) // 24
    assert run.settings["num_steps"] == steps
    assert run.cost.datum_gradients == 3 * steps * 24 + prepared
    assert run.cost.datum_directional == 3 * steps * 24
    leverage = ControlVariate(ewsg.Leverage(ewsg.Paired(3), jnp.ones((3, 2))), anchor=jnp.ones(2), order=2)
    assert leverage.prepare(gaussian)[1] == (prepared + (3 + 1 + 2 * 3) * 50, 0)


def test_resume_makes_the_curvature_again(curved, tmp_path):
    """In a dict, drawn by leverage; the matrix is not in the file."""
    points = jax.tree.map(lambda a, p: jnp.stack([a, p]), ANCHOR, POSITION)
    estimator = ControlVariate(ewsg.Leverage(ewsg.Paired(2), points), anchor=ANCHOR, order=2).prepare(curved)[0]
    options = {"init": POSITION, "num_chains": 2, "discard": 4, "thin": 3, "seed": 5}
    whole = ewsg.sample(curved, estimator, UNDERDAMPED, num_steps=40, **options)
    assert whole.settings["estimator"]["curvature"] is None
    ewsg.sample(curved, estimator, UNDERDAMPED, num_steps=17, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", curved, num_steps=23)
    jax.tree.map(np.testing.assert_array_equal, resumed.draws, whole.draws)


def test_the_sd_of_a_small_posterior():
    """One-parameter logistic regression of 60 data, three of them rare; the sd by quadrature."""
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=57), [3.0, -3.0, 4.0]).astype(np.float32)
    y = (rng.random(60) < scipy.special.expit(x)).astype(np.float32)
    target = ewsg.models.logistic(x[:, None], y)
    grid = np.linspace(-4, 6, 4001)
    eta = grid[:, None] * x.astype(float)
    prior = np.asarray(jax.vmap(lambda t: target.log_prior(t[None]))(jnp.asarray(grid, jnp.float32)))
    log_density = (y * eta - np.logaddexp(0, eta)).sum(1) + prior
    share = np.exp(log_density - log_density.max())
    share /= share.sum()
    mean = share @ grid
    sd = np.sqrt(share @ (grid - mean) ** 2)
    estimator = ControlVariate(ewsg.Paired(2), anchor=jnp.array([mean], jnp.float32), order=2)
    options = {"init": jnp.array([mean], jnp.float32), "num_chains": 400, "num_steps": 1200, "discard": 200, "thin": 10}
    draws = ewsg.sample(target, estimator, ewsg.BAOAB(0.2 * sd, 1.5 / sd), **options).draws[..., 0]
    spread = draws.std(1, ddof=0)
    assert abs(draws.mean() - mean) < 0.02 * sd
    assert abs(np.sqrt(np.mean(np.square(draws - draws.mean()))) / sd - 1) < 0.02
    assert spread.std() < 0.2 * sd  # of one chain: it mixes


@pytest.mark.parametrize("order", [0, 3, 2.5, "two"])
def test_other_orders_are_refused(order):
    with pytest.raises(InputError, match="order must be 1 or 2, not"):
        ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(2), order=order)


def test_a_matrix_larger_than_memory_is_refused():
    wide = ewsg.Target(lambda w, x: -jnp.sum((w - x) ** 2), None, np.zeros(10, np.float32))
    with pytest.raises(InputError, match=r"ControlVariate\(order=2\) needs .* use order=1"):
        ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(2_000_000), order=2).prepare(wide)
