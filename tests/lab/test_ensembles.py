"""Errors of ensembles of chains: against enumeration, against formulas, and their intervals against the truth."""

import itertools
import math
from unittest import mock

import numpy as np
import pytest

from ewsg.lab.experiments import claims, experiment
from ewsg.lab.experiments.networks import chains, ensembles, mlp, shared
from ewsg.lab.folder import Folder


def predictions(number, rows=200, seed=0):
    """Probabilities in 255ths of chains that are wrong in different rows, and the true classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, rows)
    logits = rng.normal(size=(number, rows, 4)) + 1.5 * np.eye(4)[labels] * rng.normal(1, 1, (rows, 1))
    found = np.exp(logits) / np.exp(logits).sum(2, keepdims=True)
    return np.rint(255 * found).astype(np.uint8), labels


def test_errors_are_those_of_all_ensembles():
    found, labels = predictions(6)
    for size, error in ensembles.errors(found, labels, [1, 2, 4, 6, 7]).items():
        subsets = itertools.combinations(range(6), size)
        every = [100 * np.mean(found[list(s)].astype(float).mean(0).argmax(1) != labels) for s in subsets]
        assert len(every) == math.comb(6, size)
        assert error == pytest.approx(np.mean(every), abs=1e-9)
    assert list(ensembles.errors(found, labels, [1, 6, 7])) == [1, 6]
    single = 100 * np.mean(found.argmax(2) != labels)
    assert ensembles.errors(found, labels, [1])[1] == pytest.approx(single)
    assert ensembles.errors(found, labels, [6])[6] < single - 3


def test_random_ensembles_estimate_the_mean_over_all():
    found, labels = predictions(12, rows=60)
    every = [
        100 * np.mean(found[list(s)].astype(float).mean(0).argmax(1) != labels)
        for s in itertools.combinations(range(12), 5)
    ]
    error = np.std(every) / np.sqrt(200)
    assert ensembles.errors(found, labels, [5])[5] == pytest.approx(np.mean(every), abs=4 * error)
    assert math.comb(12, 5) > 200


def test_rows_on_which_all_chains_agree_are_counted():
    found = np.zeros((3, 5, 2), np.uint8)
    found[:, :, 0] = 200
    found[0, 4] = (0, 255)
    assert ensembles.errors(found, np.array([0, 0, 1, 1, 1]), [1, 3]) == {1: pytest.approx(160 / 3), 3: 60.0}


def test_extrapolation_is_exact_for_a_plus_b_over_k():
    errors = {k: 2.0 + 1.6 / k for k in (1, 2, 3, 5, 10)}
    assert ensembles.extrapolate(errors, 100) == pytest.approx(2.016)
    assert math.isnan(ensembles.extrapolate({1: 3.0}, 100))


def test_brier_score_of_ensembles_is_exact():
    found, labels = predictions(5)
    truth = np.eye(4)[labels]
    for size in (1, 2, 5):
        scores = [
            np.square(found[list(s)].mean(0) / 255 - truth).sum(1).mean()
            for s in itertools.combinations(range(5), size)
        ]
        assert ensembles.brier_at(size, found, labels).value == pytest.approx(np.mean(scores), rel=1e-5)


def test_intervals_by_halves_have_their_width():
    """Of a mean of K values the interval is t·s/√K; an odd number of chains is split unevenly."""
    for number in (12, 13):
        values = np.random.default_rng(number).normal(size=number)
        ours = ensembles.by_halves(lambda chosen, values=values: float(values[chosen].mean()), number)
        exact = claims.interval(values.tolist())
        assert ours.value == pytest.approx(exact.value)
        assert ours.high - ours.value == pytest.approx(exact.high - exact.value, rel=0.25)
        assert ours.value - ours.low == pytest.approx(ours.high - ours.value)
    assert ensembles.by_halves(lambda chosen: 1.0, 1) == (1.0, -math.inf, math.inf)


def test_differences_of_independent_estimates():
    assert claims.apart(claims.Interval(5, 2, 8), claims.Interval(1, -3, 5)) == (4, -1, 9)
    lost = claims.Interval(math.inf, math.inf, math.inf)
    known = claims.Interval(1.0, 0.0, 2.0)
    assert claims.decide(claims.apart(known, lost), high=0) == "yes"
    assert claims.decide(claims.apart(lost, known), high=0) == "no"
    assert claims.decide(claims.apart(lost, lost), high=0) == "undecided"


# ---------------------------------------------------------------- the experiment

SETTINGS = dict(mlp.EXPERIMENT.scales["smoke"], methods=["SGHMC", "EWSG"], sizes=[1, 2, 3], chains_per_part=2)
RATES = {"SGHMC": 0.6, "EWSG": 1.5}


def fake_part(labels, how, seed, diverged=0):
    """Two chains; those of EWSG are right more often."""
    rng = np.random.default_rng([seed, how.estimator.cost(100).datum_gradients])
    rate = RATES["EWSG" if how.estimator.cost(100).datum_gradients == 40 else "SGHMC"]
    logits = rng.normal(size=(2, len(labels), 10)) + 2 * rate * np.eye(10)[labels]
    found = np.exp(logits) / np.exp(logits).sum(2, keepdims=True)
    return {
        "probabilities": np.rint(255 * found).astype(np.uint8),
        "errors": np.mean(found.argmax(2) != labels, axis=1),
        "curves": np.array([[0.9, 0.2], [0.9, 0.21]]) / rate,
        "passes": [100.0, 200.0],
        "diverged": diverged,
        "cost": [1000, 0, 2.0, 1.0],
    }


@pytest.fixture
def fakes(monkeypatch):
    """The list of parts computed."""
    done = []
    labels = np.random.default_rng(1).integers(0, 10, 500)

    def compute(work, here, how, seed):
        done.append((how.integrator.temperature, how.estimator.cost(100).datum_gradients, seed))
        return fake_part(labels, how, seed)

    monkeypatch.setattr(shared, "problem", lambda work: mock.Mock(test_labels=labels))
    monkeypatch.setattr(chains, "_compute", compute)
    return done


def run(folder, stored=False, **settings):
    work = experiment.Work(Folder(folder, "reproduce bnn-mlp", stored), SETTINGS | settings, mock.Mock())
    return mlp.run(work), work


@pytest.mark.untyped
def test_chains_grow_in_turns_and_are_never_computed_twice(fakes, tmp_path):
    outcome, work = run(tmp_path / "x", chains=4, cold_chains=2)
    assert fakes == [(1.0, 20, 0), (1.0, 40, 0), (0.01, 20, 0), (0.01, 40, 0), (1.0, 20, 1), (1.0, 40, 1)]
    assert work.cost["datum_gradients"] == 6000
    more, _ = run(tmp_path / "x", chains=6, cold_chains=2)
    assert fakes[6:] == [(1.0, 20, 2), (1.0, 40, 2)]
    assert more.numbers["table"]["T = 1"]["EWSG"]["chains"] == 6
    assert outcome.numbers["table"]["T = 1"]["EWSG"]["chains"] == 4
    run(tmp_path / "x", chains=4, cold_chains=2, batch=40)
    assert len(fakes) == 8 + 6


@pytest.mark.untyped
def test_stored_chains_are_judged_without_sampling(fakes, tmp_path):
    full, _ = run(tmp_path / "x", chains=8, cold_chains=4)
    fakes.clear()
    again, work = run(tmp_path / "x", stored=True, chains=40, cold_chains=20)
    assert not fakes
    assert work.cost["runs"] == 12
    assert again.numbers == full.numbers
    assert again.claims == full.claims
    holds = {claim.claim: claim.holds for claim in again.claims}
    assert holds["EWSG has a smaller test error than SGHMC (T = 1)"] == "yes"
    assert holds["EWSG has a smaller training error than SGHMC (T = 1)"] == "yes"
    assert (tmp_path / "x" / "errors.png").stat().st_size > 5000


@pytest.mark.untyped
def test_a_method_whose_chains_diverge_loses(fakes, tmp_path, monkeypatch):
    labels = np.zeros(50, np.int64)
    monkeypatch.setattr(
        chains, "_compute", lambda work, here, how, seed: fake_part(labels, how, seed, how.integrator.temperature < 1)
    )
    monkeypatch.setattr(shared, "problem", lambda work: mock.Mock(test_labels=labels))
    outcome, _ = run(tmp_path / "x", chains=6, cold_chains=6)
    cold = outcome.numbers["table"]["T = 0.01"]["SGHMC"]
    assert cold["error"]["value"] == math.inf
    holds = {claim.claim: claim.holds for claim in outcome.claims}
    assert holds["not in the paper: SGHMC has a smaller test error at T = 0.01 than at T = 1"] == "no"


def test_the_printed_table_is_judged_by_a_hundred_samples():
    close, far = claims.Interval(1.8, 1.75, 1.85), claims.Interval(2.3, 2.2, 2.4)
    row = mlp.Row(40, {1: 3.6}, close, close, claims.Interval(3.6, 3.5, 3.7), close)
    found = mlp._published(mlp.MLP.printed, {"EWSG": row, "SGHMC": row._replace(error=far)})
    assert [claim.holds for claim in found] == ["no", "yes"]
    assert found[1].paper == "1.793 %"
    assert found[1].ours == "1.8 (1.75 to 1.85) % by 100 samples, from 40 chains; one: 3.6 (3.5 to 3.7) %"
