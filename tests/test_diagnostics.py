import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import integrate, stats

import ewsg
from ewsg import diagnostics
from ewsg.errors import InputError


def gaussian_target(data, variance, prior_precision=0.0):
    """Mean of Gaussian rows; per coordinate, precision n/variance + prior_precision."""

    def log_likelihood(mu, x):
        return -0.5 * jnp.sum((x - mu) ** 2) / variance

    return ewsg.Target(log_likelihood, lambda mu: -0.5 * prior_precision * jnp.sum(mu**2), jnp.asarray(data))


@pytest.fixture(scope="module")
def standard():
    """A posterior that is N(0, I) in three dimensions."""
    data = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
    return gaussian_target(data - data.mean(0), 8.0)


def normal_draws(seed, shape, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def brute_force(x, scores, c, beta):
    """The m × m matrix of k_p, with the Stein operator applied to k by automatic differentiation."""

    def k(x, y):
        return (c**2 + jnp.sum((x - y) ** 2)) ** beta

    def stein(x, y, s, t):
        drift = s @ jax.grad(k, argnums=1)(x, y) + t @ jax.grad(k, argnums=0)(x, y)
        mixed = jax.jacfwd(jax.grad(k, argnums=1), argnums=0)(x, y)
        return jnp.dot(s, t) * k(x, y) + drift + jnp.trace(mixed)

    rows = jax.vmap(stein, in_axes=(None, 0, None, 0))
    return jax.vmap(rows, in_axes=(0, None, 0, None))(x, x, scores, scores)


@pytest.mark.parametrize(("c", "beta", "temperature"), [(1.0, -0.5, 1.0), (0.4, -0.8, 0.3), (2.5, -0.1, 2.0)])
def test_ksd_is_the_root_of_the_brute_force_v_statistic(c, beta, temperature):
    generator = np.random.default_rng(3)
    data = generator.normal(2.0, 1.0, size=(20, 3))
    draws = {"a": 5 + generator.normal(size=(2, 30)), "b": generator.normal(size=(2, 30, 2))}
    x = np.concatenate([draws["a"][..., None], draws["b"]], axis=2).reshape(60, 3)
    scores = ((data.mean(0) - x) * 20 / 4.0 - 0.5 * x) / temperature

    def log_likelihood(p, row):
        return -0.5 * ((row[0] - p["a"]) ** 2 + jnp.sum((row[1:] - p["b"]) ** 2)) / 4.0

    def log_prior(p):
        return -0.25 * (p["a"] ** 2 + jnp.sum(p["b"] ** 2))

    with jax.enable_x64(True):
        target = ewsg.Target(log_likelihood, log_prior, jnp.asarray(data))
        expected = np.sqrt(np.mean(brute_force(jnp.asarray(x), jnp.asarray(scores), c, beta)))
        settings = {"bandwidth": c, "exponent": beta, "temperature": temperature}
        np.testing.assert_allclose(diagnostics.ksd(draws, target, **settings), expected, rtol=1e-10)


def test_ksd_does_not_depend_on_the_block(standard):
    draws = normal_draws(0, (3, 25, 3))
    whole = diagnostics.ksd(draws, standard)
    for block in (1, 7, 32, 74, 75, 1000):
        assert diagnostics.ksd(draws, standard, block=block) == pytest.approx(whole, rel=1e-12)
    subsampled = diagnostics.ksd(draws, standard, batch_size=4)
    assert diagnostics.ksd(draws, standard, batch_size=4, block=20) == pytest.approx(subsampled, rel=1e-12)


@pytest.mark.parametrize("m", [50, 400])
def test_ksd_of_exact_draws_falls_as_one_over_root_m(standard, m):
    """E KSD² = E k_p(θ, θ)/m = (E‖s‖² + d)/m = 2d/m for N(0, I) with c = 1 and β = −½."""
    scaled = [m * diagnostics.ksd(normal_draws(seed, (1, m, 3)), standard) ** 2 for seed in range(40)]
    assert abs(np.mean(scaled) - 6) < 4 * np.std(scaled, ddof=1) / math.sqrt(40)


def test_ksd_sees_a_wrong_spread(standard):
    exact = [diagnostics.ksd(normal_draws(0, (4, m, 3)), standard) for m in (200, 800)]
    wide = [diagnostics.ksd(normal_draws(0, (4, m, 3), 1.3), standard) for m in (200, 800)]
    assert exact[1] < 0.6 * exact[0]
    assert wide[1] > 0.85 * wide[0]
    assert wide[1] > 4 * exact[1]


def test_ksd_sees_a_wrong_mean(standard):
    draws = normal_draws(0, (4, 400, 3))
    assert diagnostics.ksd(draws + np.float32(0.3), standard) > 4 * diagnostics.ksd(draws, standard)


def test_ksd_at_a_temperature(standard):
    draws = normal_draws(0, (4, 400, 3), math.sqrt(0.3))
    cold = diagnostics.ksd(draws, standard, temperature=0.3)
    assert diagnostics.ksd(draws, standard) > 4 * cold
    assert diagnostics.ksd(draws, standard, temperature=3.0) > 4 * cold
    assert 0.1 < cold / diagnostics.ksd(normal_draws(0, (4, 400, 3)), standard) < 10


def test_subsampled_ksd_is_unbiased_in_the_square(standard):
    """Were ‖ŝ‖² on the diagonal, the mean would be too large by 10 standard errors."""
    draws = normal_draws(1, (2, 30, 3), 1.3)
    exact = diagnostics.ksd(draws, standard) ** 2
    squares = [diagnostics.ksd(draws, standard, batch_size=5, seed=seed) ** 2 for seed in range(300)]
    error = np.std(squares, ddof=1) / math.sqrt(300)
    assert min(squares) > 0  # none was cut off, which would bias the mean
    assert abs(np.mean(squares) - exact) < 4 * error
    variance = np.var(np.asarray(standard.data.arrays), axis=0).sum()  # of a datum; n ∇(−V_i) = x_i − θ here
    assert variance / 5 / 60 > 10 * error


def test_a_negative_estimate_of_the_square_gives_zero_and_a_seed_repeats():
    noisy = gaussian_target(normal_draws(3, (8, 3), 50.0), 8.0)
    draws = normal_draws(2, (1, 4, 3))
    values = [diagnostics.ksd(draws, noisy, batch_size=3, seed=seed) for seed in range(40)]
    assert min(values) == 0.0
    assert len(set(values)) > 5
    assert diagnostics.ksd(draws, noisy, batch_size=3, seed=7) == values[7]


def test_ksd_of_a_run_uses_the_good_chains_and_its_temperature(standard):
    run = ewsg.sample(
        standard,
        ewsg.Full(),
        ewsg.Overdamped(step_size=0.2, temperature=0.3),
        init=jnp.zeros(3),
        num_chains=2,
        num_steps=200,
        progress=False,
    )
    expected = diagnostics.ksd(run.draws, standard, temperature=0.3)
    assert diagnostics.ksd(run, standard) == expected
    assert diagnostics.ksd(run, standard, temperature=1.0) != expected
    broken = run.draws.copy()
    broken[1, 5:] = np.nan
    failed = ewsg.Run(broken, run.stats, np.array(["ok", "nonfinite"]), run.cost, run.settings)
    assert diagnostics.ksd(failed, standard) == diagnostics.ksd(run.draws[:1], standard, temperature=0.3)
    with pytest.raises(InputError, match="NaN or infinite"):
        diagnostics.ksd(broken, standard)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exponent": 0.0}, "exponent must lie between -1 and 0, not 0.0"),
        ({"exponent": -1.0}, "exponent must lie"),
        ({"exponent": math.nan}, "exponent must lie"),
        ({"bandwidth": 0.0}, "bandwidth must be positive"),
        ({"temperature": -1.0}, "temperature must be positive"),
        ({"block": 0}, "block must be a whole number"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2"),
    ],
)
def test_ksd_refuses_bad_settings(standard, settings, message):
    with pytest.raises(InputError, match=message):
        diagnostics.ksd(np.zeros((1, 5, 3), np.float32), standard, **settings)


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.zeros((1, 1, 3), np.float32), "at least 2 draws are needed, and there are 1"),
        (np.full((1, 5, 3), np.nan, np.float32), "NaN or infinite"),
        (np.zeros(5, np.float32), "leading axes"),
        ({"a": np.zeros((1, 5)), "b": np.zeros((2, 5))}, "leading axes"),
        ({}, "leading axes"),
        (np.zeros((1, 5, 3), np.int32), "floating-point"),
    ],
)
def test_bad_draws_are_refused(standard, draws, message):
    for function in (lambda d: diagnostics.ksd(d, standard), diagnostics.moments):
        with pytest.raises(InputError, match=message):
            function(draws)


def test_ksd_refuses_a_draw_without_a_score():
    target = ewsg.Target(lambda p, x: x * jnp.sqrt(p), None, jnp.ones(2))
    with pytest.raises(InputError, match="not finite at draw 2"):
        diagnostics.ksd(np.array([[1.0, 2.0, 0.0]], np.float32), target)


def test_moments_come_in_the_order_of_ravel_pytree():
    generator = np.random.default_rng(0)
    draws = {"w": generator.normal(size=(2, 50, 2, 3)), "b": generator.normal(size=(2, 50)) + 7}
    one_by_one = [
        ravel_pytree(jax.tree.map(lambda leaf, place=(chain, draw): leaf[place], draws))[0]
        for chain in range(2)
        for draw in range(50)
    ]
    mean, cov = diagnostics.moments(draws)
    assert mean.dtype == cov.dtype == np.float64
    np.testing.assert_allclose(mean, np.mean(one_by_one, 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(cov, np.cov(np.transpose(one_by_one)), rtol=1e-4, atol=1e-6)


def draws_with_moments(mean, cov, m=50):
    """Draws whose sample mean and covariance are exactly these."""
    raw = np.random.default_rng(5).normal(size=(m, len(mean)))
    raw -= raw.mean(0)
    white = raw @ np.linalg.inv(np.linalg.cholesky(np.cov(raw.T).reshape(len(mean), -1))).T
    return (mean + white @ np.linalg.cholesky(cov).T)[None]


def test_gaussian_kl_is_the_integral():
    reference, chain = stats.norm(0.5, 1.5), stats.norm(-0.2, 0.9)

    def integral(p, q):
        return integrate.quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -15, 15)[0]

    expected = integral(reference, chain)
    draws = draws_with_moments(np.array([-0.2]), np.array([[0.81]]))
    assert diagnostics.gaussian_kl(0.5, 1.5**2, draws[..., 0]) == pytest.approx(expected, rel=1e-9)
    assert abs(expected - integral(chain, reference)) > 0.2  # the two directions are told apart


def test_gaussian_kl_in_many_dimensions():
    """Independent coordinates add up, and an invertible linear map changes nothing."""
    mean, sd = np.array([0.0, 1.0, 2.0]), np.array([1.0, 0.5, 2.0])
    chain_mean, chain_sd = np.array([0.1, 1.0, 1.0]), np.array([1.0, 0.7, 1.0])
    single = np.log(chain_sd / sd) + (sd**2 + (mean - chain_mean) ** 2) / (2 * chain_sd**2) - 0.5
    mix = np.random.default_rng(0).normal(size=(3, 3))
    draws = draws_with_moments(mix @ chain_mean, mix @ np.diag(chain_sd**2) @ mix.T)
    kl = diagnostics.gaussian_kl(mix @ mean, mix @ np.diag(sd**2) @ mix.T, draws)
    assert kl == pytest.approx(single.sum(), rel=1e-9)


def test_gaussian_kl_of_exact_draws_is_nearly_zero():
    mean, cov = diagnostics.moments(normal_draws(0, (2, 100, 3)))
    assert diagnostics.gaussian_kl(mean, cov, normal_draws(0, (2, 100, 3))) == pytest.approx(0, abs=1e-12)
    exact = [normal_draws(seed, (1, 500, 3)) for seed in range(100)]
    values = [diagnostics.gaussian_kl(np.zeros(3), np.eye(3), draws) for draws in exact]
    assert np.mean(values) == pytest.approx(3 * 6 / (4 * 500), rel=0.25)


def test_gaussian_kl_refuses_singular_covariances():
    with pytest.raises(InputError, match="the sample covariance is singular: take more draws"):
        diagnostics.gaussian_kl(np.zeros(5), np.eye(5), normal_draws(0, (1, 5, 5)))
    constant = normal_draws(0, (1, 100, 2))
    constant[..., 1] = 3.0
    with pytest.raises(InputError, match="sample covariance is singular"):
        diagnostics.gaussian_kl(np.zeros(2), np.eye(2), constant)
    with pytest.raises(InputError, match="reference covariance is singular"):
        diagnostics.gaussian_kl(np.zeros(2), np.ones((2, 2)), normal_draws(0, (1, 100, 2)))


def test_reference_moments_must_fit_the_draws():
    draws = normal_draws(0, (1, 100, 2))
    with pytest.raises(InputError, match="reference_mean has 3 entries, the draws have 2 parameters"):
        diagnostics.gaussian_kl(np.zeros(3), np.eye(2), draws)
    with pytest.raises(InputError, match=r"reference_cov has shape \(3, 3\)"):
        diagnostics.gaussian_kl(np.zeros(2), np.eye(3), draws)
    with pytest.raises(InputError, match="sd has 1 entries"):
        diagnostics.moment_errors(draws, np.zeros(2), 1.0)
    with pytest.raises(InputError, match="sd must be positive"):
        diagnostics.moment_errors(draws, np.zeros(2), np.zeros(2))


def test_moment_errors():
    draws = draws_with_moments(np.array([1.0, 2.0, 3.0]), np.diag([1.0, 4.0, 0.04]))
    split = {"a": draws[..., 0], "b": draws[..., 1:]}
    errors = diagnostics.moment_errors(split, {"a": 1.5, "b": np.array([2.0, 2.8])}, [1.0, 1.0, 0.5])
    np.testing.assert_allclose(errors.mean_max, 0.5, rtol=1e-9)
    np.testing.assert_allclose(errors.mean_rms, math.sqrt((0.5**2 + 0.4**2) / 3), rtol=1e-9)
    np.testing.assert_allclose(errors.sd_ratio_worst, 0.4, rtol=1e-9)  # farther from 1 than 2.0 is
    np.testing.assert_allclose(errors.sd_ratio_median, 1.0, rtol=1e-9)


def test_moment_errors_of_a_constant():
    errors = diagnostics.moment_errors(np.ones((1, 10, 1), np.float32), 1.0, 2.0)
    assert errors == (0.0, 0.0, 0.0, 0.0)
