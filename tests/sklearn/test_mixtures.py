import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from ewsg.sklearn._mixtures import central, normal_quantile, poisson_quantile

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("spread", [0.0, 0.1, 30.0])
def test_normal_quantiles(probability, spread):
    """Also of mixtures with far more than one mode."""
    mean, scale = spread * RNG.normal(size=(3, 40)), RNG.uniform(0.5, 2.0, 40)
    found = normal_quantile(mean, scale, probability)
    for row, quantile in zip(mean, found, strict=True):
        exact = scipy.optimize.brentq(
            lambda q, row=row: scipy.stats.norm.cdf(q, row, scale).mean() - probability, -500, 500
        )
        assert quantile == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95])
def test_poisson_quantiles(probability):
    rates = np.exp(RNG.normal(size=(5, 40)) + np.array([-6.0, -1.0, 0.0, 2.0, 6.0])[:, None])
    below = [scipy.stats.poisson.cdf(np.arange(20_000)[:, None], row).mean(1) for row in rates]
    exact = [np.argmax(cdf >= probability) for cdf in below]
    np.testing.assert_array_equal(poisson_quantile(rates, probability), exact)


def test_central_intervals():
    assert central(0.9) == pytest.approx((0.05, 0.95))
