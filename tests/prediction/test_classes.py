"""Prediction by averaging: scores against hand computation, streamed as well as all at once, agreement of chains."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracles import statistic

import ewsg
from ewsg import prediction
from ewsg.errors import InputError
from ewsg.prediction import Prediction, predict, score

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(23, 4)).astype(np.float32)
LABELS = RNG.integers(0, 3, 23)
DRAWS = {"w": RNG.normal(size=(3, 6, 3, 4)).astype(np.float32), "b": RNG.normal(size=(3, 6, 3)).astype(np.float32)}


def logits(params, x):
    return params["w"] @ x + params["b"]


def everything():
    """Probabilities of all draws at once, shape (chain, draw, row, class)."""
    scores = np.einsum("cdkj,nj->cdnk", DRAWS["w"].astype(float), INPUTS.astype(float)) + DRAWS["b"][:, :, None]
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


@pytest.mark.parametrize("block", [1, 7, 23, 1000])
def test_streamed_is_unstreamed(block):
    found, exact = predict(logits, DRAWS, INPUTS, block=block), everything()
    assert found.num_draws == 6
    np.testing.assert_allclose(found.probabilities, exact.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(found.by_chain, exact.mean(1), rtol=1e-5)
    np.testing.assert_allclose(found.variance, exact.var(1, ddof=1), rtol=1e-4, atol=1e-9)
    one = found.chain(2)
    np.testing.assert_allclose(one.probabilities, exact[2].mean(0), rtol=1e-5)


def test_scores_by_hand():
    rows = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.05, 0.05, 0.9], [0.5, 0.3, 0.2]])
    found = score(Prediction(rows, rows[None], np.full((1, 4, 3), np.nan), 1), np.array([0, 2, 2, 1]))
    assert found.error == 0.5
    assert found.log_likelihood == pytest.approx(np.mean(np.log([0.7, 0.3, 0.9, 0.3])))
    assert found.brier == pytest.approx(np.mean([0.14, 0.09 + 0.16 + 0.49, 0.015, 0.25 + 0.49 + 0.04]))
    assert found.calibration_error == pytest.approx((0.3 + 0.4 + 0.1 + 0.5) / 4)  # four bins with one row each
    assert np.isnan(found.rhat)


def test_rows_of_a_bin_offset_each_other():
    rows = np.array([[0.61, 0.39], [0.64, 0.36], [1.0, 0.0], [0.0, 1.0]])
    found = score(Prediction(rows, rows[None], rows[None], 1), np.array([0, 1, 0, 0]))
    assert found.calibration_error == pytest.approx((abs(1 - 0.61 - 0.64) + abs(1 - 1 - 1)) / 4)
    assert found.log_likelihood == pytest.approx(np.mean([np.log(0.61), np.log(0.36), 0, np.log(2.0**-126)]))


def test_bins_are_fifteen_and_closed_above():
    rows = np.array([[0.6, 0.4], [0.61, 0.39], [0.69, 0.31]])
    found = score(Prediction(rows, rows[None], rows[None], 1), np.array([0, 1, 0]))
    assert found.calibration_error == pytest.approx((0.4 + 0.61 + 0.31) / 3)


def test_rhat_is_arviz_for_one_row():
    labels = LABELS[:1]
    found = predict(logits, DRAWS, INPUTS[:1])
    draws = everything()[:, :, 0, labels[0]]
    exact = statistic("rhat", draws[:, :, None], method="identity")[0]
    assert prediction.rhat(found, labels) == pytest.approx(float(exact), rel=1e-5)


def test_rhat_sees_chains_that_disagree():
    rng = np.random.default_rng(1)
    bias = rng.normal(size=(4, 200, 3)).astype(np.float32)
    draws = {"w": np.zeros((4, 200, 3, 4), np.float32), "b": bias}
    assert score(predict(logits, draws, INPUTS[:2]), LABELS[:2]).rhat == pytest.approx(1, abs=0.02)
    bias[0] += np.array([5, 0, -5], np.float32)
    assert score(predict(logits, draws, INPUTS[:2]), LABELS[:2]).rhat > 1.2


class Both(ewsg.collect.AbstractCollector):
    """Draws and the running average, of one run."""

    inner: prediction.Predictive

    def row(self, position):
        return position

    def init(self, position):
        return self.inner.init(position)

    def update(self, summary, position, count):
        return self.inner.update(summary, position, count)

    def result(self, summary, count):
        return self.inner.result(summary, count)


def test_averaging_while_sampling_is_averaging_draws():
    target = ewsg.Target(lambda w, d: -ewsg.modules.cross_entropy(w @ d[0], d[1]), None, (INPUTS, LABELS))
    run = ewsg.sample(
        target,
        ewsg.recipes.sghmc(5, 0.05, 1.0),
        init=jnp.zeros((3, 4)),
        collect=Both(prediction.Predictive(jnp.matmul, INPUTS, block=10)),
        num_chains=2,
        num_steps=60,
        discard=20,
        thin=10,
        progress=False,
    )
    kept, streamed = predict(jnp.matmul, run, INPUTS), prediction.collected(run)
    assert prediction.Predictive(jnp.matmul, INPUTS).row(run.draws) == ()
    assert streamed.num_draws == kept.num_draws == 4
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), streamed, kept)
    np.testing.assert_allclose(score(streamed, LABELS), score(kept, LABELS), rtol=1e-4)


def test_wrong_input_is_refused():
    found = predict(logits, DRAWS, INPUTS)
    with pytest.raises(InputError, match="23 whole numbers"):
        score(found, LABELS[:5])
    with pytest.raises(InputError, match="whole numbers"):
        score(found, LABELS.astype(float))
    with pytest.raises(InputError, match="no draws"):
        predict(logits, jax.tree.map(lambda leaf: leaf[:, :0], DRAWS), INPUTS)
    with pytest.raises(InputError, match="block must be a whole number"):
        predict(logits, DRAWS, INPUTS, block=0)
    with pytest.raises(InputError, match="collected no prediction"):
        prediction.collected(ewsg.Run(None, {}, np.array(["ok"]), None, {}))


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_that_are_no_classes_are_refused(label):
    found = predict(logits, DRAWS, INPUTS)
    with pytest.raises(InputError, match=r"labels run from -?\d to \d: classes are 0 to 2"):
        score(found, np.where(np.arange(23) == 4, label, LABELS))


def test_a_forked_process_is_refused(monkeypatch):
    """Seen before: it hung."""
    monkeypatch.setattr("ewsg._core.process._owner", os.getpid() + 1)
    with pytest.raises(InputError, match="forked"):
        predict(logits, DRAWS, INPUTS)
