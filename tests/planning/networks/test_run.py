"""Planned runs of networks: cost, watch, verdict on predictions, going on, bad input."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_network import DIMENSION, INPUTS, MODULE, NUM_DATA, TRUTH, network

import ewsg
from ewsg.planning.networks import planner as networks
from ewsg.planning.networks.predictions import agreement, predictions
from ewsg.planning.networks.sampling import is_network
from ewsg.planning.networks.stiffness import largest_curvature
from ewsg.planning.networks.watch import watch
from ewsg.result.predictive import PredictiveVerdict, verdict_of


def sampled(**options):
    return ewsg.sample(network(), **{"data_passes": 300, "progress": False} | options)


@pytest.fixture(scope="module")
def entered():
    """(data per step, chains, steps) of all legs whose draws were given up."""
    return []


@pytest.fixture(scope="module")
def run(entered):
    original = networks.NetworkPlanner._enter

    def enter(self, driven):
        entered.append((driven.setting.batch, len(driven.run.status), driven.run.settings["num_steps"]))
        original(self, driven)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(networks.NetworkPlanner, "_enter", enter)
        return sampled()


class TestRun:
    def test_settings_come_from_the_plan(self, run):
        notes = {name: value for name, (value, _) in run.settings["plan"].items()}
        root = math.sqrt(notes["largest curvature"])
        halvings = notes["pilots"] - 1
        assert run.settings["integrator"]["step_size"] == pytest.approx(0.1 / root / 2**halvings)
        assert run.settings["integrator"]["friction"] == pytest.approx(0.07 * root)
        assert run.settings["num_chains"] == 8
        assert notes["budget"] == 300

    def test_every_datum_gradient_is_counted(self, run, entered):
        epochs = run.settings["plan"]["warm start"][0]
        warm = 8 * 64 * epochs
        curvatures = 2 * 4 * 2 * DIMENSION * NUM_DATA
        noise = (8 + 32) * 256
        legs = sum((batch or NUM_DATA) * chains * steps for batch, chains, steps in entered)
        assert len(entered) >= 2  # heating, pilot
        assert run.cost.planning_gradients == warm + curvatures + noise + legs
        own = 8 * run.settings["num_steps"] * 2 * run.settings["estimator"]["batch_size"]
        assert run.cost.datum_gradients == own + run.cost.planning_gradients
        assert run.cost.data_passes <= 300

    def test_equal_seeds_give_equal_runs(self, run):
        again = sampled()
        jax.tree.map(np.testing.assert_array_equal, again.draws, run.draws)
        assert again.verdict == run.verdict

    def test_the_temperature_is_right(self, run):
        assert run.verdict.kinetic == pytest.approx(1, abs=0.05)
        assert run.verdict.objections == ()

    def test_verdict_against_brute_force(self, run):
        """Predictions by restored modules, one by one; variances written out."""
        rows = np.linspace(0, NUM_DATA - 1, 80).round().astype(int)
        length = jax.tree.leaves(run.draws)[0].shape[1]
        chosen = np.linspace(0, length - 1, 400).round().astype(int)
        call = jax.jit(jax.vmap(jax.vmap(ewsg.modules.function_of(MODULE), (None, 0)), (0, None)))
        values = np.stack(
            [call(jax.tree.map(lambda leaf, c=c: leaf[c, chosen], run.draws), INPUTS[rows]) for c in range(8)]
        )
        values = values.astype(np.float64)
        error = spread = between = within = 0.0
        for k in range(80):
            means = [values[c, :, k].mean() for c in range(8)]
            error += np.var(means, ddof=1) / 8
            spread += np.var(values[:, :, k])
            halves = [part for c in range(8) for part in (values[c, :200, k], values[c, 200:, k])]
            between += np.var([half.mean() for half in halves], ddof=1)
            within += np.mean([np.var(half, ddof=1) for half in halves])
        assert run.verdict.mcse == pytest.approx(math.sqrt(error / spread), rel=1e-4)
        assert run.verdict.rhat == pytest.approx(math.sqrt(1 - 1 / 200 + between / within), rel=1e-4)
        assert run.verdict.kinetic == pytest.approx(float(np.mean(run.stats["kinetic_temperature"])), rel=1e-5)

    def test_summary_shows_the_verdict(self, run):
        assert str(run.verdict) in str(run.summary())
        assert "posterior sd" in str(run.verdict)

    def test_predictions_of_other_targets_are_log_likelihoods(self):
        target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, np.array([0.0, 2.0], np.float32))
        found = predictions(target, np.array([[0.0, 1.0]], np.float32))
        np.testing.assert_allclose(found, [[[0, -2], [-0.5, -0.5]]])


def test_plans_go_on_bit_for_bit(tmp_path):
    target = network()
    plan = ewsg.plan(target, accuracy=0.1, progress=False)
    text = str(plan)
    for name, (_, why) in plan.notes.items():
        assert name in text
        assert why in text
    assert text.startswith("Plan for predictions to 0.1 posterior sd")
    assert "the default" in plan.notes["budget"][1]
    run = ewsg.sample(target, plan, data_passes=400, progress=False)
    kept = jax.tree.leaves(plan.pilot.draws)[0].shape[1]
    jax.tree.map(lambda old, new: np.testing.assert_array_equal(new[:, :kept], old), plan.pilot.draws, run.draws)
    plan.save(tmp_path / "plan.npz")
    loaded = dataclasses.replace(plan, pilot=ewsg.load(tmp_path / "plan.npz"))
    again = ewsg.sample(target, loaded, data_passes=400, progress=False)
    jax.tree.map(np.testing.assert_array_equal, again.draws, run.draws)
    run.save(tmp_path / "run.npz")
    assert ewsg.load(tmp_path / "run.npz").verdict == run.verdict
    further = ewsg.resume(tmp_path / "run.npz", target, accuracy=0.08, progress=False)
    assert further.settings["num_steps"] > run.settings["num_steps"]
    assert further.verdict.accuracy == 0.08


class TestWatch:
    def test_a_hot_chain_is_objected_to(self):
        target = network()
        root = math.sqrt(largest_curvature(target, target.init, np.random.default_rng(0))[0])
        options = {"init": target.init, "num_chains": 8, "num_steps": 3_000, "progress": False}
        hot = ewsg.sample(target, ewsg.Uniform(4), ewsg.BAOAB(0.3 / root, 0.07 * root), **options)
        assert np.mean(hot.stats["kinetic_temperature"]) > 1.1
        assert "hot" in watch(hot, settled=True).objections
        fine = ewsg.sample(target, ewsg.Full(), ewsg.BAOAB(0.1 / root, 0.07 * root), **options)
        assert watch(fine, settled=True).objections == ()

    def test_temperatures_within_their_error_pass(self, run):
        def heated(factor, spread):
            each = factor + spread * np.linspace(-1, 1, 8)[:, None] * np.ones((8, 50))
            return dataclasses.replace(run, stats=run.stats | {"kinetic_temperature": each})

        assert watch(heated(1.04, 0.0), settled=True).objections == ()
        assert watch(heated(1.06, 0.0), settled=True).objections == ("hot",)
        assert watch(heated(1.06, 0.2), settled=True).objections == ()
        assert watch(heated(40.0, 39.0), settled=True).objections == ("hot",)  # from 1 to 79
        assert watch(heated(0.94, 0.0), settled=True).objections == ("cold",)
        assert watch(heated(0.94, 0.0), settled=False).objections == ()

    def test_the_planner_halves_the_step(self, monkeypatch):
        """Begun with a step that is stable and hot, it ends with one that is not."""
        original = networks.NetworkPlanner._chosen

        def chosen(self, points, more=1):
            setting = original(self, points, more)
            return setting._replace(batch=4, step_size=8 * setting.step_size)

        monkeypatch.setattr(networks.NetworkPlanner, "_chosen", chosen)
        run = sampled()
        count, words = run.settings["plan"]["pilots"]
        assert count > 1
        assert words.startswith(("hot", "failed", "tilts"))
        begun = 0.8 / math.sqrt(run.settings["plan"]["largest curvature"][0])
        assert run.settings["integrator"]["step_size"] <= begun / 2 ** (count - 1) * 1.0001
        assert run.verdict.kinetic == pytest.approx(1, abs=0.06)


class TestVerdict:
    def test_agreement_of_independent_chains(self):
        """Monte-Carlo error of C chains of D independent draws: 1/√(CD), averaged over 1,000 predictions."""
        values = np.random.default_rng(0).normal(size=(8, 50, 1_000)) * np.linspace(0.1, 5, 1_000)
        found = agreement(values)
        assert found.mcse == pytest.approx(1 / math.sqrt(400), rel=0.05)
        assert found.rhat == pytest.approx(1, abs=0.01)

    def test_chains_that_disagree(self):
        values = np.random.default_rng(0).normal(size=(8, 50, 200)) + 3 * np.arange(8)[:, None, None]
        assert agreement(values).rhat > 3
        assert agreement(np.ones((8, 50, 2))) == (0, 1)
        assert math.isnan(agreement(values[:1]).rhat)

    def test_words(self):
        numbers = (0.2, 0.3, 1.2, 1.3, 1.2, 0.1, 0.25, 100.0)
        budget = PredictiveVerdict("budget", *numbers)
        assert "data_passes=9e+02" in str(budget)
        assert not budget.fine
        assert PredictiveVerdict("budget", 0.2, 0.1, 1.01, 1.0, 1.0, 0.0, 0.0, 1.0).fine
        biased = str(PredictiveVerdict("biased", *numbers, objections=("failed", "hot", "tilts")))
        for words in ("25% of the chains", "1.300 kinetic", "off by 10.0%", "Give a larger budget"):
            assert words in biased
        assert verdict_of(budget.to_json()) == budget
        with pytest.raises(ValueError, match="no verdict"):
            verdict_of(budget.to_json() | {"word": "fine"})


class TestBadInput:
    def test_what_a_network_is(self):
        assert is_network(network())
        plain = ewsg.Target(lambda p, x: -0.5 * jnp.sum((x - p) ** 2), None, np.zeros((3, 501), np.float32))
        assert not is_network(plain)
        assert is_network(plain, np.zeros(501, np.float32))
        assert not is_network(plain, np.zeros(500, np.float32))

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"collect": ewsg.collect.Moments()}, "leave collect= out"),
            ({"data_passes": 0.5}, "give at least data_passes="),
            ({"accuracy": 0.0}, "accuracy"),
            ({"num_chains": 2}, "num_chains=2 is too few"),
            ({"thin": 3}, "thin= is not for a planned run"),
        ],
    )
    def test_one_sentence(self, options, words):
        with pytest.raises(ewsg.errors.InputError, match=words) as error:
            sampled(**options)
        assert "\n" not in str(error.value)

    def test_a_potential_that_curves_upwards(self):
        target = ewsg.Target.from_module(
            MODULE, lambda out, y: 0 * out, (INPUTS, TRUTH), lambda p: 0.0 * p["layers.0.bias"][0]
        )
        with pytest.raises(ewsg.errors.NoPlan, match="largest curvature"):
            ewsg.sample(target, data_passes=50, progress=False)
