"""The verdict of a planned run, in words, in its summary and among its warnings."""

import numpy as np
import pytest

from ewsg.result import Run, RunCost
from ewsg.result.verdict import Verdict

COST = RunCost(1000, 0, 2.0, 1.0, 0.5)
PARTS = {"estimator": {"component": "Full"}, "integrator": {"component": "Walled", "step_size": 0.5}}


def verdict(word, mcse=0.02, bias=0.01, objections=()):
    return Verdict(word, 0.05, 0.03, mcse, bias, 0.93, 1.21, 4.5, 3e-4, objections)


def run(found, **settings):
    draws = np.random.default_rng(0).normal(size=(8, 200, 2)).astype(np.float32)
    stats = {"kinetic_temperature": np.full((8, 200), 2.0, np.float32)}
    settings = PARTS | {"temperature": 1.0, "num_steps": 400, "verdict": found.to_json()} | settings
    return Run(draws, stats, np.full(8, "ok"), COST, settings)


@pytest.mark.parametrize("found", [verdict("reached"), verdict("budget")])
def test_a_good_verdict_stands_below_the_title_and_is_no_warning(found):
    """The temperatures of its coordinates are the verdict's business, too."""
    summary = run(found).summary()
    assert summary.warnings == []
    assert str(summary).splitlines()[1] == str(found)
    assert "0.05 reached: the largest error of a mean or sd is 0.03 posterior sd" in str(found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (verdict("budget", mcse=0.05), "not reached, the budget ended first"),
        (
            verdict("biased", objections=("virial", "tilts")),
            "coordinates is 0.93 to 1.21 in place of 1; the mini",
        ),
        (
            verdict("biased", objections=("slope", "refused")),
            "(score 4.5): the posterior is far from Gaussian",
        ),
        (verdict("interrupted"), "Interrupted before accuracy 0.05"),
    ],
)
def test_any_other_verdict_is_a_warning_and_printed_once(found, words):
    summary = run(found).summary()
    assert summary.warnings[0] == str(found)
    assert words in str(found)
    lines = str(summary).splitlines()
    assert lines[1] == f"! {found}"
    assert sum(str(found) in line for line in lines) == 1


def test_it_says_how_much_longer_it_would_take():
    assert "about 4 times as long" in str(verdict("budget", mcse=0.05))
    assert "times as long" not in str(verdict("interrupted", mcse=0.01))


def test_it_survives_settings():
    found = verdict("biased", objections=("virial", "slope"))
    assert run(found).verdict == found
    assert not found.reached
    assert not found.fine
