"""Bayesian networks: the prior without data, the paper's architectures, what is counted and said, all in miniature."""

import json
import os
import sys
from unittest import mock

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg import cli
from ewsg._core import pytree
from ewsg._engine import driver
from ewsg.lab import experiments
from ewsg.lab.experiments import claims, experiment, report, running
from ewsg.lab.experiments.networks import (
    chains,
    cnn as bnn_cnn,
    index_chain,
    mlp as bnn_mlp,
    report as networks_report,
    shared,
)
from ewsg.lab.folder import Folder
from ewsg.modules import parameters

# ---------------------------------------------------------------- without data


def small_mlp(key):
    return shared.mlp(key, 4, [6])


def small_cnn(key):
    return shared.cnn(key, 4, [3], [])


@pytest.mark.parametrize(
    ("build", "shape", "estimator"),
    [
        pytest.param(small_mlp, (16,), ewsg.Exponential(5), id="mlp"),
        pytest.param(small_cnn, (1, 4, 4), ewsg.Uniform(5), id="cnn", marks=pytest.mark.slow),
    ],
)
def test_without_a_likelihood_the_chain_samples_the_prior(build, shape, estimator):
    """N(0, I): chains and coordinates are independent, so that their averages give the Monte-Carlo error."""
    inputs = np.random.default_rng(0).normal(size=(30, *shape)).astype(np.float32)
    module = eqx.filter_jit(build)(jax.random.key(0))
    target = ewsg.Target.from_module(module, lambda out, y: 0 * jnp.sum(out), (inputs, np.zeros(30, np.int32)))
    run = ewsg.sample(
        target,
        estimator,
        ewsg.BAOAB(step_size=0.1, friction=1.0),
        init=parameters(module),
        num_chains=16,
        num_steps=1200,
        discard=200,
        thin=10,
        progress=False,
    )
    values = np.concatenate([leaf.reshape(16, 100, -1) for leaf in run.draws.values()], axis=2).astype(float)
    for power, expected in ((1, 0.0), (2, 1.0)):
        means = (values**power).mean(1).ravel()
        error = means.std(ddof=1) / np.sqrt(means.size)
        assert error < 0.03
        assert means.mean() == pytest.approx(expected, abs=4.5 * error)
    kinetic = run.stats["kinetic_temperature"].mean(1).astype(float)
    assert kinetic.mean() == pytest.approx(1.0, abs=0.1**2 / 4 + 4.5 * kinetic.std(ddof=1) / 4)
    assert kinetic.std(ddof=1) < 0.03


# ---------------------------------------------------------------- the paper's networks


@pytest.mark.parametrize(
    ("build", "dimension"),
    [
        (lambda key: shared.mlp(key, 28, [100]), 784 * 100 + 100 + 100 * 10 + 10),
        (
            lambda key: shared.cnn(key, 28, [32, 64], [200, 200]),
            (25 * 32 + 32) + (25 * 32 * 64 + 64) + (49 * 64 * 200 + 200) + (200 * 200 + 200) + (200 * 10 + 10),
        ),
    ],
)
def test_architectures(build, dimension):
    params = jax.eval_shape(lambda key: parameters(build(key)), jax.random.key(0))
    assert pytree.size(params) == dimension


def test_layers_of_the_small_ones():
    module = eqx.filter_eval_shape(shared.cnn, jax.random.key(0), 8, [2, 3], [5])
    assert eqx.filter_eval_shape(module, jnp.zeros((1, 8, 8))).shape == (10,)
    assert [type(layer).__name__ for layer in module.layers].count("MaxPool2d") == 2
    assert isinstance(module.layers[-1], eqx.nn.Linear)


def test_digits_of_training_and_test_differ():
    images = shared.load("digits")
    assert images.train.shape == (1500, 8, 8)
    assert images.test.shape == (297, 8, 8)
    assert images.train.min() == 0
    assert images.train.max() == 1
    assert images.train.dtype == np.float32
    assert set(images.test_labels) == set(range(10))


@pytest.mark.parametrize("name", networks_report.METHODS)
def test_methods_are_in_mean_units_at_equal_cost(name):
    how = shared.method(name, 100, 2e-3, 0.1, temperature=0.3)
    n = 60_000
    assert how.estimator.cost(n).datum_gradients == (200 if name in ("EWSG", "paired (ours)") else 100)
    assert how.integrator.temperature == 0.3
    inner = how.integrator.in_sum_units(n)
    if name in ("SGLD", "pSGLD"):
        assert inner.step_size == pytest.approx(2e-3 / n)
    else:
        assert inner.step_size == pytest.approx(2e-3 / np.sqrt(n))
        assert inner.friction == pytest.approx(0.1 * np.sqrt(n))


def test_printed_values():
    assert bnn_mlp.MLP.steps["SGLD"] == pytest.approx(1e-7 * 60_000)
    assert bnn_cnn.CNN.steps["SGLD"] == pytest.approx(2e-8 * 60_000)
    assert min(bnn_mlp.MLP.printed, key=bnn_mlp.MLP.printed.get) == "EWSG"
    assert sum(one < other for one, other in index_chain.PRINTED.values()) == 8
    assert all(experiments.EXPERIMENTS[name].heavy for name in ("bnn-mlp", "bnn-cnn", "bnn-m"))


# ---------------------------------------------------------------- what is said


def repeats(errors, curve=0.1):
    rows = [
        None
        if error is None
        else {
            "error": error,
            "log_likelihood": -1.0,
            "calibration_error": 0.1,
            "brier": 0.2,
            "rhat": 1.0,
            "single_error": error,
            "curve": [0.9, curve + 0.001 * k],
            "passes": [100.0, 200.0],
        }
        for k, error in enumerate(errors)
    ]
    return {"repeats": rows, "together": rows[0], "stats": {}}


@pytest.mark.untyped
def test_claims_are_decided_by_repeats(tmp_path, monkeypatch):
    errors = {"SGHMC": [0.0300, 0.0301, 0.0302], "EWSG": [0.0074, 0.0075, 0.0076], "paired (ours)": [0.02, None, 0.02]}
    cold = {"SGHMC": [0.02, 0.0201, 0.0202], "EWSG": [0.0202, 0.0203, 0.0204]}
    monkeypatch.setattr(shared, "problem", mock.Mock())

    def fake(work, here, name, how):
        method, temperature = name.split(", T = ")
        assert how.integrator.temperature == float(temperature)
        found = (errors if temperature == "1" else cold)[method]
        return repeats(found, curve={"EWSG": 0.05}.get(method, 0.1))

    monkeypatch.setattr(shared, "repeats", fake)
    settings = bnn_cnn.EXPERIMENT.scales["paper"] | {"methods": list(errors), "snapshots": 2}
    outcome = bnn_cnn.run(experiment.Work(Folder(tmp_path / "x", "test"), settings, mock.Mock()))
    holds = {claim.claim: claim.holds for claim in outcome.claims}
    assert holds["SGHMC: test error of the table (within 0.1 points; T = 1)"] == "no"
    assert holds["EWSG: test error of the table (within 0.1 points; T = 1)"] == "yes"
    assert holds["EWSG has a smaller test error than SGHMC (T = 1)"] == "yes"
    assert holds["EWSG has a smaller training error than SGHMC (T = 1)"] == "yes"
    assert holds["not in the paper: paired (ours) has a smaller test error than SGHMC (T = 1)"] == "no"
    assert holds["not in the paper: SGHMC has a smaller test error at T = 0.01 than at T = 1"] == "yes"
    assert holds["not in the paper: EWSG has a smaller test error than SGHMC at T = 0.01"] == "no"
    assert outcome.numbers["table"]["T = 1"]["EWSG"]["error"]["value"] == pytest.approx(0.75)
    assert (tmp_path / "x" / "errors.svg").stat().st_size > 5000


@pytest.mark.untyped
def test_repeats_are_chains_or_runs(tmp_path, monkeypatch):
    chain = {"error": 0.2, "single_error": 0.3, "curve": [0.5, 0.4], "passes": [1, 2]}
    values = {0: {"chains": [chain, chain | {"single_error": 0.5}], "together": {"error": 0.1}, "stats": {}}, 1: None}
    monkeypatch.setattr(shared, "_run", lambda work, here, name, how, seed: values[seed])

    def found(**settings):
        return shared.repeats(experiment.Work(Folder(tmp_path / "x", "test"), settings, mock.Mock()), None, "a", None)

    assert found(runs=1, chains=2)["repeats"] == values[0]["chains"]
    many = found(runs=2, chains=2)["repeats"]
    assert many[0] == {"error": 0.1, "single_error": pytest.approx(0.4), "curve": [0.5, 0.4], "passes": [1, 2]}
    assert many[1] is None


def test_heavy_experiments_run_by_name_only(tmp_path, monkeypatch, capsys):
    done = []

    def run(work):
        done.append(work)
        return experiment.Outcome({}, [], {}, ["As printed."], {"rule": "none"})

    scales = {scale: {"k": 1} for scale in experiment.SCALES}
    fakes = {
        "light": experiment.Experiment("light", "a fake", scales, run),
        "huge": experiment.Experiment("huge", "a fake", scales, run, heavy=True),
    }
    for module in (running, report):
        monkeypatch.setattr(module, "EXPERIMENTS", fakes)
    running.reproduce_all("smoke", tmp_path / "all")
    assert len(done) == 1
    assert "huge take hours" in capsys.readouterr().out.replace("takes", "take")
    assert "`huge`" not in (tmp_path / "all" / "reproduction.md").read_text()
    running.reproduce("huge", "smoke", tmp_path / "all" / "huge")
    assert "`huge`" in report.write(tmp_path / "all").read_text()


# ---------------------------------------------------------------- in miniature


def reproduced(name, folder):
    arguments = ["ewsg", "reproduce", name, "--scale", "smoke", "--out", str(folder / name)]
    with mock.patch.object(sys, "argv", arguments), mock.patch.dict(os.environ), pytest.raises(SystemExit) as exit:
        cli.main()
    assert exit.value.code == 0
    results = json.loads((folder / name / "results.json").read_text())
    assert results["claims"]
    assert {claim["holds"] for claim in results["claims"]} <= {"yes", "no", "undecided"}
    assert results["cost"]["datum_gradients"] > 0
    for figure in results["figures"]:
        assert all((folder / name / f"{figure}.{suffix}").stat().st_size > 5000 for suffix in ("png", "svg"))
    return results["numbers"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bnn-mlp", "bnn-cnn", "bnn-m"])
def test_networks_in_miniature(name, tmp_path, monkeypatch):
    """`ewsg reproduce NAME --scale smoke`, then again: nothing is sampled twice, and the digits are learned."""
    first = reproduced(name, tmp_path)
    rows = first["table"]["T = 1"] if "table" in first else {}
    assert all(row["error"]["value"] < 30 for row in rows.values())
    assert name != "bnn-mlp" or (list(rows)[-1] == "paired (ours)" and "T = 0.01" in first["table"])
    for module in (experiment, chains):
        monkeypatch.setattr(module, "sample", mock.Mock(side_effect=AssertionError))
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", mock.Mock())  # the figures are there
    assert reproduced(name, tmp_path) == first


def test_claims_about_the_end_of_a_chain_are_not_decided_at_its_start():
    claim = networks_report._too_early(claims.Claim("EWSG errs less", "yes", "difference 3 points", "no"), 0.7)
    assert claim.holds == "undecided"
    assert claim.ours == "difference 3 points after 0.7 of 200 epochs"


def test_products_of_the_cnn_are_large_and_those_of_the_mlp_are_not():
    labels = np.zeros(4, np.int32)
    mlp, cnn = eqx.filter_jit(shared.mlp), eqx.filter_jit(shared.cnn)
    small = mlp(jax.random.key(0), 28, [100]), np.zeros((4, 784), np.float32)
    large = cnn(jax.random.key(1), 28, [32, 64], [200, 200]), np.zeros((4, 1, 28, 28), np.float32)
    for (module, images), expected in ((small, False), (large, True)):
        target = ewsg.Target.from_module(module, ewsg.modules.cross_entropy, (images, labels))
        size = target.datum_bytes(parameters(module))
        assert (size > driver._LARGE_DATUM_BYTES) is expected
