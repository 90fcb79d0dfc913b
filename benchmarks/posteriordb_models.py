"""Eight models of posteriordb that are sums over data, written from their published Stan programs.

The data are simulated: as many rows, columns of the same kind, scale and correlation, and labels from the model itself
at about the published estimates. What samplers find hard in these posteriors (raw units, correlated columns, flat
priors, scales, counties with one house) is in the design, and that is kept; the published numbers are not to be had
from them. Parameters are unconstrained, as in Stan: log of a scale, logit of a share, log of a gap between ordered
means; each log prior includes the log Jacobian of that change of variables.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats

import ewsg


class Model(NamedTuple):
    """A posterior with a start, and the constrained parameters as a function of the unconstrained ones."""

    target: ewsg.Target
    init: dict[str, np.ndarray]
    constrain: Callable


def regression(x: np.ndarray, y: np.ndarray, log_prior: Callable, center: float = 0.0) -> Model:
    """y ~ N(x β, σ²); `log_prior` of β and σ, to which the Jacobian log σ of log σ is added here."""

    def log_likelihood(params, datum):
        row, value = datum
        return stats.norm.logpdf(value, row @ params["beta"], jnp.exp(params["log_sigma"]))

    def log_density(params):
        return log_prior(params["beta"], jnp.exp(params["log_sigma"])) + params["log_sigma"]

    init = {"beta": np.zeros(x.shape[1], np.float32), "log_sigma": np.float32(0)}
    init["beta"][0] = center
    target = ewsg.Target(log_likelihood, log_density, _single((x, y)), init=init)
    return Model(target, init, lambda params: {"beta": params["beta"], "sigma": jnp.exp(params["log_sigma"])})


def diamonds() -> Model:
    """diamonds: n = 5,000, 24 centred columns, β ~ N(0, 1), intercept ~ t₃(8, 10), σ ~ half-t₃(0, 10).

    Columns: six measurements of one size (correlations up to 0.99), depth, and 17 contrasts of three ordered factors.
    """
    random, n = np.random.default_rng(1), 5000
    size = 0.58 * random.normal(size=(n, 1)) - 0.39
    measured = size @ np.array([[1.0, 0.8, 0.7, 0.7, 0.45, 0.35]]) + 0.08 * random.normal(size=(n, 6))
    depth = 1.4 * random.normal(size=(n, 1))
    factors = [_contrasts(random.binomial(levels - 1, share, n), levels) for levels, share in _FACTORS]
    x = np.column_stack([measured, depth, *factors])
    x -= x.mean(0)
    beta = 0.1 * random.normal(size=24)
    beta[0] = 1.7
    y = 7.8 + x @ beta + 0.13 * random.normal(size=n)

    def log_prior(beta, sigma):
        normal = stats.norm.logpdf(beta[1:]).sum()
        return normal + stats.t.logpdf(beta[0], 3, 8, 10) + stats.t.logpdf(sigma, 3, 0, 10)

    return regression(_with_ones(x), y, log_prior)


_FACTORS = ((5, 0.7), (7, 0.4), (8, 0.4))
"""Levels of cut, colour and clarity, and where between the lowest and the highest they are."""


def nes() -> Model:
    """nes (1972): n = 1,350, nine coefficients under flat priors, σ flat: party on ideology, race, age, income."""
    random, n = np.random.default_rng(2), 1350
    ideology = np.clip(np.round(random.normal(4.2, 1.3, n)), 1, 7)
    race = np.where(random.random(n) < 0.1, 2.0, np.where(random.random(n) < 0.05, 1.5, 1.0))
    ages = random.choice(4, n, p=[0.28, 0.27, 0.3, 0.15])
    education = np.clip(np.round(random.normal(2.4, 0.9, n)), 1, 4)
    gender = (random.random(n) < 0.56) * 1.0
    income = np.clip(np.round(0.4 * education + random.normal(2.1, 1.0, n)), 1, 5)
    x = _with_ones(np.column_stack([ideology, race, *(ages == k for k in (1, 2, 3)), education, gender, income]))
    beta = np.array([1.8, 0.48, -1.1, -0.19, -0.05, 0.5, 0.3, 0.0, 0.16])
    return regression(x, x @ beta + 1.9 * random.normal(size=n), lambda beta, sigma: 0.0)


def logearn_interaction() -> Model:
    """earnings-logearn_interaction: n = 1,192; height in inches, sex, their product; flat priors."""
    random, n = np.random.default_rng(3), 1192
    male = (random.random(n) < 0.43) * 1.0
    height = np.round(64.5 + 5.5 * male + random.normal(0, 2.7, n))
    x = _with_ones(np.column_stack([height, male, height * male]))
    y = x @ np.array([8.4, 0.017, -0.079, 0.0074]) + 0.88 * random.normal(size=n)
    return regression(x, y, lambda beta, sigma: 0.0)


def kidscore_interaction() -> Model:
    """kidiq-kidscore_interaction: n = 434; school, mother's IQ, their product; flat β, σ ~ half-Cauchy(0, 2.5)."""
    random, n = np.random.default_rng(4), 434
    school = (random.random(n) < 0.79) * 1.0
    iq = np.clip(random.normal(92 + 10 * school, 14.5), 71, 139)
    x = _with_ones(np.column_stack([school, iq, school * iq]))
    y = x @ np.array([-11.5, 51.3, 1.1, -0.48]) + 18 * random.normal(size=n)
    return regression(x, y, lambda beta, sigma: stats.cauchy.logpdf(sigma, 0, 2.5))


def wells_interaction() -> Model:
    """wells-wells_interaction: n = 3,020; distance in 100 m, arsenic, their product; logistic, flat priors."""
    random, n = np.random.default_rng(5), 3020
    distance = random.gamma(1.6, 0.3, n)
    arsenic = 0.5 + random.gamma(1.15, 1.0, n)
    x = _with_ones(np.column_stack([distance, arsenic, distance * arsenic]))
    y = random.random(n) < 1 / (1 + np.exp(-x @ np.array([-0.15, -0.58, 0.56, -0.18])))

    def log_likelihood(beta, datum):
        row, sign = datum
        return -jax.nn.softplus(-sign * (row @ beta))

    init = np.zeros(4, np.float32)
    target = ewsg.Target(log_likelihood, None, _single((x, np.where(y, 1, -1))), init=init)
    return Model(target, init, lambda beta: beta)


def low_dim_gauss_mix(from_quartiles: bool) -> Model:
    """low_dim_gauss_mix: n = 1,000; μ₁ < μ₂ ~ N(0, 2²), σ ~ half-N(0, 2²), share ~ Beta(5, 5).

    Starts where Stan's interval of starts has its middle (μ = −½, ½), or with the means at the quartiles of the data.
    """
    random = np.random.default_rng(6)
    y = random.normal(np.where(random.random(1000) < 0.63, -2.75, 2.75), 1.0)

    def constrain(params):
        first = params["first_mean"]
        means = jnp.stack([first, first + jnp.exp(params["log_gap"])])
        return {"mu": means, "sigma": jnp.exp(params["log_sigma"]), "theta": jax.nn.sigmoid(params["logit_theta"])}

    def log_likelihood(params, value):
        own, logit = constrain(params), params["logit_theta"]
        first, second = stats.norm.logpdf(value, own["mu"], own["sigma"])
        return jnp.logaddexp(jax.nn.log_sigmoid(logit) + first, jax.nn.log_sigmoid(-logit) + second)

    def log_prior(params):
        own, logit = constrain(params), params["logit_theta"]
        log_shares = jax.nn.log_sigmoid(logit) + jax.nn.log_sigmoid(-logit)
        jacobian = params["log_gap"] + params["log_sigma"].sum() + log_shares
        scales = stats.norm.logpdf(own["mu"] / 2).sum() + stats.norm.logpdf(own["sigma"] / 2).sum()
        return scales + 4 * log_shares + jacobian

    names = ("first_mean", "log_gap", "logit_theta")
    init = {name: np.float32(0) for name in names} | {"log_sigma": np.zeros(2, np.float32)}
    low, high = np.quantile(y, [0.25, 0.75]) if from_quartiles else (-0.5, 0.5)
    init |= {"first_mean": np.float32(low), "log_gap": np.float32(np.log(high - low))}
    return Model(ewsg.Target(log_likelihood, log_prior, y.astype(np.float32), init=init), init, constrain)


def radon(centred: bool) -> Model:
    """radon_mn-radon_hierarchical_intercept: n = 919 houses in 85 counties, one to 116 in each.

    log radon ~ N(α_county + β₁ log uranium + β₂ floor, σ_y²), α ~ N(μ, σ_α²); σ ~ half-N(0, 1), μ, β ~ N(0, 10²).
    Not centred: α = μ + σ_α z, and z ~ N(0, 1) is sampled.
    """
    random, n, counties = np.random.default_rng(7), 919, 85
    weights = random.pareto(1.0, counties) + 0.3
    county = np.concatenate([np.arange(counties), random.choice(counties, n - counties, p=weights / weights.sum())])
    uranium = random.normal(0, 0.37, counties)
    floor = (random.random(n) < 0.17) * 1.0
    alpha = random.normal(1.46, 0.16, counties)
    y = alpha[county] + 0.7 * uranium[county] - 0.66 * floor + 0.76 * random.normal(size=n)
    data = (county.astype(np.int32), *_single((uranium[county], floor, y)))

    def constrain(params):
        spread = jnp.exp(params["log_sigma_alpha"])
        alpha = params["alpha"] if centred else params["mu"] + spread * params["alpha"]
        own = {"alpha": alpha, "beta": params["beta"], "mu": params["mu"]}
        return own | {"sigma_alpha": spread, "sigma_y": jnp.exp(params["log_sigma_y"])}

    def log_likelihood(params, datum):
        own, (county, uranium, floor, value) = constrain(params), datum
        mean = own["alpha"][county] + own["beta"][0] * uranium + own["beta"][1] * floor
        return stats.norm.logpdf(value, mean, own["sigma_y"])

    def log_prior(params):
        own = constrain(params)
        center, spread = (own["mu"], own["sigma_alpha"]) if centred else (0.0, 1.0)
        groups = stats.norm.logpdf(params["alpha"], center, spread).sum()
        wide = stats.norm.logpdf(own["mu"] / 10) + stats.norm.logpdf(own["beta"] / 10).sum()
        scales = stats.norm.logpdf(own["sigma_alpha"]) + stats.norm.logpdf(own["sigma_y"])
        return groups + wide + scales + params["log_sigma_alpha"] + params["log_sigma_y"]

    init = {name: np.float32(0) for name in ("mu", "log_sigma_alpha", "log_sigma_y")}
    init |= {"alpha": np.zeros(counties, np.float32), "beta": np.zeros(2, np.float32)}
    return Model(ewsg.Target(log_likelihood, log_prior, data, init=init), init, constrain)


MODELS: dict[str, Callable[[], Model]] = {
    "diamonds": diamonds,
    "nes": nes,
    "logearn_interaction": logearn_interaction,
    "kidscore_interaction": kidscore_interaction,
    "wells_interaction": wells_interaction,
    "low_dim_gauss_mix": lambda: low_dim_gauss_mix(from_quartiles=False),
    "low_dim_gauss_mix, from quartiles": lambda: low_dim_gauss_mix(from_quartiles=True),
    "radon, not centred": lambda: radon(centred=False),
    "radon, centred": lambda: radon(centred=True),
}
"""By posteriordb's names."""


def _with_ones(x: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(x)), x])


def _single(arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(array, np.float32) for array in arrays)


def _contrasts(values: np.ndarray, levels: int) -> np.ndarray:
    """Orthogonal polynomials of an ordered factor, as R's contr.poly."""
    basis = np.linalg.qr(np.vander(np.arange(levels) - (levels - 1) / 2, increasing=True))[0][:, 1:]
    return basis[values]
