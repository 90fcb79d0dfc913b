"""A small posterior with skewed marginals: its densities, its moments by quadrature, draws compared with them."""

import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np

import ewsg

CHAINS = 20_000
OBSERVED = np.array([0.1, 0.4, 0.5, 1.1, 4.0], np.float32)
START = jnp.array([1.0, 0.4])


def log_likelihood(params, x):
    return stats.norm.logpdf(x, params[0], jnp.exp(params[1]))


def log_prior(params):
    return stats.norm.logpdf(params[0], 0.0, 2.0) + stats.norm.logpdf(params[1], 0.0, 1.0)


def quadrature(temperature):
    """Mean, sd, and skewness of (μ, log σ), and their correlation, for `skewed` at a temperature."""
    mu, s = np.linspace(-14, 16, 1501)[:, None], np.linspace(-2.5, 4, 1301)[None]
    log_density = -(mu**2) / 8 - s**2 / 2
    for x in OBSERVED.astype(np.float64):
        log_density = log_density - 0.5 * ((x - mu) * np.exp(-s)) ** 2 - s
    weight = np.exp((log_density - log_density.max()) / temperature)
    weight /= weight.sum()
    mean = np.array([(weight * mu).sum(), (weight * s).sum()])
    sd = np.sqrt([(weight * (mu - mean[0]) ** 2).sum(), (weight * (s - mean[1]) ** 2).sum()])
    y = (mu - mean[0]) / sd[0], (s - mean[1]) / sd[1]
    return mean, sd, np.array([(weight * y[0] ** 3).sum(), (weight * y[1] ** 3).sum()]), (weight * y[0] * y[1]).sum()


def assert_skewed_law(draws, temperature, deviations=4.5):
    """First three moments and the correlation of independent draws within their Monte-Carlo error."""
    mean, sd, skewness, correlation = quadrature(temperature)
    assert skewness[1] > 0.25
    y = (np.asarray(draws, np.float64) - mean) / sd
    for values, expected in (
        (y, 0.0),
        (y**2, 1.0),
        (y**3, skewness),
        (y[:, 0] * y[:, 1], correlation),
    ):
        error = values.std(0) / np.sqrt(len(values))
        assert np.all(np.abs(values.mean(0) - expected) < deviations * error), (values.mean(0), expected, error)


def last_draws(target, kernel, num_steps, num_chains=CHAINS, init=START):
    options = {"num_chains": num_chains, "num_steps": num_steps, "discard": 0, "thin": num_steps}
    run = ewsg.sample(target, kernel, init=init, **options)
    assert run.ok.all()
    return run.draws[:, -1], run
