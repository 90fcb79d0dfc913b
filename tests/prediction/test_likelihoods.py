"""Log-likelihoods of single data: every block size gives the same numbers, and what does not fit is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats as stats

import ewsg
from ewsg.errors import InputError
from ewsg.prediction import log_likelihood, log_likelihood_blocks

COUNTS = np.array([0.0, 2, 1, 5, 3, 1, 0], np.float32)
FEATURES = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
TARGET = ewsg.models.poisson(FEATURES, COUNTS)
DRAWS = np.random.default_rng(1).normal(size=(2, 6, 2)).astype(np.float32)
EXACT = stats.poisson.logpmf(COUNTS, np.exp(DRAWS.astype(float) @ FEATURES.T.astype(float)))


def test_every_datum_at_every_draw(monkeypatch):
    np.testing.assert_allclose(log_likelihood(TARGET, DRAWS), EXACT, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(log_likelihood(TARGET, DRAWS, [6, 0, 6]), EXACT[..., [6, 0, 6]], rtol=1e-4, atol=1e-5)
    monkeypatch.setattr("ewsg.prediction.likelihoods._ENTRIES_PER_BLOCK", 2 * 6 * 3)
    np.testing.assert_allclose(log_likelihood(TARGET, DRAWS), EXACT, rtol=1e-4, atol=1e-5)


def test_blocks_are_streamed_and_computed_by_one_program():
    sizes = []
    for rows, values in log_likelihood_blocks(TARGET, DRAWS, block=3):
        np.testing.assert_allclose(values, EXACT[..., rows], rtol=1e-4, atol=1e-5)
        sizes.append(len(rows))
    assert sizes == [3, 3, 1]


def test_a_run_and_held_out_data():
    held_out = ewsg.models.poisson(FEATURES[:3] + 1, COUNTS[:3])
    settings = {"num_chains": 2, "num_steps": 8, "thin": 2, "progress": False}
    run = ewsg.sample(TARGET, ewsg.Uniform(2), ewsg.Overdamped(step_size=1e-3), **settings)
    exact = stats.poisson.logpmf(COUNTS[:3], np.exp(run.draws @ (FEATURES[:3] + 1).T))
    np.testing.assert_allclose(run.log_likelihood(held_out), exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("draws", "options", "message"),
    [
        (DRAWS, {"rows": [7]}, "rows run from 7 to 7: the target has 7 data"),
        (DRAWS, {"rows": [-1, 2]}, "rows run from -1 to 2"),
        (DRAWS, {"rows": np.arange(7) > 3}, "np.flatnonzero"),
        (DRAWS, {"rows": []}, "at least one"),
        (DRAWS, {"block": 0}, "block must be a whole number"),
        (DRAWS[0], {}, "not parameters of this target"),
        ({"w": DRAWS}, {}, "not parameters of this target"),
        (DRAWS * np.nan, {}, "NaN or infinite"),
    ],
)
def test_what_does_not_fit_is_one_sentence(draws, options, message):
    with pytest.raises(InputError, match=message) as error:
        log_likelihood(TARGET, draws, **options)
    assert "\n" not in str(error.value)


def test_more_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr("ewsg._core.memory.available_bytes", lambda: 100)
    with pytest.raises(InputError, match=r"log-likelihoods of 7 data needs .*: give rows="):
        log_likelihood(TARGET, jnp.asarray(DRAWS))
