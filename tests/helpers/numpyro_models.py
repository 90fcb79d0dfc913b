"""Four NumPyro models with their data, each written once for both kinds of plates; reference answers by NUTS.

`python tools/numpyro_answers.py` makes the answers again.
"""

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

ANSWERS = Path(__file__).with_name("numpyro_answers.json")
NUM_GROUPS = 6


def rows_of(size, subsample, *arrays):
    """The plate of the data, and the rows of these arrays that it chooses."""
    plate = numpyro.plate("data", size, subsample_size=subsample)
    with plate:
        return plate, [numpyro.subsample(array, event_dim=array.ndim - 1) for array in arrays]


def logistic(x, y, subsample=None):
    slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    plate, (x, y) = rows_of(len(y), subsample, x, y)
    with plate:
        numpyro.sample("y", dist.Bernoulli(logits=x @ slopes), obs=y)


def counts(x, y, subsample=None):
    """Negative binomial, with a positive concentration."""
    slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    concentration = numpyro.sample("concentration", dist.HalfNormal(5.0))
    numpyro.deterministic("dispersion", 1 / concentration)
    plate, (x, y) = rows_of(len(y), subsample, x, y)
    with plate:
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(x @ slopes), concentration), obs=y)


def hierarchical(group, y, subsample=None, num_groups=NUM_GROUPS):
    """Effects of groups, with a scale of their own."""
    center = numpyro.sample("center", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("groups", num_groups):
        effects = numpyro.sample("effects", dist.Normal(center, tau))
    plate, (group, y) = rows_of(len(y), subsample, group, y)
    with plate:
        numpyro.sample("y", dist.Normal(effects[group], sigma), obs=y)


def shares(y, subsample=None, total=20):
    """Dirichlet-multinomial: shares that sum to 1, and how much rows vary about them."""
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(y.shape[1])))
    spread = numpyro.sample("spread", dist.HalfNormal(20.0))
    plate, (y,) = rows_of(len(y), subsample, y)
    with plate:
        numpyro.sample("y", dist.DirichletMultinomial(spread * share, total_count=total), obs=y)


def data(name):
    """The arguments of a model."""
    rng = np.random.default_rng(7)
    if name in ("logistic", "counts"):
        x = np.concatenate([np.ones((600, 1)), rng.normal(size=(600, 2))], 1).astype(np.float32)
        linear = x @ np.array([0.5, -0.7, 0.3])
        if name == "logistic":
            return x, (linear + rng.logistic(size=600) > 0).astype(np.int32)
        return x, rng.poisson(np.exp(linear) * rng.gamma(2.0, 1 / 2.0, 600)).astype(np.int32)
    if name == "hierarchical":
        group = np.arange(600) % NUM_GROUPS
        effects = rng.normal(1.0, 0.7, NUM_GROUPS)
        return group.astype(np.int32), (effects[group] + rng.normal(0, 1.5, 600)).astype(np.float32)
    shares = rng.dirichlet(12 * np.array([0.5, 0.3, 0.2]), 300)
    return (np.stack([rng.multinomial(20, share) for share in shares]).astype(np.int32),)


MODELS = {"logistic": logistic, "counts": counts, "hierarchical": hierarchical, "shares": shares}


def answers(name):
    """Mean and sd of every parameter by name, and the smallest effective sample size behind them."""
    return json.loads(ANSWERS.read_text())[name]
