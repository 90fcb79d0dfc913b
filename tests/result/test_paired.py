"""The error that `Paired` predicts for itself: both limits, heavy tails, rules, and the warning."""

import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.result import paired
from ewsg.result.paired import predicted_sd_error

RULES = ("weight", "select", "sequential")
SETTINGS = {
    "estimator": {"component": "SVRG", "inner": {"component": "Paired", "batch_size": 4}},
    "integrator": {"component": "BAOAB", "step_size": 0.01},
}


def moments(tilts):
    share = np.clip(tilts / 2, -1, 1)
    return {
        "second": np.mean(tilts**2),
        "lean": np.mean(2 * share * tilts),
        "squared_share": np.mean((share * tilts) ** 2),
    }


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0])
def test_of_small_tilts_it_is_the_fourth_moment(ratio):
    """(τ₄/8) ρ/(1 + ρ), τ₄ = E[D⁴]/(3 E[D²]), as nothing is cut."""
    tilts = 0.2 * np.random.default_rng(0).normal(size=10_000)
    tau = np.mean(tilts**4) / (3 * np.mean(tilts**2))
    found = predicted_sd_error(**moments(tilts), noise_ratio=ratio)
    assert found == pytest.approx(tau / 8 * ratio / (1 + ratio), rel=1e-9)


@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_of_huge_tilts_it_is_the_heat_of_uniform_minibatches(ratio):
    """No friction is left: ρ/2, and ρ/(1 + ρ)/6 for weights that are 0 or 2."""
    tilts = 1e6 * np.random.default_rng(0).normal(size=10_000)
    found = predicted_sd_error(**moments(tilts), noise_ratio=ratio)
    assert found == pytest.approx(ratio / 2 + ratio / (1 + ratio) / 6, rel=1e-4)


def test_heavy_tails_do_not_make_it_explode():
    """One pair in a thousand is far out: E[D⁴] is all its own, and yet it cannot do more than be cut."""
    tilts = np.append(0.1 * np.random.default_rng(0).normal(size=9_990), np.full(10, 300.0))
    tau = np.mean(tilts**4) / (3 * np.mean(tilts**2))
    ratio = 0.2
    assert tau / 8 * ratio / (1 + ratio) > 500
    assert 0.05 < predicted_sd_error(**moments(tilts), noise_ratio=ratio) < 0.2


def test_by_hand():
    """l = 1 − 1.5/2 = ¼: (½)·0.6/(6·2) + ½·1·¼/(1 + ¾)."""
    given = {"second": 2.0, "lean": 1.5, "squared_share": 0.6, "noise_ratio": 1.0}
    found = {rule: predicted_sd_error(**given, rule=rule) for rule in RULES}
    exact = 0.5 * 0.6 / 12 + 0.125 / 1.75
    assert found == pytest.approx({"weight": exact, "select": exact, "sequential": exact / 2})
    assert predicted_sd_error(0.0, 0.0, 0.0, 1.0) == 0.0
    assert predicted_sd_error(2.0, 2.1, 0.0, 1.0) == 0.0  # by rounding


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_of_a_run_is_found_inside_wrappers(gaussian, rule):
    inner = ewsg.Leverage(ewsg.Paired(2, rule), jnp.ones((1, 2)))
    run = ewsg.sample(
        gaussian, ewsg.SVRG(inner, 4), ewsg.BAOAB(0.02, 5.0), init=jnp.zeros(2), num_steps=40, num_chains=2
    )
    assert paired.rule_of(run.settings["estimator"]) == rule
    diagnostics = run.summary().diagnostics
    means = {name: float(np.mean(values)) for name, values in run.stats.items()}
    given = [means[name] for name in ("tilt_second", "tilt_lean", "tilt_squared_share", "noise_ratio")]
    assert diagnostics["predicted_sd_error"] == pytest.approx(predicted_sd_error(*given, rule), rel=1e-6)
    assert not any(name.startswith("tilt_") for name in diagnostics)
    assert paired.rule_of(None) == paired.rule_of({"component": "Uniform"}) == "weight"


def test_the_warning_says_what_and_why():
    quiet = {"predicted_sd_error": 0.04, "noise_ratio": 0.3, "clipped": 0.1}
    assert paired.warnings(quiet, SETTINGS) == []
    (sentence,) = paired.warnings(quiet | {"predicted_sd_error": 0.07}, SETTINGS)
    assert "off by 7% (gradient noise 0.3 times the injected noise, 10% of the pairs clipped)" in sentence
    assert sentence.endswith("take step_size=0.0071 or a batch 2 times as large, or let ewsg.plan(target) choose.")
    assert "more than 50%" in paired.warnings(quiet | {"predicted_sd_error": 3.0}, SETTINGS)[0]
