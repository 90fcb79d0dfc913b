"""The rule: predictions of bias and work, and the setting that is cheapest."""

import numpy as np
import pytest

from ewsg.planning import rule
from ewsg.planning.noise import Noise
from ewsg.result.paired import predicted_sd_error


def gaussian_noise(size: float) -> Noise:
    """Tilts of data whose forces differ by N(0, s² I): q ~ N(0, 2 s² d) along r, here with d = 1."""
    tilts = np.sqrt(2 * size) * np.random.default_rng(0).normal(size=20_000)
    return Noise(np.full(1, size), tilts[None])


def test_work_is_that_of_a_unit_gaussian():
    """error² · time of a mean, 2γ·1, and of an sd, ½(γ + 1/γ): the least of 2.5 γ + ½/γ is at γ = √0.2."""
    assert rule.work(0.0, 0.0) == pytest.approx(3.0)
    assert rule.work(2.0, 1.0) == pytest.approx(2.5 * 2 + 0.25)


def test_bias_falls_with_the_rate_as_its_square():
    noise = gaussian_noise(10.0)
    biases = np.array([noise.bias(rate, "weight") for rate in (1e3, 2e3, 4e3)])
    # E[p²D²]/6E[D²] ∝ 1/u², times ρ ∝ 1/u
    np.testing.assert_allclose(biases[:-1] / biases[1:], 8.0, rtol=0.05)
    assert noise.bias(1e3, "sequential") == pytest.approx(noise.bias(1e3, "weight") / 2)


def test_bias_is_that_of_the_same_tilts_in_a_run():
    noise, rate = gaussian_noise(10.0), 40.0
    tilt = noise.tilts / rate
    share = np.clip(tilt / 2, -1, 1)
    moments = np.mean(tilt**2), np.mean(2 * share * tilt), np.mean((share * tilt) ** 2)
    assert noise.bias(rate, "weight") == pytest.approx(predicted_sd_error(*moments, 10.0 / 80.0, "weight"))


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0, 1000.0])
def test_the_choice_keeps_its_promises(size):
    noise = gaussian_noise(size)
    choice = rule.minibatches(rule.FIRST, noise, "sequential", 10**6, 0.05)
    setting = choice.setting
    rate = setting.batch / setting.step_size
    assert setting.batch % 2 == 0
    assert setting.batch >= 2
    assert setting.step_size <= rule.LARGEST_STEP
    assert 3 * noise.bias(rate, "sequential") <= 0.05
    assert setting.batch == 2 or setting.step_size * size / rate <= 0.05 * 1.5
    assert choice.price == pytest.approx(rule.work(size, rate) * 2 * rate / 0.025**2)


def test_a_batch_is_never_larger_than_the_data():
    assert rule.minibatches(rule.FIRST, gaussian_noise(1e4), "sequential", 100, 0.05).setting.batch <= 100
    assert rule.minibatches(rule.FIRST, gaussian_noise(1.0), "sequential", 1, 0.05) is None


def test_cheaper_where_less_accuracy_is_asked_for():
    noise = gaussian_noise(30.0)
    prices = [rule.minibatches(rule.FIRST, noise, "weight", 10**6, accuracy).price for accuracy in (0.02, 0.05, 0.2)]
    assert prices == sorted(prices, reverse=True)


def test_a_budget_trades_bias_against_variance():
    noise = gaussian_noise(30.0)
    few, many = (rule.minibatches(rule.FIRST, noise, "weight", 10**6, 0.05, budget=b) for b in (1e4, 1e8))
    assert few.bias > many.bias
    assert few.price > many.price
    assert rule.minibatches(rule.FIRST, noise, "weight", 10**6, 0.05, extra=2e4, budget=1e4).price == np.inf


def test_halving_doubles_the_price_of_time():
    setting = rule.Setting(rule.FIRST, 8, 0.1)
    assert setting.per_step(1000) == 16
    assert setting.halved().per_time(1000) == pytest.approx(2 * setting.per_time(1000))
    assert rule.Setting(rule.FULL, 0, 0.5).per_time(1000) == pytest.approx(2000)
    assert rule.Setting(rule.SECOND, 8, 0.1).per_step(1000) == 32


def test_the_calmer_half_leaves_out_points_far_away():
    noise = Noise(np.array([3.0, 1e6, 1.0, 1e5]), np.arange(8.0).reshape(4, 2))
    calm = noise.calmer_half()
    assert calm.mean == 2.0
    np.testing.assert_array_equal(calm.tilts, [[4.0, 5.0], [0.0, 1.0]])
    assert noise.high == pytest.approx(np.quantile([1.0, 3.0, 1e5, 1e6], 0.9))
