"""Scores of numbers and counts against closed forms, and calibration that sees what is wrong."""

import numpy as np
import pytest
import scipy.stats as stats

import ewsg
from ewsg.errors import InputError
from ewsg.prediction import Prediction, calibration, predict, score

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 2)).astype(np.float32)
THETA = np.float32([0.8, -0.4])
KNOWN = np.broadcast_to(THETA, (2, 200, 2))  # a posterior that knows θ: what is predicted has closed forms
VAGUE = (THETA + 0.3 * RNG.normal(size=(2, 200, 2))).astype(np.float32)
MEAN = ROWS.astype(float) @ THETA.astype(float)
Y = MEAN + 0.5 * RNG.normal(size=300)
COUNTS = RNG.poisson(np.exp(MEAN))


def linear(theta, x):
    return x @ theta


def test_crps_of_a_normal_distribution():
    """σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π), without bias however few the draws: four of them, and 300 rows."""
    z = (Y - MEAN) / 0.5
    exact = 0.5 * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    errors = predict(linear, KNOWN[:, :2], ROWS, "regression", noise=0.5).crps(Y) - exact
    standard_error = errors.std() / np.sqrt(300)
    assert abs(errors.mean()) < 4 * standard_error
    assert 0.5 / np.sqrt(np.pi) / 4 > 5 * standard_error  # the bias of 1/S² in place of 1/(S (S − 1)) would be seen
    many = predict(linear, KNOWN, ROWS, "regression", noise=0.5).crps(Y)
    np.testing.assert_allclose(many, exact, atol=5 * 0.5 / np.sqrt(400))


def test_crps_by_hand():
    found = predict(linear, np.float32([[[0.0, 1], [1, 1], [3, 1]]]), np.float32([[1, 0]]), "regression", noise=1e-6)
    assert found.crps([2.0])[0] == pytest.approx((2 + 1 + 1) / 3 - (1 + 3 + 2) / 6, abs=1e-4)
    one = predict(linear, np.float32([[[0.0, 1]]]), np.float32([[1, 0]]), "regression", noise=1.0)
    assert np.isnan(one.crps([2.0])[0])


def test_the_score_holds_the_mean_crps():
    found = predict(linear, KNOWN, ROWS, "regression", noise=0.5)
    assert score(found, Y).crps == found.crps(Y).mean()
    assert np.isnan(score(predict(linear, KNOWN, ROWS, "regression"), Y).crps)


def test_counts_are_poisson_given_the_draw():
    rates = np.exp(VAGUE.astype(float) @ ROWS.T.astype(float))
    found = predict(linear, VAGUE, ROWS, "counts")
    np.testing.assert_allclose(found.mean, rates.mean((0, 1)), rtol=1e-4)
    np.testing.assert_allclose(found.sd, np.sqrt(rates.mean((0, 1)) + rates.var((0, 1))), rtol=1e-4)
    exact = np.log(stats.poisson.pmf(COUNTS, rates).mean((0, 1)))
    np.testing.assert_allclose(found.log_density(COUNTS), exact, rtol=1e-4, atol=1e-5)
    values = found.draws()
    assert np.all(values == np.floor(values))
    standardised = (values - rates) / np.sqrt(rates)
    assert abs(standardised.mean()) < 4 / np.sqrt(standardised.size)
    assert abs(standardised.var() - 1) < 4 * np.sqrt((2 + 1 / rates).mean() / standardised.size)
    low, high = found.interval(0.9).T
    assert np.all(low <= high)


def test_counts_while_sampling():
    """The averages of a collector are those of the draws."""
    target = ewsg.models.poisson(ROWS, COUNTS)
    settings = {"num_chains": 2, "num_steps": 40, "thin": 10, "progress": False}
    method = ewsg.Uniform(20), ewsg.Overdamped(step_size=1e-4)
    collect = ewsg.prediction.Predictive(linear, ROWS, kind="counts")
    streamed = ewsg.prediction.collected(ewsg.sample(target, *method, collect=collect, **settings))
    kept = ewsg.sample(target, *method, **settings).predict(linear, ROWS, "counts")
    for name in ("mean", "sd", "by_chain", "noise_variance"):
        np.testing.assert_allclose(getattr(streamed, name), getattr(kept, name), rtol=1e-4)


@pytest.mark.parametrize("kind", ["regression", "counts"])
def test_calibrated_numbers_lie_in_the_band_and_overconfident_ones_do_not(kind):
    truth, options = (Y, {"noise": 0.5}) if kind == "regression" else (COUNTS, {})
    found = calibration(predict(linear, KNOWN, ROWS, kind, **options), truth)
    assert np.all(np.abs(found.observed - found.predicted) < 4 * found.error)
    assert np.all(found.rows == 300)
    if kind == "regression":
        exact = [np.mean(np.abs(2 * stats.norm.cdf(Y, MEAN, 0.5) - 1) <= level) for level in found.predicted]
        np.testing.assert_allclose(found.observed, exact, atol=0.04)
        found = calibration(predict(linear, KNOWN, ROWS, kind, noise=0.2), truth)
    else:
        found = calibration(predict(lambda theta, x: x @ theta + 1, KNOWN, ROWS, kind), truth)
    middle = found.predicted.searchsorted(0.5)
    assert found.observed[middle] < found.predicted[middle] - 6 * found.error[middle]


PROBABILITIES = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.25, 0.75], [0.95, 0.05]])
TRUTH = np.array([0, 1, 1, 1, 0])
CLASSES = Prediction(PROBABILITIES, PROBABILITIES[None], np.full((1, 5, 2), np.nan), 1)


def test_calibration_of_classes_by_hand():
    found = calibration(CLASSES, TRUTH)
    np.testing.assert_allclose(found.predicted, [0.7, 0.775, 0.9, 0.95])  # bins (10, 11], (11, 12], (13, 14], (14, 15]
    np.testing.assert_allclose(found.observed, [1, 0.5, 1, 1])
    np.testing.assert_array_equal(found.rows, [1, 2, 1, 1])
    np.testing.assert_allclose(found.error[1], np.sqrt(0.8 * 0.2 + 0.75 * 0.25) / 2)
    weighted = np.sum(found.rows * np.abs(found.observed - found.predicted)) / 5
    assert weighted == pytest.approx(score(CLASSES, TRUTH).calibration_error)


def test_calibration_of_one_class():
    found = calibration(CLASSES, TRUTH, label=1)
    np.testing.assert_allclose(found.predicted, [0.05, 0.1, 0.2, 0.7, 0.75])
    np.testing.assert_allclose(found.observed, [0, 0, 1, 1, 1])


def test_the_plot_shows_the_numbers():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found = calibration(CLASSES, TRUTH)
    ax = found.plot()
    np.testing.assert_allclose(ax.lines[1].get_xydata(), np.column_stack([found.predicted, found.observed]))
    assert ax.get_xlabel() == "probability of the most probable class"
    assert calibration(CLASSES, TRUTH, 1).plot(ax) is ax
    pyplot.close("all")


def test_wrong_input_is_refused():
    counts = predict(linear, KNOWN, ROWS, "counts")
    with pytest.raises(InputError, match="whole numbers of at least 0"):
        counts.log_density(Y)
    with pytest.raises(InputError, match="the logarithm of the mean count"):
        predict(lambda theta, x: 1e3 + x @ theta, KNOWN, ROWS, "counts")
    with pytest.raises(InputError, match='not of kind="counts"'):
        predict(linear, KNOWN, ROWS, "counts", noise=1.0)
    mean_alone = predict(linear, KNOWN, ROWS, "regression")
    with pytest.raises(InputError, match="y has no CRPS without a noise scale"):
        mean_alone.crps(Y)
    with pytest.raises(InputError, match="y has no intervals without a noise scale"):
        calibration(mean_alone, Y)
    with pytest.raises(InputError, match="a regression has none"):
        calibration(counts, COUNTS, label=1)
    with pytest.raises(InputError, match="label must be a class from 0 to 1, not 2"):
        calibration(CLASSES, TRUTH, label=2)
    with pytest.raises(InputError, match="the result of predict"):
        calibration(PROBABILITIES, TRUTH)
