"""The logic of claims."""

import math

import numpy as np
import pytest
import scipy.signal
import scipy.stats

from ewsg.lab.experiments import claims
from ewsg.lab.experiments.claims import Claim, Interval


@pytest.mark.parametrize(
    ("found", "limits", "holds"),
    [
        (Interval(0.5, 0.4, 0.6), (-math.inf, 1.0), "yes"),
        (Interval(1.5, 1.4, 1.6), (-math.inf, 1.0), "no"),
        (Interval(0.9, 0.7, 1.1), (-math.inf, 1.0), "undecided"),
        (Interval(-1.0, -1.1, -0.9), (-1.15, -0.85), "yes"),
        (Interval(-1.0, -1.3, -0.7), (-1.15, -0.85), "undecided"),
        (Interval(-0.5, -0.6, -0.4), (-1.15, -0.85), "no"),
        (Interval(math.inf, math.inf, math.inf), (-math.inf, 1.0), "no"),
        (Interval(math.nan, math.nan, math.nan), (-math.inf, 1.0), "undecided"),
        (Interval(0.5, -math.inf, math.inf), (-math.inf, 1.0), "undecided"),
    ],
)
def test_a_claim_is_decided_by_its_interval(found, limits, holds):
    assert claims.decide(found, *limits) == holds


def test_the_interval_is_students():
    values = [1.0, 2.0, 4.0, 3.5]
    exact = scipy.stats.t.interval(0.95, 3, np.mean(values), scipy.stats.sem(values))
    assert claims.interval(values) == pytest.approx((np.mean(values), *exact))


def test_the_interval_covers_at_its_confidence():
    rng = np.random.default_rng(0)
    found = [claims.ratio(np.exp(rng.normal(1, 1, 5)), np.exp(rng.normal(0, 1, 5))) for _ in range(2000)]
    covered = np.mean([f.low < math.e < f.high for f in found])
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 2000))


def test_diverged_repeats_decide_too():
    assert claims.smaller("a", "", [None, 1.0], [1.0, 1.0]).holds == "no"
    assert claims.smaller("a", "", [1.0, 1.0], [None, 1.0]).holds == "yes"
    assert claims.smaller("a", "", [None, 1.0], [None, 1.0]).holds == "undecided"
    assert claims.smaller("a", "", [1.0], [2.0]).holds == "undecided"
    assert "diverged" in claims.smaller("a", "", [None, 1.0], [1.0, 1.0]).ours


def test_claims_as_markdown():
    text = claims.markdown([Claim("|x| is small", "yes", "0.1", "yes")])
    header, rule, row = text.splitlines()
    assert (header, rule) == ("| claim | paper | ours | holds |", "| --- | --- | --- | --- |")
    assert row == "| \\|x\\| is small | yes | 0.1 | yes |"
