"""What a function's output means: logits, one logit, a mean, a mean and a log sd; anything else is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ewsg
from ewsg.errors import InputError
from ewsg.prediction import Predictive, Regression, collected, predict, score
from ewsg.result import Run, RunCost

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(9, 3)).astype(np.float32)
THETA = RNG.normal(size=(2, 40, 3)).astype(np.float32)
MEANS = THETA.astype(float) @ ROWS.T.astype(float)  # (chain, draw, row)
TARGETS = RNG.normal(size=9)


def linear(theta, x):
    return x @ theta


def pair(theta, x):
    return x @ theta, 0.3 * x[0]


NOISE_SD = np.exp(0.3 * ROWS[:, 0].astype(float))


@pytest.mark.parametrize("block", [1, 4, 1000])
@pytest.mark.parametrize("function", [linear, lambda theta, x: (x @ theta)[None]])
def test_binary_is_the_mean_sigmoid_of_each_row(function, block):
    found = predict(function, THETA, ROWS, kind="binary", block=block)
    exact = (1 / (1 + np.exp(-MEANS))).mean((0, 1))
    np.testing.assert_allclose(found.probabilities, np.stack([1 - exact, exact], 1), rtol=1e-5)
    labels = TARGETS > 0
    assert score(found, labels).error == np.mean((exact > 0.5) != labels)
    assert score(found, labels).log_likelihood == pytest.approx(np.log(np.where(labels, exact, 1 - exact)).mean(), 1e-5)


@pytest.mark.parametrize("function", [linear, lambda theta, x: (x @ theta)[None]])
def test_one_number_is_ambiguous(function):
    with pytest.raises(InputError, match=r'one number \(shape \(1?,?\)\) .* give kind="binary" or kind="regression"'):
        predict(function, THETA, ROWS)


@pytest.mark.parametrize("block", [1, 4, 1000])
def test_regression_with_known_noise(block):
    found = predict(linear, THETA, ROWS, kind="regression", noise=0.5, block=block)
    np.testing.assert_allclose(found.mean, MEANS.mean((0, 1)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sd, np.sqrt(MEANS.var((0, 1)) + 0.25), rtol=1e-5)
    np.testing.assert_allclose(found.by_chain, MEANS.mean(1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.variance, MEANS.var(1, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(found.chain(1).sd, np.sqrt(MEANS[1].var(0) + 0.25), rtol=1e-5)
    density = stats.norm.pdf(TARGETS, MEANS, 0.5).mean((0, 1))
    np.testing.assert_allclose(found.log_density(TARGETS), np.log(density), rtol=1e-4)


PAIRS = {
    "tuple": (pair, None),
    "dict": (lambda theta, x: dict(zip(("mean", "log_sd"), pair(theta, x), strict=True)), None),
    "vector": (lambda theta, x: jnp.stack(pair(theta, x)), "regression"),
}


@pytest.mark.parametrize("form", PAIRS)
def test_a_mean_and_a_log_sd(form):
    function, kind = PAIRS[form]
    found = predict(function, THETA, ROWS, kind)
    np.testing.assert_allclose(found.sd, np.sqrt(MEANS.var((0, 1)) + NOISE_SD**2), rtol=1e-5)


def test_intervals_come_from_draws_of_y_and_not_from_blocks():
    found, blocks = (predict(pair, THETA, ROWS, block=block, seed=3) for block in (1000, 4))
    values = found.draws()
    assert values.shape == (2, 40, 9)
    np.testing.assert_allclose(found.interval(0.8), np.quantile(values, [0.1, 0.9], axis=(0, 1)).T)
    np.testing.assert_allclose(blocks.interval(0.8), found.interval(0.8), rtol=1e-4)
    noise = (values - MEANS) / NOISE_SD  # standard normal: 720 values
    assert abs(noise.mean()) < 4 / np.sqrt(720)
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * 720)
    other = predict(pair, THETA, ROWS, seed=4).draws()
    assert not np.any(values == other)
    assert found.chain(0).interval().shape == (9, 2)


def test_memory_for_draws_is_bounded(monkeypatch):
    """A block of rows × all draws, never all rows × all draws, and the result is the same."""
    whole = predict(linear, THETA, ROWS, kind="regression", noise=0.5)
    monkeypatch.setattr("ewsg.prediction.source._ENTRIES_PER_BLOCK", 2 * 80)
    sizes = [mean.shape[2] for _, mean, _ in whole.source.blocks()]
    assert sizes == [2, 2, 2, 2, 1]
    monkeypatch.undo()
    expected = whole.interval()
    monkeypatch.setattr("ewsg.prediction.source._ENTRIES_PER_BLOCK", 1)
    np.testing.assert_allclose(whole.interval(), expected, rtol=1e-5)


def test_without_noise_the_prediction_is_of_the_mean():
    found = predict(linear, THETA, ROWS, kind="regression")
    np.testing.assert_allclose(found.sd, MEANS.std((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(found.interval(0.5), np.quantile(MEANS, [0.25, 0.75], axis=(0, 1)).T, rtol=1e-3)
    scores = score(found, TARGETS)
    assert scores.rmse == pytest.approx(np.sqrt(np.mean((TARGETS - MEANS.mean((0, 1))) ** 2)), rel=1e-5)
    assert np.isnan(scores.log_density)
    assert np.isnan(scores.coverage)
    with pytest.raises(InputError, match="noise="):
        found.log_density(TARGETS)


def test_scores_of_a_regression():
    """900 rows of y = x·θ + noise, θ known: coverage is binomial, log density the normal's entropy."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(900, 3)).astype(np.float32)
    theta = np.broadcast_to(np.float32([1.0, -2.0, 0.5]), (2, 200, 3))
    y = rows @ theta[0, 0] + 0.5 * rng.normal(size=900)
    found = score(predict(linear, theta, rows, kind="regression", noise=lambda theta: 0.5 + 0 * theta[0]), y)
    assert found.rmse == pytest.approx(0.5, rel=4 / np.sqrt(2 * 900))
    # The interval's own ends, from 400 draws, err by √(0.05·0.95/400) = 0.011 in probability, afresh in every row.
    assert found.coverage == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 900))
    exact = stats.norm.logpdf(y, rows @ theta[0, 0], 0.5).mean()
    assert found.log_density == pytest.approx(exact, rel=1e-4)
    assert found.rhat == pytest.approx(np.sqrt(1 - 1 / 200), abs=1e-3) or found.rhat == 1.0


def test_regression_chains_that_disagree_have_a_large_rhat():
    apart = THETA + np.float32([[[0.0]], [[5.0]]])
    assert score(predict(linear, apart, ROWS, kind="regression"), TARGETS).rhat > 2
    mixed = score(predict(linear, THETA, ROWS, kind="regression"), TARGETS).rhat
    assert mixed == pytest.approx(1, abs=0.1)


def speechless(*_):
    raise KeyError


REFUSED = {
    "matrix": (lambda theta, x: jnp.outer(x, theta), {}, r"shape \(3, 3\) for one input: it must return one number"),
    "integers": (lambda theta, x: jnp.arange(3), {}, r"shape \(3,\) of int32"),
    "one class": (linear, {"kind": "classes"}, r'shape \(\).*kind="classes" needs a vector of logits'),
    "many logits": (lambda theta, x: theta * x, {"kind": "binary"}, r'shape \(3,\).*kind="binary" needs one number'),
    "many means": (lambda theta, x: theta * x, {"kind": "regression"}, "needs one number, the mean, or a pair"),
    "triple": (lambda theta, x: (x[0], x[1], x[2]), {}, r"a tuple of shapes \(\), \(\), \(\)"),
    "names": (lambda theta, x: {"mean": x[0], "sd": x[1]}, {}, "a dict with the names mean, sd"),
    "two numbers": (PAIRS["vector"][0], {}, 'may be the logits of two classes or .*: give kind="classes" or kind="reg'),
    "rows": (lambda theta, x: jnp.ones((4, 5)) @ x, {}, "failed for one draw"),
    "kind": (linear, {"kind": "regresion"}, "did you mean 'regression'"),
    "noise of classes": (lambda theta, x: theta * x, {"noise": 1.0}, 'not of kind="classes"'),
    "two noises": (pair, {"noise": 1.0}, "leave it out"),
    "noise": (linear, {"kind": "regression", "noise": -1.0}, "noise must be positive"),
    "noise of theta": (
        linear,
        {"kind": "regression", "noise": lambda theta: theta},
        r"one number, .* not shape \(3,\)",
    ),
    "log noise": (linear, {"kind": "regression", "noise": lambda theta: theta[0] * 0 - 1}, "not its logarithm"),
    "noises": (linear, {"kind": "regression", "noise": np.array([1.0, 2.0])}, "noise must be one number, the sd of y"),
    "speechless noise": (linear, {"kind": "regression", "noise": speechless}, r"noise\(params\) failed: KeyError$"),
    "speechless function": (speechless, {}, "a row of `inputs`: KeyError$"),
    "no function": (3, {}, "not int"),
    "seed": (linear, {"kind": "regression", "seed": -1}, "seed"),
}


@pytest.mark.float32
@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_one_sentence(case):
    function, options, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as error:
        predict(function, THETA, ROWS, **options)
    assert "\n" not in str(error.value)


@pytest.mark.float32
@pytest.mark.parametrize(
    ("draws", "inputs", "message"),
    [
        (THETA, ROWS[:, :2], "and one input, a row of `inputs`"),
        (THETA[0], ROWS, r"failed for one draw, without the axes \(chain, draw\)"),
        (np.where(THETA > 2, np.nan, THETA), ROWS, r"failed chains are: give the run, or good_draws\(\)"),
        (THETA, [[1.0, 2.0, 3.0]], "np.asarray"),
        (THETA, ROWS[:0], "no rows"),
        (THETA, (ROWS, ROWS[:4]), "differ in their number of rows: 4, 9"),
        (THETA, np.array([1, 3_000_000_000]), r"integers in inputs \(first in row 1\) do not fit int32"),
        (THETA, {"x": np.array([[0.0], [1e300]])}, r"numbers in inputs\['x'\] \(first in row 1\) do not fit float32"),
        (THETA, np.where(ROWS[4] == ROWS, np.nan, ROWS), r"3 NaN or infinite entries in inputs \(first in row 4\)"),
        (THETA[0, 0], ROWS, r"leading axes \(chain, draw\)"),
        ({"a": THETA, "b": THETA[:1]}, ROWS, r"leading axes \(chain, draw\)"),
    ],
)
def test_rows_and_draws_that_do_not_fit_are_one_sentence(draws, inputs, message):
    with pytest.raises(InputError, match=message) as error:
        predict(linear, draws, inputs, kind="regression")
    assert "\n" not in str(error.value)


def test_targets_of_a_score():
    classes = predict(lambda theta, x: theta * x, THETA, ROWS)
    with pytest.raises(InputError, match=r'whole numbers.*not float64: .*kind="regression"'):
        score(classes, np.arange(9) / 2)
    numbers = predict(linear, THETA, ROWS, kind="regression")
    with pytest.raises(InputError, match="9 numbers, one per row"):
        score(numbers, TARGETS[:4])
    with pytest.raises(InputError, match="NaN or infinite"):
        score(numbers, np.where(np.arange(9) == 2, np.nan, TARGETS))
    with pytest.raises(InputError, match="the result of predict or collected"):
        score(ROWS, TARGETS)
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        numbers.interval(90)


def test_a_module_stands_for_its_function():
    module = eqx.nn.Linear(3, "scalar", key=jax.random.key(0))
    draws = {"weight": THETA[:, :, None, :], "bias": THETA[:, :, :1]}
    found = predict(module, draws, ROWS, kind="regression")
    np.testing.assert_allclose(found.mean, (MEANS + THETA[:, :, :1]).mean((0, 1)), rtol=1e-4, atol=1e-6)
    with pytest.raises(InputError, match="do not belong to this Linear: predict with the module"):
        predict(module, THETA, ROWS, kind="regression")


def test_an_nnx_module_stands_for_its_function():
    nnx = pytest.importorskip("flax.nnx")
    module = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
    draws = {"kernel": THETA[..., None], "bias": np.zeros((2, 40, 1), np.float32)}
    found = predict(module, draws, ROWS, kind="regression")
    np.testing.assert_allclose(found.mean, MEANS.mean((0, 1)), rtol=1e-4, atol=1e-6)
    with pytest.raises(InputError, match="do not belong to this Linear"):
        predict(module, THETA, ROWS, kind="regression")


@pytest.mark.parametrize("kind", ["binary", "regression"])
def test_averaging_while_sampling(kind):
    target = ewsg.Target(lambda theta, d: -0.5 * (d[1] - d[0] @ theta) ** 2, None, (ROWS, TARGETS.astype(np.float32)))
    options = {"kind": kind} | ({"noise": 0.5} if kind == "regression" else {})
    settings = {"num_chains": 2, "num_steps": 60, "discard": 20, "thin": 10, "progress": False, "seed": 0}
    method = ewsg.recipes.sghmc(5, 0.05, 1.0)
    kept = ewsg.sample(target, method, init=jnp.zeros(3), **settings)
    streamed = ewsg.sample(target, method, init=jnp.zeros(3), collect=Predictive(linear, ROWS, **options), **settings)
    one, other = predict(linear, kept, ROWS, **options), collected(streamed)
    count = 6 if kind == "regression" else 3
    for a, b in zip(one[:count], other[:count], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    if isinstance(other, Regression):
        assert score(other, TARGETS).rmse == pytest.approx(score(one, TARGETS).rmse, rel=1e-4)
        with pytest.raises(InputError, match="Predictive keeps none"):
            other.interval()


def test_a_collector_of_one_number_is_refused_before_sampling(gaussian):
    with pytest.raises(InputError, match='kind="binary" or kind="regression"'):
        ewsg.sample(
            gaussian,
            ewsg.recipes.sgld(5, 1e-3),
            init=jnp.zeros(2),
            num_steps=10,
            collect=Predictive(linear, ROWS[:, :2]),
        )


@pytest.mark.untyped
def test_inputs_are_copied_and_may_be_a_table():
    rows = ROWS.copy()
    found, while_sampling = predict(linear, THETA, rows, "regression"), Predictive(linear, rows, np.int64(2))
    rows[:] = 0
    np.testing.assert_allclose(found.draws(), MEANS, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(while_sampling.inputs, ROWS)
    assert type(while_sampling.block) is int
    table = predict(linear, THETA, pd.DataFrame(ROWS), "regression")
    np.testing.assert_array_equal(table.mean, found.mean)


def test_averages_of_few_and_of_very_many_draws():
    """0 draws have no mean, 1 has no variance, and 70,000 are more than the largest float16."""
    theta = jnp.asarray(THETA[0, 0], jnp.float16)
    collector = Predictive(linear, ROWS.astype(np.float16), kind="regression")
    empty = collector.init(theta)
    one = collector.update(empty, theta, jnp.int32(1))
    two = collector.update(one, -theta, jnp.int32(2))
    none, single, many = (
        collector.result(summary, jnp.int32(n)) for summary, n in ((empty, 0), (one, 1), (two, 70_000))
    )
    assert np.isnan(none["mean"]).all()
    assert np.isnan(none["variance"]).all()
    np.testing.assert_allclose(single["mean"], MEANS[0, 0], rtol=0.02, atol=0.02)
    assert np.isnan(single["variance"]).all()
    np.testing.assert_allclose(many["variance"] * 69_999, 2 * MEANS[0, 0] ** 2, rtol=0.05, atol=0.02)
    kept = jax.tree.map(lambda leaf: np.asarray(leaf)[None], none)
    run = Run((), {}, np.array(["ok"]), RunCost(), {}, kept)
    with pytest.raises(InputError, match="kept no draw to predict from: run longer"):
        collected(run)
