"""The verdict on a run: in words, in the summary, in a file."""

import dataclasses

import pytest
from short_runs import sample

import ewsg
from ewsg.errors import InputError
from ewsg.result.verdict import Verdict

NUMBERS = {"accuracy": 0.05, "error": 0.11, "mcse": 0.1, "bias": 0.02, "coldest": 0.7, "hottest": 1.4, "slope": 6.0}


def verdict(word, *objections):
    return Verdict(word, **NUMBERS, refused=0.25, objections=objections)


def with_verdict(run, found):
    return dataclasses.replace(run, settings=run.settings | {"verdict": found})


@pytest.fixture(scope="module")
def run(gaussian):
    return sample(gaussian)


@pytest.mark.parametrize(
    "found",
    [
        verdict("reached"),
        verdict("biased", "virial", "slope", "refused", "tilts"),
        dataclasses.replace(verdict("budget"), error=float("inf")),
    ],
    ids=lambda found: found.word,
)
def test_a_file_keeps_it(run, found, tmp_path):
    assert run.verdict is None
    judged = with_verdict(run, found.to_json())
    judged.save(tmp_path / "run")
    loaded = ewsg.load(tmp_path / "run")
    assert judged.verdict == loaded.verdict == found
    assert str(found) in str(loaded.summary())
    assert "Accuracy" not in str(run.summary())


@pytest.mark.parametrize(
    "change",
    [{"word": "perfect"}, {"error": "small"}, {"objections": ["taste"]}, {"objections": "virial"}, {"more": 2.0}],
    ids=lambda change: next(iter(change)),
)
def test_what_is_no_verdict_is_not_saved(run, change, tmp_path):
    with pytest.raises(InputError, match="cannot be saved"):
        with_verdict(run, verdict("reached").to_json() | change).save(tmp_path / "run")


def test_in_words():
    assert str(verdict("reached")).startswith("Accuracy 0.05 reached: the largest error of a mean or sd is 0.11")
    assert verdict("reached").reached
    assert not verdict("budget").reached
    assert verdict("budget").more == pytest.approx(16)
    assert "about 16 times as long" in str(verdict("budget"))
    assert str(verdict("interrupted")).startswith("Interrupted before accuracy 0.05")
    biased = str(verdict("biased", "virial", "slope", "refused", "tilts"))
    for words in ("0.70 to 1.40", "score 6.0", "0.2 of the steps", "off by 2.0%"):
        assert words in biased
