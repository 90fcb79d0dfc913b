"""Theorem 3: slopes, and how sure they are."""

import numpy as np
import pytest

from ewsg import theory
from ewsg.errors import InputError


def test_slope_of_an_exact_power_law():
    x = np.geomspace(0.1, 10, 7)
    slope = theory.fit_slope(x, 3 * x**-1.5, error=0.1 * x**-1.5)
    assert slope.value == pytest.approx(-1.5)
    assert slope.low < -1.5 < slope.high
    exact = theory.fit_slope(x, 3 * x**2)
    assert exact.high - exact.low < 1e-6


@pytest.mark.parametrize("kind", ["independent", "correlated", "unknown"])
def test_slope_interval_covers_at_its_confidence(kind):
    rng = np.random.default_rng(4)
    x = np.geomspace(1, 100, 8)
    y = 2 / x
    relative = np.linspace(0.02, 0.08, 8) if kind != "unknown" else np.full(8, 0.05)
    correlation = 0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    correlation = correlation if kind == "correlated" else np.eye(8)
    covariance = correlation * np.outer(relative * y, relative * y)
    error = {"independent": relative * y, "correlated": covariance, "unknown": None}[kind]
    slopes = [theory.fit_slope(x, sample, error) for sample in rng.multivariate_normal(y, covariance, 600)]
    covered = np.mean([s.low < -1 < s.high for s in slopes])
    assert 0.92 < covered < 0.995
    assert np.mean([s.value for s in slopes]) == pytest.approx(-1, abs=0.01)


def test_slope_trusts_points_by_their_errors():
    x = np.array([1.0, 10.0, 100.0, 1000.0])
    y = np.array([1.0, 0.1, 0.01, 0.1])  # the last one is worthless, and says so
    assert theory.fit_slope(x, y, error=y * [0.001, 0.001, 0.001, 10.0]).value == pytest.approx(-1, abs=1e-4)


def test_slope_widens_where_the_points_leave_the_line():
    x = np.geomspace(1, 100, 6)
    bent = 1 / x * (1 + 0.3 * (np.arange(6) % 2))
    slope = theory.fit_slope(x, bent, error=1e-4 * bent)
    assert slope.high - slope.low > 0.05


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ([1.0, 2.0], [1.0, -1.0], [0.1, 0.1], "every y must be positive"),
        ([1.0, 1.0], [1.0, 1.0], [0.1, 0.1], "two different x"),
        ([1.0, 2.0], [1.0, 1.0], None, "three points"),
        ([1.0, 2.0], [1.0, 1.0], [0.1, 0.0], "every error must be positive"),
        ([1.0, 2.0], [1.0, 1.0], [0.1, 0.1, 0.1], "must have shape"),
    ],
)
def test_slope_refuses_what_has_no_logarithm_or_no_line(x, y, error, message):
    with pytest.raises(InputError, match=message):
        theory.fit_slope(x, y, error)
