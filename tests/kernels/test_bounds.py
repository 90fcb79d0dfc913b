"""Lower bounds of likelihoods: that they hold, where they touch, and how wrong ones are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fireflies import assert_mean, logistic, normal_data
from skewed import START, last_draws, log_likelihood

import ewsg
from ewsg.errors import InputError
from ewsg.interface import Cost
from ewsg.kernels import AbstractBound, FlyMC, GaussianTaylorBound, LogisticBound
from ewsg.kernels.bounds.base import Prepared


def test_cost_of_preparing_the_normal_bound(skewed):
    assert ewsg.compose(skewed, FlyMC(GaussianTaylorBound(), 1.0)).preparation_cost() == Cost(2 * 5)
    assert ewsg.compose(skewed, FlyMC(GaussianTaylorBound(mode=(1.0, 0.0)), 1.0)).preparation_cost() == Cost(5)


CASES = {
    "logistic": (lambda: logistic(60, 3), LogisticBound(), 3.0),
    "logistic, tangent elsewhere": (lambda: logistic(60, 3), LogisticBound(np.array([0.0, 4.0, -1.0])), 3.0),
    "datum": (lambda: ewsg.Target(log_likelihood, None, normal_data()), GaussianTaylorBound(), 1.0),
    "largest": (lambda: ewsg.Target(log_likelihood, None, normal_data()), GaussianTaylorBound("largest"), 1.0),
    "normal, elsewhere": (
        lambda: ewsg.Target(log_likelihood, None, normal_data()),
        GaussianTaylorBound(mode=(3.0, -0.5)),
        1.0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_everywhere_and_touch_at_the_mode(name):
    """2,000 positions at all distances × all data, in float64; sums and gaps agree with the definition."""
    build, bound, scale = CASES[name]
    with jax.enable_x64(True):
        target = build()
        data = jax.tree.map(lambda leaf: leaf.astype(np.float64), target.data.arrays)
        bound, statistics, _ = bound.prepare(ewsg.Target(target.likelihood, None, data))
        mode = jnp.stack([jnp.asarray(entry) for entry in bound.mode])
        rng = np.random.default_rng(0)
        offsets = rng.normal(size=(2_000, mode.size)) * np.exp(rng.uniform(-9, 1, size=(2_000, 1)))
        points = jnp.concatenate([mode[None], mode[None] + scale * offsets])
        values = jax.vmap(lambda p: target.likelihood.values(p, data))(points)
        lower = jax.vmap(lambda p: bound.log_bounds(p, data))(points)
        gaps = jax.vmap(lambda p: bound.gap(p, data, target.likelihood).value)(points)
        sums = jax.vmap(lambda p: bound.log_bound_sum(p, statistics))(points)
        sizes = 1 + np.abs(values) + np.abs(lower)
        assert np.max((lower - values) / sizes) < 1e-14
        np.testing.assert_allclose(lower[0], values[0], rtol=1e-12, atol=1e-13)
        assert np.max(np.abs(gaps - (values - lower)) / sizes) < 1e-13
        totals = np.asarray(lower).sum(1)
        np.testing.assert_allclose(sums - sums[0], totals - totals[0], rtol=1e-9, atol=1e-9 * np.abs(totals).max())
        assert np.mean(gaps > 1e-3) > 0.1
        near = np.argmin(np.abs(np.linalg.norm(offsets, axis=1) - 1e-2)) + 1
        assert np.mean(gaps[near]) < 0.05
        one = bound.log_bound(points[near], jax.tree.map(lambda leaf: leaf[7], data))
        np.testing.assert_allclose(one, lower[near, 7], rtol=1e-12)


def test_normal_gap_keeps_its_digits():
    """In float32, where ℓ − log B would be all rounding error: gaps of 10⁻¹⁰ to 7 digits."""
    x = normal_data()
    target = ewsg.Target(log_likelihood, None, x.astype(np.float32))
    narrow = GaussianTaylorBound().prepare(target).bound
    point = np.array([x.mean() + 1e-3, np.log(x.std()) + 1e-3], np.float32)
    found = narrow.gap(jnp.asarray(point), target.data.arrays, target.likelihood).value
    with jax.enable_x64(True):
        mode = tuple(jnp.asarray(float(entry), jnp.float64) for entry in narrow.mode)
        wide = GaussianTaylorBound(mode=mode, largest=1.0)
        exact = np.asarray(wide.gap(jnp.asarray(point, np.float64), jnp.asarray(x), target.likelihood).value)
    assert 0 < np.median(exact[exact > 0]) < 1e-8
    np.testing.assert_allclose(found, exact, rtol=2e-3)


def test_the_bound_is_tangent_at_the_mode():
    target = logistic(300, 3)
    bound, _, cost = LogisticBound().prepare(target)
    assert cost.datum_gradients < 12 * 300 * (3 + 1)
    assert np.max(np.abs(target.full_force(bound.mode))) < 0.1
    separable = ewsg.models.logistic(np.array([[1.0], [2.0], [-1.0]]), [1, 1, 0], prior_scale=50.0)
    bound = LogisticBound().prepare(separable).bound
    assert abs(float(separable.full_force(bound.mode)[0])) < 1e-3


class Lowered(AbstractBound):
    """exp(−½(x − θ)²) times e^{−drop}; by default right."""

    drop: float = 0.7
    slope: float = 1.0

    def prepare(self, target):
        x = target.data.arrays
        return Prepared(self, (float(x.size), jnp.sum(x)), Cost(0))

    def log_bound(self, params, datum):
        return -0.5 * (datum - params) ** 2 - self.drop

    def log_bound_sum(self, params, statistics):
        count, total = statistics
        return self.slope * params * total - 0.5 * count * params**2


class Reaching(Lowered):
    """Right only where |θ| < 4."""

    def log_bound(self, params, datum):
        return -0.5 * (datum - params) ** 2 - 0.7 + 2 * jnp.maximum(jnp.abs(params) - 4, 0)

    def log_bound_sum(self, params, statistics):
        count, _ = statistics
        return super().log_bound_sum(params, statistics) + 2 * count * jnp.maximum(jnp.abs(params) - 4, 0)


@pytest.fixture(scope="module")
def located():
    return ewsg.Target(lambda theta, x: -0.5 * (x - theta) ** 2, None, np.array([0.5, 1.0, 1.2, 2.0], np.float32))


def test_a_bound_of_ones_own(located):
    """θ ~ N(mean, 1/4), whatever the bound; half of the data (e^−0.7) are dark."""
    draws, run = last_draws(located, FlyMC(Lowered(), 0.8, resample=2), 100, init=jnp.array(0.0))
    assert_mean(draws.astype(np.float64), 1.175)
    assert_mean((draws.astype(np.float64) - 1.175) ** 2, 0.25)
    bright = run.stats["bright"][:, -1] / 4
    assert bright.mean() == pytest.approx(1 - np.exp(-0.7), abs=0.01)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (Lowered(drop=-0.25), "Lowered is not a lower bound.* exceeds log_likelihood by 0.25"),
        (Lowered(slope=1.1), "log_bound_sum changes by"),
        (Lowered(drop=float("nan")), "exceeds log_likelihood by nan"),
        (Reaching(), "Reaching is not a lower bound"),
    ],
    ids=str,
)
def test_an_invalid_bound_is_refused(located, bound, message):
    sampler = ewsg.compose(located, FlyMC(bound, 1.0))
    with pytest.raises(InputError, match=message):
        sampler.check(jnp.zeros(3))


def test_sample_refuses_an_invalid_bound(located):
    with pytest.raises(InputError, match="is not a lower bound"):
        ewsg.sample(located, FlyMC(Lowered(drop=-0.25), 1.0), init=jnp.array(0.0), num_steps=5)


def test_valid_bounds_pass_the_check(located, skewed):
    ewsg.compose(located, FlyMC(Lowered(), 1.0)).check(jnp.zeros(3))
    for remainder in ("datum", "largest"):
        ewsg.compose(skewed, FlyMC(GaussianTaylorBound(remainder), 0.5)).check(START[None])
    for n in (50, 20_000):
        target = logistic(n, 3)
        ewsg.compose(target, FlyMC(LogisticBound(), 2 / np.sqrt(n))).check(jnp.zeros((2, 3)))


def test_a_bound_for_another_likelihood_is_refused():
    """The normal density without its constant, and with a wrong scale."""
    data = normal_data().astype(np.float32)
    kernel = FlyMC(GaussianTaylorBound(), 0.1)
    start = jnp.array([[1.5, 0.7]])
    without = ewsg.Target(lambda p, x: -0.5 * ((x - p[0]) * jnp.exp(-p[1])) ** 2 - p[1], None, data)
    with pytest.raises(InputError, match=r"is for a different likelihood: its gap differs .* by 0.919"):
        ewsg.compose(without, kernel).check(start)
    narrow = ewsg.Target(lambda p, x: log_likelihood(jnp.stack([p[0], p[1] - 0.1]), x), None, data)
    with pytest.raises(InputError, match="is not a lower bound"):
        ewsg.compose(narrow, kernel).check(start)


def test_violations_during_the_run_are_counted(located):
    """A bound that is wrong only far away, met by a chain that is there."""
    sampler = ewsg.compose(located, FlyMC(Reaching(), 0.01, resample=2))

    def violations(theta):
        state = sampler.init(jax.random.key(0), jnp.array(theta))
        _, info = sampler.step(jax.random.key(1), state)
        return info.estimate.stats["bound_violations"]

    assert violations(1.0) == 0
    assert violations(6.0) == 2  # no datum is bright there


def test_equal_data_have_no_most_likely_scale():
    target = ewsg.Target(log_likelihood, None, np.ones(4, np.float32))
    with pytest.raises(InputError, match="all data are equal"):
        ewsg.compose(target, FlyMC(GaussianTaylorBound(), 1.0))
