"""Effective sample size and R-hat are ArviZ's, to rounding."""

import numpy as np
import pytest
from oracles import statistic

from ewsg._core.ess import ess, rhat


def autoregressive(chains: int, draws: int, correlation: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(chains, draws))
    for t in range(1, draws):
        values[:, t] = correlation * values[:, t - 1] + np.sqrt(1 - correlation**2) * values[:, t]
    return values


def agree(draws: np.ndarray) -> None:
    np.testing.assert_allclose(ess(draws), statistic("ess", draws), rtol=1e-9)
    np.testing.assert_allclose(rhat(draws), statistic("rhat", draws), rtol=1e-9)


@pytest.mark.parametrize("correlation", [-0.7, 0.0, 0.9, 0.999])
@pytest.mark.parametrize(("chains", "draws"), [(4, 500), (1, 101), (3, 37), (2, 1000)])
def test_autocorrelated_chains(chains, draws, correlation):
    agree(autoregressive(chains, draws, correlation))


@pytest.mark.parametrize("draws", range(4, 14))
def test_few_draws(draws):
    for seed in range(5):
        agree(autoregressive(4, draws, 0.5, seed))


def test_ties_outliers_and_chains_apart():
    rng = np.random.default_rng(3)
    rounded = np.round(autoregressive(4, 300, 0.8), 1)
    accepted_rarely = np.repeat(autoregressive(4, 60, 0.2), 5, axis=1)
    heavy = rng.standard_cauchy((4, 300))
    apart = rng.normal(size=(4, 300)) + np.arange(4)[:, None]
    wider = rng.normal(size=(4, 300)) * np.array([1, 1, 1, 5])[:, None]
    agree(np.stack([rounded, accepted_rarely, heavy, apart, wider], axis=-1))
    assert rhat(wider) > 1.05  # which only the folded ranks see


def test_shapes_and_single_precision():
    draws = np.random.default_rng(4).normal(size=(4, 100, 2, 3)).astype(np.float32)
    assert ess(draws).shape == rhat(draws).shape == (2, 3)
    agree(draws)
    assert ess(draws[..., :0]).shape == (2, 0)


def test_nothing_to_say():
    constant = np.ones((4, 50))
    assert ess(constant) == 200 == statistic("ess", constant)
    assert np.isnan(rhat(constant))
    assert np.isnan(ess(np.ones((4, 3))))
    assert np.isnan(rhat(autoregressive(1, 100, 0.0)))
    draws = np.random.default_rng(5).normal(size=(2, 100, 2))
    draws[1, 3, 0] = np.nan
    np.testing.assert_array_equal(np.isnan(ess(draws)), [True, False])
    np.testing.assert_array_equal(np.isnan(rhat(draws)), [True, False])
    assert ess(np.zeros((0, 100, 2))).shape == (2,)
