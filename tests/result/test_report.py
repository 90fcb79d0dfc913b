"""The page on a run: its numbers are those of the summary, its words fit the run, and it loads nothing."""

import dataclasses
import re
import sys

import numpy as np
import pytest
from made_up import PREDICTED, REACHED, SETTINGS, made_up, normal
from pages import Page

from ewsg.collect import MomentsSummary
from ewsg.errors import InputError, MissingPackage, SaveError
from ewsg.result.columns import formatted
from ewsg.result.predictive import PredictiveVerdict
from ewsg.result.report import page

NAME = '</pre><script>alert("$x$")</script><b>'
GOAL = {"accuracy": 0.05, "budget": None, "seconds": None, "num_chains": 4, "pooled": True}
PLAN = {"step size": [0.089336, "h < min(1/2, ...)"], "pilots": [2, "accepted"]}


def planned(verdict, **settings):
    return {"verdict": verdict.to_json(), "goal": GOAL, "plan": PLAN} | settings


@pytest.fixture(scope="module")
def run():
    return made_up({NAME: normal(), "b": 3 + normal(seed=1)}, planned(REACHED))


@pytest.fixture(scope="module")
def text(run):
    return page(run)


@pytest.fixture(scope="module")
def read(text):
    return Page(text)


def without_draws(run):
    return dataclasses.replace(run, draws={name: values[:, :0] for name, values in run.draws.items()})


def test_the_table_is_that_of_the_summary(run, read):
    parameters = run.summary().parameters
    head, *rows = read.tables["marginals"][0]
    assert head == list(parameters)
    wanted = zip(*parameters.values(), strict=True)
    assert rows == [[formatted(name, value) for name, value in zip(head, row, strict=True)] for row in wanted]


def test_convergence_and_diagnostics_have_values_right_values_and_meanings(run, read):
    table = run.summary().parameters
    rows = {row[0]: row[1:] for row in read.tables["convergence"][0]}
    worst = int(np.argmax(table["rhat"]))
    assert rows["largest R-hat"][:2] == [f"{table['rhat'][worst]:.2f} ({table['parameter'][worst]})", "at most 1.05"]
    assert rows["smallest ESS"][0].startswith(f"{table['ess'].min():,.0f} (")
    found = {row[0]: row[1:] for row in read.tables["subsampling"][0]}
    for name, right in (("kinetic temperature", "1"), ("noise ratio", "well below 1")):
        assert found[name][0] == f"{run.summary().diagnostics[name.replace(' ', '_')]:.3g}"
        assert found[name][1] == right
        assert len(found[name][2]) > 20
    behind = {row[0]: row[1:3] for row in read.tables["subsampling"][1]}
    assert behind["error"] == ["0.03", "at most 0.05"]
    assert behind["mcse"] == ["0.02", "at most 0.025"]


def test_the_right_temperature_is_that_of_the_target():
    read = Page(page(made_up({"a": normal()}, temperature=2.5)))
    rows = {row[0]: row[1:] for row in read.tables["subsampling"][0]}
    assert rows["kinetic temperature"][:2] == ["2.5", "2.5"]
    assert ["temperature", "2.5"] in read.tables["asked"][0]


def test_cost_and_reproduction(run, read):
    assert ["gradients of one datum, all chains together", "123,456"] in read.tables["cost"][0]
    assert ["step size", "0.08934", "h < min(1/2, ...)"] in read.tables["asked"][1]
    words = read.words["reproduce"]
    assert "target,\n    accuracy=0.05,\n    num_chains=4,\n    seed=7,\n" in words
    assert "jax 0.10.1" in words
    assert '"thin": 2' in words


def test_the_call_of_a_run_set_by_hand_repeats_it():
    words = Page(page(made_up({"a": normal()}))).words["reproduce"]
    call = re.search(r"run = (ewsg\.sample\(.*?^\))", words, re.DOTALL | re.MULTILINE)
    assert call is not None
    made = {}

    class Recorded:
        def __getattr__(self, name):
            return lambda *given, **settings: made.setdefault(name, (given, settings))

    eval(call[1], {"ewsg": Recorded(), "target": "the target"})
    assert made["Uniform"] == ((), {"batch_size": 10, "replace": True})
    assert made["Underdamped"] == ((), {"step_size": 0.01, "friction": 5.0})
    given, settings = made["sample"]
    assert given[0] == "the target"
    kept = ("num_chains", "num_steps", "discard", "thin", "seed", "rng")
    assert settings == {name: SETTINGS[name] for name in kept} | {"init": ...}


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({}, "good", "Nothing looks wrong"),
        (planned(REACHED), "good", "Accuracy 0.05 was reached"),
        (planned(dataclasses.replace(REACHED, word="budget", mcse=0.1)), "caution", "before accuracy 0.05 was"),
        (planned(dataclasses.replace(REACHED, word="biased", objections=("slope",))), "bad", "Do not rely on"),
        (planned(dataclasses.replace(REACHED, word="interrupted")), "caution", "was interrupted"),
        (planned(PREDICTED), "caution", "judged by its predictions"),
        (planned(dataclasses.replace(PREDICTED, word="reached")), "good", "was reached"),
    ],
    ids=["by hand", "reached", "budget", "biased", "interrupted", "network", "network reached"],
)
def test_the_verdict_is_in_plain_words(settings, level, words):
    run = dataclasses.replace(without_draws(made_up({"a": normal()}, settings)), stats={})
    read = Page(page(run))
    assert {"class": f"verdict {level}", "id": "verdict"} in [given for _, given in read.attributes]
    assert words in read.words["verdict"]
    if run.verdict is not None:
        assert str(run.verdict) in read.words["verdict"]
        assert "warnings" not in read.words  # it would be said twice
    assert ("between which chains need not agree" in read.words["convergence"]) is isinstance(
        run.verdict, PredictiveVerdict
    )


@pytest.mark.parametrize(
    ("goal", "words", "arguments"),
    [
        ({}, "every mean and sd to 0.05 posterior sd", "accuracy=0.05,\n"),
        ({"budget": 12_000.0}, "to 0.05 posterior sd, within 30 passes over", "accuracy=0.05,\n    data_passes=30,\n"),
        ({"accuracy": None, "seconds": 9.0}, "as possible, within 9 seconds", "target,\n    seconds=9.0,"),
    ],
)
def test_what_was_asked_of_a_planned_run(goal, words, arguments):
    run = dataclasses.replace(without_draws(made_up({"a": normal()}, planned(REACHED, goal=GOAL | goal))), stats={})
    read = Page(page(run))
    assert words in read.words["asked"]
    assert arguments in read.words["reproduce"]


def test_warnings_are_those_of_the_summary():
    draws = normal(2)
    draws[0] += 3
    run = made_up({"w": draws}, status="diverged")
    read = Page(page(run))
    assert len(run.summary().warnings) == 2
    assert [line for line in read.words["warnings"].splitlines() if line][1:] == run.summary().warnings
    assert ["chains", "3 of 4", "4", "Chains that did not fail."] in read.tables["convergence"][0]


def test_names_are_escaped_and_nothing_is_loaded(text, read):
    assert "<script" not in text
    assert read.tables["marginals"][0][1][0] == NAME
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)
    assert not {"script", "link", "img", "iframe", "object", "base"} & {tag for tag, _ in read.attributes}
    loaded = [value for _, given in read.attributes for name, value in given.items() if name in ("src", "href")]
    assert all(value.startswith("#") for value in loaded)


def test_figures_refer_to_their_own_parts_only(text, read):
    assert read.count("svg") == read.count("figure") == 7
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', text))
    assert used <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert {"Marginal of b", f"Traces of {NAME}"} <= {given.get("aria-label") for tag, given in read.attributes}


@pytest.mark.parametrize("kind", ["moments", "failed", "nothing kept", "no stats", "no versions"])
def test_a_run_without_draws_has_a_page_too(run, kind):
    if kind == "moments":
        moments = MomentsSummary({"a": np.zeros((4, 2))}, {"a": np.ones((4, 2))})
        run = dataclasses.replace(run, draws=(), collected=moments)
    elif kind == "failed":
        run = dataclasses.replace(run, status=np.full(4, "nonfinite"))
    elif kind == "nothing kept":
        run = dataclasses.replace(without_draws(run), stats={"noise_ratio": np.zeros((4, 0))})
    elif kind == "no stats":
        run = dataclasses.replace(without_draws(run), stats={})
    else:
        run = without_draws(made_up({"a": normal()}))
        run = dataclasses.replace(run, settings={k: v for k, v in run.settings.items() if k not in ("versions", "rng")})
    read = Page(page(run))
    said = {"moments": "kept no draws", "failed": "all 4 chains failed", "nothing kept": "No draw was kept"}
    assert said.get(kind, "No figures") in read.words["marginals"]
    assert read.count("svg") == (2 if kind in ("moments", "no versions") else 0)
    if kind == "failed":
        assert "All chains failed" in read.words["verdict"]


def test_it_is_written_to_a_file_or_not_at_all(run, text, tmp_path, monkeypatch):
    path = tmp_path / "run.html"
    run.report(path)
    assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]
    for wrong, error, words in (
        (tmp_path, SaveError, "is a folder: give the name of a file"),
        (tmp_path / "none" / "run.html", SaveError, "does not exist; create it first"),
        (tmp_path / "run.npz", InputError, "ends in .html, not 'run.npz'"),
        (3, InputError, "cannot write to 3: give the name of a file"),
    ):
        with pytest.raises(error, match=re.escape(words)):
            run.report(wrong)
    for package in ("jinja2", "matplotlib"):
        sentence = f"{package}, which is not installed: pip install 'ewsg[report]'"
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(MissingPackage, match=re.escape(sentence)):
                run.report(path)
    assert path.read_text(encoding="utf-8") == text
