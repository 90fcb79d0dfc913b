"""Regressions on published data, and a Poisson regression on simulated counts."""

import jax.numpy as jnp
import numpy as np

from .. import datasets, models
from .base import Problem


def _design(features: np.ndarray) -> np.ndarray:
    """Standardised columns and an intercept."""
    return models.with_intercept(datasets.standardize(features.astype(np.float32))[0])


def pima() -> Problem:
    """Diabetes in 614 of the Pima women (80 %), prior N(0, 10 I)."""
    table = datasets.load("pima")
    train, _ = datasets.train_test_split(768, 0.8, 0)
    design = _design(table.features[train])
    return Problem(
        title="Pima, logistic, n = 614, d = 9",
        target=models.logistic(design, table.labels[train], prior_scale=10**0.5),
        init=jnp.zeros(design.shape[1]),
        step_size=0.01,
        friction=10.0,
        data_per_step=40,
        num_draws=8000,
    )


def parkinsons() -> Problem:
    """Parkinson's disease from 22 collinear voice measurements; a skewed posterior."""
    table = datasets.load("parkinsons")
    design = _design(table.features)
    return Problem(
        title="Parkinsons, logistic, n = 195, d = 23",
        target=models.logistic(design, table.labels, prior_scale=1.0),
        init=jnp.zeros(design.shape[1]),
        step_size=0.02,
        friction=6.0,
        data_per_step=10,
        num_draws=4000,
    )


def a9a() -> Problem:
    """Income above 50,000 dollars from 123 binary features of 32,561 people; seen through the log-odds of 20 of them.

    The features come in groups that sum to one: the coefficients alone have directions as wide as the prior.
    """
    table = datasets.load("a9a")
    design = models.with_intercept(table.features.astype(np.float32))
    shown = jnp.asarray(design[::1600][:20])
    return Problem(
        title="a9a, logistic, n = 32,561, d = 124",
        target=models.logistic(design, table.labels, prior_scale=1.0),
        init=jnp.zeros(design.shape[1]),
        step_size=0.001,
        friction=60.0,
        data_per_step=100,
        observe=lambda theta: shown @ theta,
        is_stiff=True,
        num_draws=1000,
        num_warmup=300,
    )


def softmax() -> Problem:
    """Quality of red wine, in three classes, from 11 measurements; seen through contrasts with the first class.

    One vector added to all classes changes no probability: that direction has the prior's width and is left out.
    """
    table = datasets.load("wine")
    design = _design(table.features)
    labels = np.digitize(table.labels, [5.5, 6.5])
    return Problem(
        title="red wine, softmax, n = 1,599, d = 36",
        target=models.softmax(design, labels, prior_scale=1.0),
        init=jnp.zeros((design.shape[1], 3)),
        step_size=0.003,
        friction=25.0,
        data_per_step=40,
        observe=lambda theta: theta[:, 1:] - theta[:, :1],
        num_draws=1000,
    )


def poisson() -> Problem:
    """Simulated counts of mean 3, with rates from 0.1 to 60: gradients with heavy tails."""
    rng = np.random.default_rng(7)
    design = models.with_intercept(rng.normal(size=(2000, 5)).astype(np.float32))
    coefficients = np.array([0.5, 0.5, -0.4, 0.3, 0.2, -0.6])
    counts = rng.poisson(np.exp(design @ coefficients))
    return Problem(
        title="Poisson regression, n = 2,000, d = 6",
        target=models.poisson(design, counts, prior_scale=1.0),
        init=jnp.zeros(design.shape[1]),
        step_size=2e-4,
        friction=80.0,
        data_per_step=40,
        num_draws=4000,
    )
