import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import statistic
from scipy import integrate

import ewsg
from ewsg import reference
from ewsg.diagnostics import flatten
from ewsg.errors import InputError

NOISE, PRIOR_SD = 0.5, 2.0


def regression():
    """Linear regression with known noise on correlated columns, and its posterior's mean and covariance."""
    generator = np.random.default_rng(0)
    first = generator.normal(size=40)
    x = np.stack([np.ones(40), first, 0.8 * first + 0.6 * generator.normal(size=40) + 0.3], axis=1)
    y = x @ np.array([0.5, 1.0, -2.0]) + NOISE * generator.normal(size=40)
    cov = np.linalg.inv(x.T @ x / NOISE**2 + np.eye(3) / PRIOR_SD**2)

    def log_likelihood(p, row):
        return -0.5 * ((row["y"] - p["intercept"] - row["x"] @ p["slope"]) / NOISE) ** 2

    def log_prior(p):
        return -0.5 * (p["intercept"] ** 2 + jnp.sum(p["slope"] ** 2)) / PRIOR_SD**2

    data = {"x": jnp.asarray(x[:, 1:], jnp.float32), "y": jnp.asarray(y, jnp.float32)}
    return ewsg.Target(log_likelihood, log_prior, data), cov @ x.T @ y / NOISE**2, cov


@pytest.fixture(scope="module")
def linear():
    return regression()


def start(key):
    keys = jax.random.split(key)
    return {"intercept": jax.random.normal(keys[0]), "slope": jax.random.normal(keys[1], (2,))}


def run_linear(target, **settings):
    return reference.nuts(target, start, num_warmup=500, num_draws=2000, **settings)


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
def test_moments_of_a_correlated_gaussian(linear, temperature):
    target, mean, cov = linear
    cov = temperature * cov
    sd = np.sqrt(np.diag(cov))
    assert abs(cov[1, 2] / sd[1] / sd[2]) > 0.5
    result = run_linear(target, temperature=temperature)
    assert result.divergences == 0
    assert result.ess > 1000
    assert result.draws["slope"].shape == (4, 2000, 2)
    assert np.all(np.abs(result.mean - mean) < 4 * sd / np.sqrt(result.ess))
    np.testing.assert_array_equal(result.sd, np.sqrt(np.diag(result.cov)))
    centred = flatten(result.draws) - mean
    products = centred[..., :, None] * centred[..., None, :]
    error = products.std((0, 1)) / np.sqrt(statistic("ess", products))
    assert np.all(np.abs(result.cov - cov) < 4 * error)


@pytest.mark.slow
def test_a_seed_repeats_and_a_bar_changes_nothing(linear, capsys):
    first, again, other = (run_linear(linear[0], **s) for s in ({}, {"progress": True}, {"seed": 1}))
    capsys.readouterr()
    draws = flatten(first.draws)
    np.testing.assert_array_equal(draws, flatten(again.draws))
    assert again.datum_gradients == first.datum_gradients
    assert np.all(flatten(other.draws)[:, -1] != draws[:, -1])
    assert np.all(draws[0, -1] != draws[1, -1])


@pytest.mark.slow
def test_moments_of_a_skewed_posterior_in_float64():
    """Counts with rate e^φ and a Gamma(1, 1) prior: e^φ ~ Gamma(2, 4)."""

    def density(phi):
        return np.exp(2 * phi - 4 * np.exp(phi))

    def moment(power, centre=0.0):
        return integrate.quad(lambda phi: (phi - centre) ** power * density(phi), -25, 5)[0]

    mean = moment(1) / moment(0)
    sd = (moment(2, mean) / moment(0)) ** 0.5
    expected = np.array([mean, sd, moment(3, mean) / moment(0) / sd**3])
    assert expected[2] < -0.7
    with jax.enable_x64(True):
        counts = jnp.array([0.0, 1.0, 0.0], jnp.float32)
        target = ewsg.Target(lambda phi, y: y * phi - jnp.exp(phi), lambda phi: phi - jnp.exp(phi), counts)
        result = reference.nuts(target, np.float32(0.0), num_chains=16, num_warmup=300, num_draws=4000)
    assert result.draws.dtype == np.float64
    by_chain = [[d.mean(), d.std(), np.mean((d - d.mean()) ** 3) / d.std() ** 3] for d in result.draws]
    error = np.std(by_chain, axis=0, ddof=1) / 4
    assert np.all(error < 0.05)
    assert np.all(np.abs(np.mean(by_chain, axis=0) - expected) < 4 * error)


def funnel(calls):
    """Neal's funnel, whose neck no step size fits; it notes each evaluation of its gradient."""

    @jax.custom_vjp
    def log_prior(p):
        return -(p["v"] ** 2) / 18

    def backward(p, cotangent):
        jax.debug.callback(lambda _: calls.append(1), p["v"])
        return ({"v": -cotangent * p["v"] / 9, "x": jnp.zeros_like(p["x"])},)

    log_prior.defvjp(lambda p: (log_prior(p), p), backward)

    def log_likelihood(p, x):
        return -0.5 * x * (p["x"] ** 2 * jnp.exp(-p["v"]) + p["v"])

    return ewsg.Target(log_likelihood, log_prior, jnp.ones(9))


def test_divergences_and_evaluated_gradients_are_counted():
    calls = []
    init = {"v": jnp.array(0.0), "x": jnp.array(1.0)}
    result = reference.nuts(funnel(calls), init, num_chains=1, num_warmup=60, num_draws=200)
    jax.effects_barrier()
    assert result.datum_gradients == 9 * len(calls)
    assert len(calls) > 260
    assert 0 < result.divergences < 200
    assert np.all(np.isfinite(result.mean))
    assert result.seconds > 0


@pytest.mark.float32
@pytest.mark.parametrize(
    ("init", "settings", "message"),
    [
        ({"intercept": 0.0, "slope": jnp.full(2, jnp.nan)}, {}, "NaN or infinite"),
        ({"intercept": 0, "slope": jnp.zeros(2)}, {}, "must be floating-point"),
        ({"intercept": 1e25, "slope": jnp.zeros(2)}, {}, "the log density is -inf at the start of chain 0"),
        ({"intercept": 1e3, "slope": jnp.zeros(2)}, {}, "too few digits in float32"),
        (start, {"temperature": 0.0}, "temperature must be positive"),
        (start, {"num_chains": 0}, "num_chains must be a whole number of at least 1"),
        (start, {"num_warmup": 3}, "num_warmup must be a whole number of at least 20"),
        (start, {"num_draws": 3}, "num_draws must be a whole number of at least 4"),
    ],
)
def test_bad_input_is_refused(linear, init, settings, message):
    with pytest.raises(InputError, match=message):
        reference.nuts(linear[0], init, **settings)
