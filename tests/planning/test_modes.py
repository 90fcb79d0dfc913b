"""The search for the mode that a plan stands on: it goes on where subsamples stop, and names what it ends at."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import stats

import ewsg
from ewsg.planning import modes
from ewsg.target.mode import find_mode_from

RNG = np.random.default_rng(6)


def test_lbfgs_goes_on_where_the_search_on_subsamples_stops(monkeypatch):
    x = RNG.normal(size=(300, 3)).astype(np.float32)
    target = ewsg.models.logistic(x, x[:, 0] + RNG.normal(size=300) > 0)
    start = np.full(3, 20.0, np.float32)
    costs = []

    def impatient(*args, **options):
        found = find_mode_from(*args, **options | ({} if costs else {"max_passes": 1}))
        costs.append(found.cost.datum_gradients)
        return found

    assert ewsg.find_mode(target, start, method="subsamples", max_passes=1).distance > 1  # or this test shows nothing
    monkeypatch.setattr(modes, "find_mode_from", impatient)
    found, spent = modes.the_mode(target, start, np.random.default_rng(0))
    assert spent == sum(costs)
    assert len(costs) == 3
    true = ewsg.find_mode(target, start, method="newton")
    assert found.converged
    np.testing.assert_allclose((found.position - true.position) * np.sqrt(np.diag(true.precision)), 0, atol=0.3)


def test_a_scale_that_can_shrink_to_zero():
    """Parameters around a mean, with their own scale: the density has no bound where that scale tends to 0."""
    group = np.repeat(np.arange(10), 5)
    y = RNG.normal(size=50).astype(np.float32)

    def log_likelihood(params, datum):
        value, j = datum
        return stats.norm.logpdf(value, params["alpha"][j])

    def log_prior(params):
        own = stats.norm.logpdf(params["alpha"], params["mu"], jnp.exp(params["log_tau"]))
        return own.sum() - 0.5 * params["mu"] ** 2 + params["log_tau"]

    init = {"alpha": np.zeros(10, np.float32), "mu": np.float32(0), "log_tau": np.float32(0)}
    target = ewsg.Target(log_likelihood, log_prior, (y, group), init=init)
    with pytest.raises(ewsg.errors.NoPlan, match="a scale that can shrink to 0"):
        modes.the_mode(target, init, np.random.default_rng(0))
