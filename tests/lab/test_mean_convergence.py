"""Convergence of the mean: distances without their noise."""

import numpy as np
import pytest

from ewsg.lab.experiments import mean_convergence


def test_distances_of_means_are_free_of_noise():
    rng = np.random.default_rng(0)
    exact = {h: np.zeros(60) for h in mean_convergence.STEPS}
    noise = {h: 0.1 + rng.normal(size=(10, 60)) for h in mean_convergence.STEPS}
    for value, error in zip(*mean_convergence._distances(noise, exact), strict=True):
        assert value**2 == pytest.approx(0.01, abs=4 * 2 * value * error)
