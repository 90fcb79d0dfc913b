"""NumPyro models by planned runs of minibatches: the posterior is that of NumPyro's own NUTS."""

import numpy as np
import pytest
from numpyro_models import MODELS, answers, data

import ewsg

STANDARD_ERRORS = 4.0


@pytest.mark.parametrize("name", MODELS)
def test_means_and_sds_are_those_of_nuts(name):
    """Within four standard errors: those of the run, at most 0.025 sd when it has reached 0.05, and of NUTS."""
    target = ewsg.Target.from_numpyro(MODELS[name], *data(name))
    run = ewsg.sample(target, progress=False)
    assert run.verdict is not None
    assert run.verdict.word == "reached"
    assert not run.summary().warnings
    reference = answers(name)
    assert reference["divergences"] == 0
    assert set(run.draws) == set(reference["sites"])
    allowed = STANDARD_ERRORS * np.hypot(0.025, reference["ess"] ** -0.5)
    for site, expected in reference["sites"].items():
        draws = np.asarray(run.draws[site], np.float64)
        mean, sd = np.asarray(expected["mean"]), np.asarray(expected["sd"])
        assert draws.shape[2:] == mean.shape
        assert np.max(np.abs(draws.mean((0, 1)) - mean) / sd) < allowed, site
        assert np.max(np.abs(draws.std((0, 1)) / sd - 1)) < allowed, site
