"""`ewsg.find_mode(method="subsamples")`, against modes in closed form or by Newton's method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError
from ewsg.target import looks, subsampled, surrogate
from ewsg.target.curvature import Spectrum, curvature, lanczos

N, D = 20_000, 5
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(N, D)).astype(np.float32)
COEFFICIENTS = np.array([0.0, 0.3, -0.6, 0.9, 0.2])
RESPONSES = (FEATURES @ COEFFICIENTS + RNG.normal(size=N)).astype(np.float32)
LABELS = RNG.uniform(size=N) < 1 / (1 + np.exp(-FEATURES @ COEFFICIENTS))


def find(target, init, **options):
    return ewsg.find_mode(target, init, method="subsamples", **options)


def sd_apart(position, exact, hessian):
    """√((θ − θ̂)ᵀ H (θ − θ̂) / d)."""
    error = np.asarray(jax.flatten_util.ravel_pytree(position)[0], np.float64) - exact
    return np.sqrt(error @ hessian @ error / exact.size)


@pytest.fixture(scope="module")
def linear():
    """A regression, its mode (XᵀX + I)⁻¹Xᵀy and its Hessian, σ = 1."""
    rows = FEATURES.astype(np.float64)
    hessian = rows.T @ rows + np.eye(D)
    target = ewsg.models.linear(FEATURES, RESPONSES, noise_scale=1.0, prior_precision=1.0)
    return target, np.linalg.solve(hessian, rows.T @ RESPONSES), hessian


@pytest.fixture(scope="module")
def logistic():
    target = ewsg.models.logistic(FEATURES, LABELS)
    exact = ewsg.find_mode(target, jnp.zeros(D), method="newton", tolerance=1e-6)
    return target, np.asarray(exact.position, np.float64), exact.precision


@pytest.mark.parametrize("far", [0.0, 1e2, 1e4])
def test_mode_of_linear_regression_from_near_and_far(linear, far):
    """From 1e4, steps by the Fisher information, 1e8 times the curvature, vanish in the rounding of the parameters."""
    target, exact, hessian = linear
    found = find(target, jnp.full(D, far))
    apart = sd_apart(found.position, exact, hessian)
    assert found.converged
    assert apart < 0.2
    assert found.distance == pytest.approx(apart, rel=0.1)
    assert found.passes < 5
    np.testing.assert_allclose(found.precision, hessian, rtol=0.1, atol=0.05 * N)


def test_report_is_that_of_all_data_at_the_mode(logistic):
    target, exact, hessian = logistic
    found = find(target, jnp.zeros(D), tolerance=0.1)
    assert sd_apart(found.position, exact, hessian) < 0.1
    rows = np.asarray(target.likelihood.gradients(found.position, target.data.arrays), np.float64)
    fisher = (rows - rows.mean(0)).T @ (rows - rows.mean(0)) + np.eye(D) / 2.5**2
    np.testing.assert_allclose(found.precision, fisher, rtol=1e-4, atol=1e-5 * N)
    np.testing.assert_allclose(found.force, target.full_force(found.position), atol=0.02)
    assert found.gradient_norm == pytest.approx(np.linalg.norm(found.force))
    assert found.log_density == pytest.approx(float(target.log_density(found.position)), rel=1e-5)
    assert found.distance == pytest.approx(np.sqrt(found.force @ np.linalg.solve(fisher, found.force) / D), rel=1e-2)
    assert (found.num_negative, found.num_flat) == (0, 0)


def test_cost_counts_every_evaluation(logistic, monkeypatch):
    seen = []
    look, product = looks.Sample.look, subsampled.hessian_product
    monkeypatch.setattr(looks.Sample, "look", lambda self, *args: seen.append(self.size) or look(self, *args))
    monkeypatch.setattr(
        subsampled, "hessian_product", lambda target, *args: seen.append(2 * target.num_data) or product(target, *args)
    )
    found = find(logistic[0], jnp.zeros(D))
    assert found.cost.datum_gradients == sum(seen)
    assert found.passes == sum(seen) / N
    assert {1000, N} <= set(seen)


@pytest.mark.parametrize("seed", range(3))
def test_rare_class_takes_few_passes(seed):
    """200 positives among 40,000: none to 10 of them in the first subsample."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(40_000, 10)).astype(np.float32)
    rows[:, 0] = 1
    labels = random.uniform(size=40_000) < 1 / (1 + np.exp(5.8 - 0.3 * rows.sum(1)))
    target = ewsg.models.logistic(rows, labels)
    found = find(target, jnp.zeros(10), seed=seed)
    exact = ewsg.find_mode(target, found.position, method="newton")
    assert found.converged
    assert sd_apart(found.position, np.asarray(exact.position, np.float64), exact.precision) < 0.3
    assert found.passes <= 6


def test_units_of_the_columns_do_not_matter(logistic):
    scale = np.array([1, 1e6, 1e-6, 1, 1e3], np.float32)
    plain, scaled = (
        find(ewsg.models.logistic(rows, LABELS, prior_precision=0.0), jnp.zeros(D))
        for rows in (FEATURES, FEATURES * scale)
    )
    assert scaled.converged
    assert (scaled.num_negative, scaled.num_flat) == (0, 0)
    assert scaled.passes < plain.passes + 1
    np.testing.assert_allclose(scaled.position * scale, plain.position, atol=0.3 / np.sqrt(N / 4))


def test_collinear_columns_under_a_flat_prior_are_flat():
    rows = np.concatenate([FEATURES, FEATURES[:, :1] + FEATURES[:, 1:2]], 1)
    found = find(ewsg.models.logistic(rows, LABELS, prior_precision=0.0), jnp.zeros(D + 1))
    assert (found.num_negative, found.num_flat) == (0, 1)
    assert np.all(np.isfinite(found.position))


@pytest.mark.parametrize("count", [200, N])
def test_separated_classes_under_a_flat_prior_have_no_mode(count):
    rows, labels = FEATURES[:count], FEATURES[:count, 0] > 0
    found = find(ewsg.models.logistic(rows, labels, prior_precision=0.0), jnp.zeros(D), max_passes=60)
    assert not found.converged
    assert np.all(np.isfinite(found.position))
    assert find(ewsg.models.logistic(rows, labels), jnp.zeros(D)).converged


@pytest.mark.parametrize("count", [100, 10_000])
def test_a_saddle_is_reported(count):
    """ℓ = −½(x − p₀p₁)², which at 0 has no slope and curves both ways; the Fisher information does not see it."""
    target = ewsg.Target(
        lambda p, x: -0.5 * (x - p[0] * p[1]) ** 2, lambda p: -0.5 * jnp.sum(p**2), jnp.full(count, 3.0)
    )
    found = find(target, jnp.zeros(2))
    assert not found.converged
    assert found.num_negative == 1
    assert find(target, jnp.array([1.0, 2.0])).num_negative == 0


def test_few_data_take_the_hessian(logistic):
    target = ewsg.models.logistic(FEATURES[:300], LABELS[:300])
    found = find(target, jnp.zeros(D))
    exact = ewsg.find_mode(target, jnp.zeros(D), method="newton")
    assert found.converged
    assert sd_apart(found.position, np.asarray(exact.position, np.float64), exact.precision) < 0.1
    np.testing.assert_allclose(found.precision, curvature(target, found.position), rtol=1e-4, atol=1e-2)
    assert (found.cost.datum_gradients - 2 * D * 300) % 300 == 0


def test_same_seed_same_mode_other_seed_another(logistic):
    one, same, other = (find(logistic[0], jnp.zeros(D), seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.position, same.position)
    assert one.cost == same.cost
    assert not np.array_equal(one.position, other.position)


def test_structure_and_dtypes_are_kept():
    target = ewsg.models.linear(FEATURES, RESPONSES)
    init = {"coefficients": np.zeros(D), "log_scale": 0.0}
    found = find(target, init)
    assert found.converged
    assert jax.tree.structure(found.position) == jax.tree.structure(init)
    residuals = RESPONSES - FEATURES @ np.asarray(found.position["coefficients"])
    np.testing.assert_allclose(found.position["log_scale"], 0.5 * np.log(np.mean(residuals**2)), atol=0.01)
    assert found.precision[-1, -1] == pytest.approx(2 * N, rel=0.05)  # the last, in the order of ravel_pytree


def test_parameters_of_several_dtypes():
    def log_likelihood(p, datum):
        return -0.5 * (datum[1] - datum[0] @ p["a"].astype(jnp.float32) - p["b"].astype(jnp.float32)) ** 2

    target = ewsg.Target(log_likelihood, None, (FEATURES, RESPONSES))
    found = find(target, {"a": jnp.zeros(D, jnp.bfloat16), "b": jnp.float32(0)})
    assert found.position["a"].dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(found.position["a"], np.float64), COEFFICIENTS, atol=0.04)


def test_passes_are_limited(logistic):
    first, second = (find(logistic[0], jnp.full(D, 3.0), max_passes=passes, tolerance=1e-3) for passes in (1, 2))
    np.testing.assert_array_equal(first.position, np.full(D, 3.0))
    assert not first.converged
    rows = np.asarray(logistic[0].likelihood.gradients(first.position, logistic[0].data.arrays), np.float64)
    fisher = (rows - rows.mean(0)).T @ (rows - rows.mean(0)) + np.eye(D) / 2.5**2  # far from the mode the mean matters
    np.testing.assert_allclose(first.precision, fisher, rtol=1e-4, atol=1e-5 * N)
    assert first.passes < 1.5
    assert second.passes < 2.5
    assert second.log_density > first.log_density


def test_a_far_start_of_poisson_regression():
    """There one datum outweighs all others in the Fisher information."""
    counts = RNG.poisson(np.exp(FEATURES @ COEFFICIENTS))
    target = ewsg.models.poisson(FEATURES, counts)
    found = find(target, jnp.full(D, 3.0))
    assert found.converged
    np.testing.assert_allclose(found.position, COEFFICIENTS, atol=0.05)


def test_a_density_without_a_mode_ends():
    target = ewsg.Target(lambda theta, x: theta * x, None, jnp.ones(10_000))
    assert not find(target, jnp.array(0.0), max_passes=30).converged


def test_draw_is_unbiased_and_takes_the_certain():
    """Σ w_i f_i over the drawn rows has the expectation Σ f_i; a row that outweighs all others is always there."""
    scores = np.ones(40)
    scores[3] = 1e4
    random, values, sums = np.random.default_rng(0), np.arange(40.0), []
    for _ in range(4000):
        indices, weights = surrogate.draw(random, scores, 10)
        assert len(set(indices)) == 10
        assert weights[list(indices).index(3)] == 1
        sums.append(weights @ values[indices])
    assert np.mean(sums) == pytest.approx(values.sum(), abs=4 * np.std(sums) / np.sqrt(4000) + 2)


def test_spectrum_and_lanczos_against_numpy():
    random = np.random.default_rng(1)
    vectors = np.linalg.qr(random.normal(size=(6, 6)))[0]
    matrix = vectors * np.array([-3.0, 0.5, 1.0, 2.0, 4.0, 9.0]) @ vectors.T
    np.testing.assert_allclose(lanczos(lambda v: matrix @ v, random.normal(size=6), 6), np.linalg.eigvalsh(matrix))
    assert Spectrum(matrix).num_negative == 1
    positive, gradient = matrix @ matrix, random.normal(size=6)
    spectrum = Spectrum(positive)
    np.testing.assert_allclose(spectrum.solve(gradient), np.linalg.solve(positive, gradient))
    assert spectrum.length(gradient) == pytest.approx(np.sqrt(gradient @ np.linalg.solve(positive, gradient)))
    np.testing.assert_allclose(spectrum.root @ spectrum.root.T, np.linalg.inv(positive))


@pytest.mark.float32
@pytest.mark.parametrize(
    ("init", "options", "words"),
    [
        (jnp.full(D, 1e30), {}, "the log density is not finite at init: start the search elsewhere"),
        (jnp.zeros(D), {"seed": -1}, "seed must be a whole number of at least 0"),
        (jnp.zeros(D), {"tolerance": 0.0}, "tolerance must be"),
    ],
)
def test_bad_input_is_one_sentence(linear, init, options, words):
    with pytest.raises(InputError, match=words):
        find(linear[0], init, **options)
