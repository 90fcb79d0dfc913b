"""What a summary says of runs that have not mixed, kept no draws, or kept moments: made-up runs, but for two."""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from oracles import statistic

import ewsg
from ewsg.collect import Moments, MomentsSummary
from ewsg.result import Run, RunCost, estimates

COST = RunCost(1000, 0, 2.0, 1.0, 0.5)
PARTS = {
    "estimator": {"component": "Uniform", "batch_size": 10},
    "integrator": {"component": "Underdamped", "step_size": 0.01},
}


def made_up(draws, stats=None, settings=None, collected=(), num_chains=4):
    settings = PARTS | {"temperature": 1.0, "num_steps": 1000} | (settings or {})
    return Run(draws, stats or {}, np.full(num_chains, "ok"), COST, settings, collected)


def temperatures(kinetic, configurational, noise, spread=0.01):
    rng = np.random.default_rng(0)
    values = {"kinetic_temperature": kinetic, "configurational_temperature": configurational, "noise_ratio": noise}
    return {name: value * (1 + spread * rng.normal(size=(4, 200))) for name, value in values.items()}


def independent(count, seed=0):
    return np.random.default_rng(seed).normal(size=(4, 200, count)).astype(np.float32)


def test_the_worst_parameter_is_found_beyond_the_table():
    draws = independent(25)
    draws[0, :, 24] += 5
    summary = made_up(draws).summary()
    exact = statistic("rhat", draws)[24]
    assert exact > 1.5
    assert any(f"R-hat is {exact:.2f} for theta[24]" in sentence for sentence in summary.warnings)
    assert len(summary.parameters["mean"]) == 20
    ess = statistic("ess", draws)[24]
    assert f"Of all parameters, the largest R-hat is {exact:.2f} at theta[24] (ess {ess:,.0f})" in str(summary)


@pytest.mark.parametrize("fault", ["place", "spread", "trend"])
def test_one_of_very_many_parameters_is_found_whatever_is_wrong_with_it(monkeypatch, fault):
    """All are screened, block by block; ArviZ then looks at the worst."""
    monkeypatch.setattr(estimates, "_ENTRIES_PER_BLOCK", 3 * 800)
    draws = {"a": independent(600).reshape(4, 200, 60, 10), "b": independent(41, seed=1)}
    bad = draws["b"][..., 40]
    if fault == "place":
        bad[0] += 5
    elif fault == "spread":
        bad[0] *= 10
    else:
        bad += np.linspace(-3, 3, 200, dtype=np.float32)
    summary = made_up(draws).summary()
    assert any(f"R-hat is {statistic('rhat', bad):.2f} for b[40]" in sentence for sentence in summary.warnings)
    assert "and 621 more parameters" in str(summary)


def test_blocks_do_not_change_the_table(monkeypatch):
    draws = {"a": independent(5), "b": independent(1)[..., 0]}
    whole = made_up(draws).summary().parameters
    monkeypatch.setattr(estimates, "_ENTRIES_PER_BLOCK", 1)
    for name, values in made_up(draws).summary().parameters.items():
        np.testing.assert_array_equal(values, whole[name])
    assert list(whole["parameter"]) == ["a[0]", "a[1]", "a[2]", "a[3]", "a[4]", "b"]


def test_cold_but_quiet_chains_have_not_mixed():
    """T_conf 0.1 with T_kin 1 and hardly any gradient noise: a smaller step would make it worse."""
    sentences = made_up(independent(2), temperatures(1.0, 0.1, 0.001)).summary().warnings
    assert len(sentences) == 1
    assert sentences[0].startswith("The chains have not mixed: configurational temperature 0.10 against 1")
    assert "step_size" not in sentences[0]


def test_unmixed_chains_are_named_once_and_by_rhat():
    draws = independent(2)
    draws[0] += 3
    for configurational in (0.1, 3.0):
        sentences = made_up(draws, temperatures(1.0, configurational, 0.001)).summary().warnings
        assert len(sentences) == 1
        assert sentences[0].startswith("The chains have not mixed: R-hat")


def test_heat_is_still_heat():
    for kinetic, configurational, noise in ((1.4, 1.3, 0.4), (1.0, 1.3, 0.4), (1.0, 1.3, 0.01)):
        (sentence,) = made_up(independent(2), temperatures(kinetic, configurational, noise)).summary().warnings
        assert "hotter than the target temperature" in sentence
        assert "take step_size=0.00" in sentence
        assert "or let ewsg.plan(target) choose" in sentence


def test_one_very_hot_chain_does_not_hide_the_others():
    """Chains of different heat have a standard error as large as their mean, and all of them are hot."""
    stats = temperatures(1.0, 1.0, 0.1)
    stats["kinetic_temperature"] *= np.array([20.0, 30.0, 40.0, 900.0])[:, None]
    (sentence,) = made_up(independent(3), stats).summary().warnings
    assert sentence.startswith("The chains are hotter than the target temperature: kinetic temperature 247")
    stats["kinetic_temperature"] *= np.array([1 / 20, 1 / 30, 1 / 40, 1 / 180])[:, None]  # chance: one chain of four
    assert made_up(independent(3), stats).summary().warnings == []


def test_the_step_size_is_given_by_number():
    """40 % too hot, and 10 % are tolerated: an eighth of the step leaves 5 %."""
    (sentence,) = made_up(independent(2), temperatures(1.4, 1.0, 0.4, spread=1e-4)).summary().warnings
    assert sentence.endswith("take step_size=0.0013 or a batch 8 times as large, or let ewsg.plan(target) choose.")
    parts = {"estimator": {"component": "Full"}, "integrator": {"component": "BAOAB", "step_size": {"$opaque": "f"}}}
    (sentence,) = made_up(independent(2), temperatures(1.4, 1.0, 0.4, spread=1e-4), parts).summary().warnings
    assert sentence.endswith("divide the step size by 8, or let ewsg.plan(target) choose.")


def test_cold_momentum_is_the_step_size():
    (sentence,) = made_up(independent(2), temperatures(0.7, 0.5, 0.01)).summary().warnings
    assert "colder than the target temperature" in sentence


@pytest.mark.parametrize("collect", [None, Moments()])
def test_an_anisotropic_target_with_a_small_step_has_not_mixed(collect):
    """Curvatures 10^4 and, nine times, 1: the step that the first allows moves nothing else within the run."""
    curvature = jnp.array([1e4] + [1.0] * 9)
    target = ewsg.Target(lambda theta, x: -0.5 * jnp.sum(curvature * theta**2) / 20 + 0 * x, None, np.zeros(20))
    run = ewsg.sample(
        target,
        ewsg.Full(),
        ewsg.BAOAB(step_size=5e-3, friction=100.0),
        init=lambda key: 3 * ewsg._random.normal_like(key, jnp.zeros(10)),
        num_chains=4,
        num_steps=1000,
        collect=collect,
        progress=False,
        seed=1,
    )
    assert np.mean(run.stats["kinetic_temperature"]) == pytest.approx(1, abs=0.05)
    assert np.mean(run.stats["configurational_temperature"]) < 0.5
    sentences = run.summary().warnings
    assert any("have not mixed" in sentence for sentence in sentences)
    assert not any("step_size" in sentence for sentence in sentences)


def moments(draws):
    return MomentsSummary(draws.mean(1), draws.var(1, ddof=1))


def test_moments_are_shown_with_a_rhat_between_chains():
    draws = independent(3)
    draws[0, :, 2] += 4
    stats = {"noise_ratio": np.zeros((4, 200))}
    run = made_up((), stats, {"collect": {"component": "Moments"}}, moments(draws))
    summary = run.summary()
    table = summary.parameters
    assert list(table["parameter"]) == ["theta[0]", "theta[1]", "theta[2]"]
    pooled = draws.reshape(-1, 3).astype(float)
    np.testing.assert_allclose(table["mean"], pooled.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(table["sd"], pooled.std(0, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(table["rhat"], statistic("rhat", draws, method="identity"), rtol=1e-5)
    assert any("R-hat is" in sentence and "theta[2]" in sentence for sentence in summary.warnings)
    assert "theta[1]" in str(summary)


def test_moments_of_a_tree_and_of_one_chain():
    draws = {"b": independent(30).reshape(4, 200, 3, 10), "w": independent(1)[..., 0]}
    collected = MomentsSummary(*({k: getattr(moments(v), f) for k, v in draws.items()} for f in ("mean", "variance")))
    stats = {"noise_ratio": np.zeros((4, 200))}
    summary = made_up((), stats, {"collect": {"component": "Moments"}}, collected).summary()
    assert summary.parameters["parameter"][19] == "b[1,9]"
    assert summary.hidden == 11
    assert "Of all parameters, the largest R-hat" in str(summary)
    one = MomentsSummary(moments(draws["w"]).mean[:1], moments(draws["w"]).variance[:1])
    alone = made_up((), {"noise_ratio": np.zeros((1, 200))}, {"collect": {"component": "Moments"}}, one, num_chains=1)
    assert np.isnan(alone.summary().parameters["rhat"]).all()
    assert alone.summary().warnings == []


def interrupted(draws, **settings):
    stats = {name: np.zeros((4, 0)) for name in ("kinetic_temperature", "noise_ratio")}
    return made_up(draws, stats, {"interrupted": True, "num_steps": 120, "discard": 500} | settings)


@pytest.mark.parametrize("draws", [(), np.zeros((4, 0, 3), np.float32)])
def test_interrupted_before_any_draw(draws):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = interrupted(draws, planned_steps=1000).summary()
        text = str(summary)
    assert summary.parameters == {}
    (sentence,) = summary.warnings
    assert "interrupted after 120 of 1000 steps, before any draw was kept (the first 500 steps are discarded)" in text
    assert "run.save" in sentence
    assert 'ewsg.resume("run.npz", target).' in sentence
    assert "nan" not in text.lower()
    assert "after 120 steps" in str(interrupted(draws).summary())


def test_interrupted_after_some_draws():
    (sentence,) = made_up(independent(2), settings={"interrupted": True, "planned_steps": 4000}).summary().warnings
    assert "interrupted after 1000 of 4000 steps" in sentence
    assert 'ewsg.resume("run.npz", target).' in sentence


def test_stats_without_a_number_and_constant_chains_are_quiet():
    stats = {
        "acceptance": np.full((4, 200), np.nan),
        "kinetic_temperature": np.ones((4, 200)),
        "empty": np.zeros((4, 0)),
    }
    draws = independent(3)
    draws[..., 1] = 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = made_up(draws, stats).summary()
        assert "acceptance" not in summary.diagnostics
    assert summary.diagnostics["kinetic_temperature"] == 1
    (sentence,) = summary.warnings
    assert sentence.startswith("All draws of theta[1] are equal: the chains did not move")


def test_a_collector_of_nothing_has_an_empty_table():
    summary = made_up({"none": np.zeros((4, 200, 0), np.float32)}, temperatures(1.0, 1.0, 0.1)).summary()
    assert (summary.parameters, summary.hidden, summary.warnings) == ({}, 0, [])
    assert summary.diagnostics["noise_ratio"] == pytest.approx(0.1, rel=0.01)


def test_no_parameter_is_hidden_where_all_chains_failed():
    run = dataclasses.replace(made_up(independent(25)), status=np.full(4, "diverged"))
    assert run.summary().hidden == 0
    assert "more parameters" not in str(run.summary())
    assert "4 of 4 chains diverged" in str(run.summary())


def test_chains_that_stand_still_at_different_places_have_not_mixed():
    draws = independent(1)
    draws[:] = np.arange(4)[:, None, None]
    assert any("R-hat is inf for theta[0]" in sentence for sentence in made_up(draws).summary().warnings)


def test_the_widest_numbers_fit_into_110_columns():
    draws = {"a_name_of_twenty_two": -1.2345e-15 * (10 + independent(20))}
    lines = str(made_up(draws).summary()).splitlines()
    assert lines[2].startswith("a_name_of_twenty_two[0]")
    assert max(map(len, lines[1:22])) <= 110
    assert len(lines[2].split()) == 9


def test_a_notebook_shows_a_summary_once(monkeypatch):
    """Rich displays whatever is printed to a console in a notebook, at once and besides its file."""
    shown = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *args: shown.append(args))
    assert "theta[0]" in repr(made_up(independent(2)).summary())
    assert shown == []


def test_finite_chains_that_are_far_too_hot_are_not_called_ok():
    """Columns in other units: logistic gradients are bounded, so that nothing overflows at 10^10 times the heat."""
    rng = np.random.default_rng(0)
    features = np.stack([np.ones(200), rng.normal(5e4, 2e4, 200)], axis=1)
    target = ewsg.models.logistic(features, rng.integers(0, 2, 200))
    run = ewsg.sample(target, ewsg.Uniform(20), ewsg.Underdamped(1e-2, 5.0), init=jnp.zeros(2), num_steps=200)
    assert run.ok.all()
    assert run.hot.all()
    assert "4 of 4 chains finite, 4 of them far too hot" in repr(run)
    first = run.summary().warnings[0]
    assert "not from the posterior. Likely cause: the step size is" in first
    assert "standardise" in first
    cooled = dataclasses.replace(run, stats={"kinetic_temperature": np.where(np.arange(100) < 80, 1e6, 1.0)[None]})
    assert not cooled.hot.any()
    assert "4 of 4 chains ok" in repr(cooled)
