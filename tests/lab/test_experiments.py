"""The paper's experiments: resuming, refusals, the command, the report, and all of them in miniature."""

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from laboratory import work

import ewsg
from ewsg import cli
from ewsg.errors import InputError
from ewsg.lab import experiments, folder, panels
from ewsg.lab.experiments import experiment as base, report, running
from ewsg.lab.experiments.claims import Claim
from ewsg.lab.experiments.gaussian import shared, time_averages


def test_an_interrupted_run_is_not_stored_and_a_finished_one_not_repeated(tmp_path, monkeypatch):
    import dataclasses

    options = {"num_chains": 2, "num_steps": 20, "discard": 0, "thin": 10, "init": np.zeros(2, np.float32)}
    method = ewsg.recipes.sghmc(1, 0.01, 10.0)

    def one(sample):
        monkeypatch.setattr(base, "sample", sample)
        return work(tmp_path / "x").sample(
            "a", shared.target(42), method, lambda run: run.draws.sum().item(), **options
        )

    def interrupted(*args, **kwargs):
        run = ewsg.sample(*args, **kwargs)
        return dataclasses.replace(run, settings=run.settings | {"interrupted": True})

    with pytest.raises(KeyboardInterrupt):
        one(interrupted)
    first = one(ewsg.sample)
    assert one(mock.Mock(side_effect=AssertionError)) == first


def test_names_scales_and_folders_are_checked_first(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "sample", mock.Mock(side_effect=AssertionError))
    with pytest.raises(
        InputError, match=r"did you mean 'gaussian-kl'.*known: blr-covertype, bnn-cnn, bnn-m, bnn-mlp, gaussian-kl"
    ):
        experiments.reproduce("gaussian-lk", "smoke", tmp_path / "x")
    with pytest.raises(InputError, match="unknown scale 'tiny'"):
        experiments.reproduce("speed", "tiny", tmp_path / "x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.json").write_text(json.dumps({"experiment": "reproduce speed"}))
    with pytest.raises(InputError, match="holds results of 'reproduce speed'"):
        experiments.reproduce("theorems", "smoke", tmp_path / "other")
    (tmp_path / "all" / "theorems").mkdir(parents=True)
    (tmp_path / "all" / "theorems" / "mine.txt").write_text("")
    with pytest.raises(InputError, match="theorems holds other files"):
        experiments.reproduce_all("smoke", tmp_path / "all")
    with pytest.raises(InputError, match="no results"):
        report.write(tmp_path / "all")


def ewsg_command(*arguments):
    patched = mock.patch.object(sys, "argv", ["ewsg", *arguments])
    with patched, mock.patch.dict(os.environ), pytest.raises(SystemExit) as exit:
        cli.main()
    return exit.value.code


@pytest.mark.parametrize("arguments", [[], ["speed", "--all"], ["sped"]])
def test_the_command_line_names_the_experiments(arguments, capsys):
    assert ewsg_command("reproduce", *arguments) == 2
    assert "gaussian-kl" in capsys.readouterr().err


def test_list(capsys):
    assert ewsg_command("list") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in experiments.EXPERIMENTS)


GROUPS = {
    "gaussian": ["gaussian-kl", "gaussian-x", "gaussian-m", "mse-time", "mse-step", "mse-bias", "vr-gaussian"],
    "pima": ["vr-logistic", "theorems", "speed"],
    "other": ["blr-covertype", "misspecified"],
}


NEEDED = {"gaussian": ["pima"], "pima": ["pima", "parkinsons"], "other": ["covertype"]}


def test_every_experiment_is_in_a_group():
    """Those on networks have tests of their own (tests/lab/test_networks.py)."""
    light = [name for name, experiment in experiments.EXPERIMENTS.items() if not experiment.heavy]
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(light)


@pytest.mark.slow
@pytest.mark.parametrize("group", [pytest.param(name, marks=pytest.mark.needs_data(*NEEDED[name])) for name in GROUPS])
def test_experiments_in_miniature(group, tmp_path, monkeypatch):
    """`ewsg reproduce NAME --scale smoke`, then again: nothing is sampled twice. Known values are checked."""
    first = {name: reproduced(name, tmp_path) for name in GROUPS[group]}
    if group == "gaussian":
        row = first["mse-bias"]["SGHMC"][-1]
        assert row["bias"] == pytest.approx(time_averages.uniform_bias(7e-2), abs=5 * row["bias_error"])
        printed = first["gaussian-kl"]["printed"]
        assert printed["SGHMC"]["kl_of_each_draw"][0] == pytest.approx(
            1.23, rel=0.35
        )  # three standard errors of 200 chains
        assert printed["SVRG-LD"]["kl_of_each_draw"][0] < 10 * shared.floor(200)
        assert first["vr-gaussian"]["h = 0.05"]["EWSG-VR as printed"]["failed_chains"] == [1.0, 1.0]
    if group == "pima":
        assert all(row["support"] <= 3 for row in first["theorems"]["ends_of_chains"]["gaussian"])
        assert all(row["support"] <= 10 for row in first["theorems"]["ends_of_chains"]["pima"])
    if group == "other":
        assert first["misspecified"]["methods"]["random-walk Metropolis"]["failed"] == 0
    monkeypatch.setattr(base, "sample", mock.Mock(side_effect=AssertionError))
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", mock.Mock())  # the figures are there
    assert {name: reproduced(name, tmp_path) for name in GROUPS[group]} == first


def reproduced(name, folder):
    """The numbers of an experiment, all that it wrote having been looked at."""
    assert ewsg_command("reproduce", name, "--scale", "smoke", "--out", str(folder / name)) == 0
    results = json.loads((folder / name / "results.json").read_text())
    assert results["experiment"] == f"reproduce {name}"
    assert {"settings", "tuning", "claims", "reading", "caption", "cost", "numbers", "versions"} <= results.keys()
    assert {claim["holds"] for claim in results["claims"]} <= {"yes", "no", "undecided"}
    assert "rule" in results["tuning"]
    assert results["cost"]["datum_gradients"] > 0
    for figure in results["figures"]:
        assert all((folder / name / f"{figure}.{suffix}").stat().st_size > 5000 for suffix in ("png", "svg"))
    assert "| claim | paper | ours | holds |" in (folder / name / "claims.md").read_text()
    return results["numbers"]


def test_all_of_them_and_the_report(tmp_path, monkeypatch, capsys):
    def run(work):
        found = work.part("a", {}, lambda: [1.0, 2.0])
        panels.draw(work.figure("figure"), [panels.Panel({"line": panels.Curve([1, 2], found)}, "t", "x", "y")])
        rows = [Claim("it is so", "yes", "0.1", "no"), Claim("not in the paper: more", "-", "3", "yes")]
        return base.Outcome({"found": found}, rows, {"figure": "A line."}, ["As printed."], {"rule": "none"})

    fakes = {
        name: base.Experiment(name, "a fake", {scale: {"k": 1} for scale in base.SCALES}, run)
        for name in ("one", "two")
    }
    for module in (running, report):
        monkeypatch.setattr(module, "EXPERIMENTS", fakes)
    assert ewsg_command("reproduce", "--all", "--scale", "smoke", "--out", str(tmp_path / "all")) == 0
    assert "reproduction.md" in capsys.readouterr().out
    text = (tmp_path / "all" / "reproduction.md").read_text()
    assert "0 hold, 2 do not, 0 are undecided" in text
    assert "- `one`: it is so. Paper: yes; ours: 0.1." in text
    assert "(two/figure.png)" in text
    assert "more. Paper" not in text
    elsewhere = report.write(tmp_path / "all", tmp_path / "page.md")
    assert "(all/two/figure.png)" in elsewhere.read_text()


@pytest.mark.untyped
def test_redraw_judges_stored_parts_again(tmp_path, monkeypatch):
    """Heavy experiments too, whatever the code; an experiment without parts keeps its results and its place."""
    computed, said = [], ["no"]

    def run(work):
        found = work.part("a", {}, lambda: computed.append(1) or 1.0)
        return base.Outcome(
            {"found": found}, [Claim("it is so", "yes", "0.1", *said)], {}, ["As printed."], {"rule": "-"}
        )

    scales = {scale: {"k": 1} for scale in base.SCALES}
    fakes = {name: base.Experiment(name, "a fake", scales, run, heavy=name == "two") for name in ("one", "two", "old")}
    for module in (running, report):
        monkeypatch.setattr(module, "EXPERIMENTS", fakes)
    (tmp_path / "all").mkdir()
    for name in fakes:
        running.reproduce(name, "smoke", tmp_path / "all" / name)
    (tmp_path / "all" / "old" / "parts.jsonl").unlink()
    monkeypatch.setattr(folder, "_code", lambda: "later")
    said[:] = ["yes"]
    assert ewsg_command("reproduce", "--all", "--redraw", "--scale", "smoke", "--out", str(tmp_path / "all")) == 0
    assert len(computed) == 3
    assert "2 hold, 1 do not, 0 are undecided" in (tmp_path / "all" / "reproduction.md").read_text()
    assert ewsg_command("reproduce", "old", "--redraw", "--scale", "smoke", "--out", str(tmp_path / "all" / "old")) == 2
    assert len(computed) == 3


def test_the_page_names_every_version():
    facts = {"scale": "laptop", "claims": [], "cost": {"seconds": 60.0, "compile_seconds": 0.0}}
    old, new = {"ewsg": "0.1.0", "jax": "0.10.1"}, {"ewsg": "0.2.0", "jax": "0.10.1"}
    found = {name: facts | {"versions": versions} for name, versions in (("a", new), ("b", old), ("c", new))}
    assert "3 minutes of sampling and compiling; ewsg 0.1.0 and 0.2.0, jax 0.10.1." in report._introduction(found)


def test_the_page_counts_its_own_rows():
    """Claims of the paper have something in the column `paper`; ours have a dash."""
    text = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
    verdicts = Counter(row[3] for row in rows if len(row) == 4 and row[1] != "-")
    said = re.search(r"Of the paper's claims (\d+) hold, (\d+) do not, (\d+) are undecided", text)
    assert [int(number) for number in said.groups()] == [verdicts[word] for word in ("yes", "no", "undecided")]
    assert text.count("; ours: ") == verdicts["no"]
