"""The paper's experiments: the logic of claims, known values, resuming, refusals, and all of them in miniature."""

import json
import math
import os
import re
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.signal
import scipy.stats
from rich.console import Console

import ewsg
from ewsg import cli
from ewsg.errors import InputError
from ewsg.lab import experiments, panels
from ewsg.lab.experiments import (
    claims,
    experiment as base,
    mean_convergence,
    misspecified,
    report,
    running as reproduce,
)
from ewsg.lab.experiments.claims import Claim, Interval
from ewsg.lab.experiments.covertype import data as covertype, report as blr_report
from ewsg.lab.experiments.gaussian import shared, time_averages
from ewsg.lab.experiments.logistic import log_likelihood
from ewsg.lab.folder import Folder


def work(folder, **settings):
    return base.Work(Folder(folder, "test"), settings, mock.Mock(spec=Console))


# ---------------------------------------------------------------- claims


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


# ---------------------------------------------------------------- known values


def test_kl_after_thirty_passes(tmp_path):
    """The value of an independent implementation for these centres (tests/test_gaussian.py)."""
    here = work(tmp_path / "x", chains=4000, data_passes=30)
    row = shared.kl_curve(here, "EWSG", ewsg.recipes.ewsg(1, 0.05, 10.0), 42)
    assert row["value"]["kl"][-1] == pytest.approx(0.93, rel=0.1)
    assert row["value"]["passes"] == list(range(1, 31))
    assert row["cost"]["data_passes"] == 30
    assert here.cost["datum_gradients"] == 4000 * 1500


def test_settling_ignores_noise():
    assert shared.settled([1, 2, 3, 4], [9.0, 1.4, 1.1, 1.0], 0.0) == 2
    assert shared.settled([1, 2, 3, 4], [0.9, 0.012, 0.004, 0.001], 0.01) == 2
    assert shared.settled([1, 2], [1.0, 1.0], 0.0) == 1


def test_time_averages_of_the_full_gradient_are_exact(tmp_path):
    h, steps, thin = 0.01, 200, 4
    run = ewsg.sample(
        time_averages.target(),
        ewsg.recipes.full_gradient(h, shared.FRICTION),
        init=time_averages.start,
        num_chains=4000,
        num_steps=steps + 200,
        discard=200,
        thin=thin,
    )
    found, exact = (
        time_averages.Spread(**time_averages.spread(time_averages.phi(run))),
        time_averages.full_gradient(h, steps, thin),
    )
    assert found.bias == pytest.approx(exact.bias, abs=4 * found.bias_error)
    assert found.variance == pytest.approx(exact.variance, abs=4 * found.variance_error)
    assert found.mse == pytest.approx(found.bias**2 + found.variance)


def test_exact_bias_of_sghmc():
    """To first order in h: (h/2γ)·n²·var(c)/n over the full gradient's own."""
    h = 1e-6
    noise = time_averages.data().astype(float).var(0).mean() * shared.NUM_DATA**2
    expected = (
        time_averages.EXACT * h * noise / (2 * shared.FRICTION)
        + time_averages.stationary(h)[1][0, 0]
        - time_averages.EXACT
    )
    assert time_averages.uniform_bias(h) == pytest.approx(expected, rel=1e-3)


def test_exact_posterior_of_the_misspecified_model():
    """Against quadrature on a grid."""
    data = np.exp(np.random.default_rng(1).normal(size=40)).astype(np.float32)
    x = data.astype(float)
    mu, s = np.meshgrid(np.linspace(-3, 7, 801), np.linspace(-1.5, 2.5, 801), indexing="ij")
    squares = np.sum((x - x.mean()) ** 2) + len(x) * (x.mean() - mu) ** 2
    weights = np.exp(-len(x) * s - squares / (2 * np.exp(2 * s)) + 50)
    weights /= weights.sum()
    means = [np.sum(weights * v) for v in (mu, s)]
    sds = [np.sqrt(np.sum(weights * (v - m) ** 2)) for v, m in zip((mu, s), means, strict=True)]
    exact = misspecified.exact(data)
    np.testing.assert_allclose(exact.mean, means, rtol=1e-4)
    np.testing.assert_allclose(exact.sd, sds, rtol=1e-4)


def test_autocorrelation_of_an_autoregression():
    rng = np.random.default_rng(0)
    values = scipy.signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=200_000))
    np.testing.assert_allclose(misspecified.autocorrelation(values, np.array([0, 1, 10])), [1, 0.9, 0.9**10], atol=0.02)


def test_laplace_is_the_mode():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3)).astype(np.float32)
    found = covertype.laplace(rows)
    target = ewsg.models.logistic(rows, np.ones(500), prior_precision=covertype.PRECISION)
    import jax.numpy as jnp

    np.testing.assert_allclose(target.full_force(jnp.asarray(found.mode, jnp.float32)), 0, atol=1e-3)
    p = 1 / (1 + np.exp(-rows @ found.mode))
    hessian = 10 * np.eye(3) + (rows * (p * (1 - p))[:, None]).T @ rows
    np.testing.assert_allclose(np.linalg.inv(found.root @ found.root.T), hessian, rtol=1e-4)


def test_predictions_by_hand():
    rows = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], np.float32)
    draws = np.array([[0.5, 0.2], [-0.1, 0.4]], np.float32)
    scores = np.array([[0.5, -0.1], [0.4, 0.8], [-0.7, -0.3]])
    p = 1 / (1 + np.exp(-scores))
    found = blr_report.predict(draws, rows)
    assert found["accuracy"] == pytest.approx(100 * np.mean(p.mean(1) > 0.5))
    assert found["accuracy_of_single_draws"] == pytest.approx(50.0)
    assert found["log_likelihood"] == pytest.approx(np.log(p).mean(), rel=1e-5)
    assert found["log_likelihood_of_average"] == pytest.approx(np.log(p.mean(1)).mean(), rel=1e-5)
    np.testing.assert_allclose(log_likelihood(draws, rows), np.log(p).mean(0), rtol=1e-5)


def test_distances_of_means_are_free_of_noise():
    rng = np.random.default_rng(0)
    exact = {h: np.zeros(60) for h in mean_convergence.STEPS}
    noise = {h: 0.1 + rng.normal(size=(10, 60)) for h in mean_convergence.STEPS}
    for value, error in zip(*mean_convergence._distances(noise, exact), strict=True):
        assert value**2 == pytest.approx(0.01, abs=4 * 2 * value * error)


# ---------------------------------------------------------------- folders


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


def test_missing_data_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("EWSG_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("ewsg.datasets.download._fetch", mock.Mock(side_effect=OSError("no network")))
    with pytest.raises(InputError, match="covertype"):
        covertype.load()


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
    """Those on networks have tests of their own (tests/test_bnn.py)."""
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
        assert printed["SGHMC"]["kl_of_each_draw"][0] == pytest.approx(1.23, rel=0.25)
        assert printed["SVRG-LD"]["kl_of_each_draw"][0] < 10 * shared.floor(400)
        assert first["vr-gaussian"]["h = 0.05"]["EWSG-VR as printed"]["failed_chains"] == [1.0, 1.0]
    if group == "pima":
        assert all(row["support"] <= 3 for row in first["theorems"]["ends_of_chains"]["gaussian"])
        assert all(row["support"] <= 10 for row in first["theorems"]["ends_of_chains"]["pima"])
    if group == "other":
        assert first["misspecified"]["methods"]["random-walk Metropolis"]["failed"] == 0
    monkeypatch.setattr(base, "sample", mock.Mock(side_effect=AssertionError))
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
    for module in (reproduce, report):
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


def test_two_readings_of_a_printed_step_are_one_claim():
    """Table 1 has -0.525 for SGLD and SGHMC: SGLD has it in sum units, SGHMC in neither, and one reading diverges."""

    def row(method, units, found, preparation="unit rows"):
        value = None if found is None else {"log_likelihood": found}
        return {"method": method, "units": units, "preparation": preparation, "value": value, "failed": 1.0}

    found = blr_report._scalings(
        [
            row("SGLD", "sum", -0.527),
            row("SGLD", "mean", -0.693),
            row("SGHMC", "sum", None),
            row("SGHMC", "mean", -0.531),
            row("SGHMC", "mean", -0.525, "min-max"),
        ]
    )
    assert [(claim.claim.split()[0], claim.holds) for claim in found] == [("SGLD", "yes"), ("SGHMC", "no")]
    assert found[0].ours == "sum units -0.527; mean units -0.693; one run each"
    assert found[1].ours == "sum units 100% of chains diverged; mean units -0.531; one run each"


def test_the_page_counts_its_own_rows():
    """Claims of the paper have something in the column `paper`; ours have a dash."""
    text = (Path(__file__).parents[1] / "docs" / "reproduction.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
    verdicts = Counter(row[3] for row in rows if len(row) == 4 and row[1] != "-")
    said = re.search(r"Of the paper's claims (\d+) hold, (\d+) do not, (\d+) are undecided", text)
    assert [int(number) for number in said.groups()] == [verdicts[word] for word in ("yes", "no", "undecided")]
    assert text.count("; ours: ") == verdicts["no"]
