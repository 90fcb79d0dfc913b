"""What a notebook shows of a run and of its summary."""

import dataclasses
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from made_up import REACHED, made_up, normal

from ewsg.result.columns import formatted

NAME = '<b onclick="alert(1)">&w'


def a_run(verdict=None, status="ok"):
    return made_up({NAME: normal(23)}, {} if verdict is None else {"verdict": verdict.to_json()}, status)


def parsed(shown):
    """The fragment as a tree; it fails to parse if a tag is open or a name is not escaped."""
    return ElementTree.fromstring(shown._repr_html_())


def text(tree):
    return "".join(tree.itertext())


def test_the_table_of_a_summary_has_its_values():
    summary = a_run().summary()
    tree = parsed(summary)
    head, *rows = ([cell.text for cell in row] for row in tree.iter("tr"))
    assert head == list(summary.parameters)
    wanted = zip(*summary.parameters.values(), strict=True)
    assert rows == [[formatted(name, value) for name, value in zip(head, row, strict=True)] for row in wanted]
    assert rows[0][0] == f"{NAME}[0]"
    assert float(rows[0][1]) == pytest.approx(summary.parameters["mean"][0], rel=1e-2)
    assert "... and 3 more parameters" in text(tree)
    assert summary.extreme in text(tree)
    assert "noise ratio 0.25" in text(tree)


@pytest.mark.parametrize("shown", [a_run(), a_run().summary()])
def test_colours_are_the_notebooks_own(shown):
    style = next(parsed(shown).iter("style")).text
    assert "color: inherit" in style
    assert "background" not in style
    assert "http" not in shown._repr_html_()


@pytest.mark.parametrize("word", ["reached", "biased"])
def test_a_verdict_is_shown_once_and_as_what_it_is(word):
    run = a_run(dataclasses.replace(REACHED, word=word))
    for shown in (run, run.summary()):
        found = [part for part in parsed(shown).iter("p") if text(part) == str(run.verdict)]
        assert [part.get("class") for part in found] == ["ewsg-good" if word == "reached" else "ewsg-warning"]


def test_failed_chains_and_other_warnings_are_marked():
    run = a_run(status="diverged")
    marked = [text(part) for part in parsed(run.summary()).iter("p") if part.get("class") == "ewsg-warning"]
    assert marked == run.summary().warnings
    assert "1 of 4 chains failed" in text(parsed(run))


def test_a_run_is_shown_without_a_look_at_its_draws():
    """The summary of a large network takes seconds; the last line of a cell should not."""
    run = dataclasses.replace(a_run(REACHED), draws={"w": np.full((4, 200, 1), np.nan)})
    assert repr(run) in text(parsed(run))


@pytest.mark.slow  # it imports JAX anew
def test_a_first_look_at_a_run_imports_nothing_that_it_does_not_need():
    saved = Path(__file__).parent / "files" / "uniform-0.1.0"
    code = (
        f"import sys, ewsg; run = ewsg.load({str(saved)!r}); str(run.summary()); run._repr_html_();"
        "run.summary()._repr_html_(); print(*{'matplotlib', 'pandas', 'jinja2', 'IPython', 'arviz'} & {*sys.modules})"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""
