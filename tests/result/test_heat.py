"""Single parameters at a wrong temperature, and temperatures that change: draws of Gaussians, with exact forces."""

from typing import Any

import numpy as np
import pytest

from ewsg.result import Run, RunCost, heat

COST = RunCost(1000, 0, 2.0, 1.0, 0.5)
SETTINGS = {
    "estimator": {"component": "Uniform", "batch_size": 10},
    "integrator": {"component": "BAOAB", "step_size": 0.02},
    "num_steps": 1000,
    "coordinates": None,
}


def made_up(z, temperature=1.0, scales: Any = 1.0, center: Any = 0.0, **settings):
    """The run of draws θ = scales · z, (chain, draw, d), of the target N(0, T scales²), with its diagnostics."""
    force = -z / scales
    away = scales * z - center
    virial = -(away * force).sum(-1, keepdims=True)
    stats = {
        "virial": (-away * force).astype(np.float32),
        "virial_slope": (away * ((z.shape[2] + 1) * temperature - virial)).astype(np.float32),
        "kinetic_temperature": np.full(z.shape[:2], temperature, np.float32),
    }
    draws = {"a": (scales * z)[..., 0], "b": (scales * z)[..., 1:].astype(np.float32)}
    return Run(draws, stats, np.full(len(z), "ok"), COST, SETTINGS | {"temperature": temperature} | settings)


def normal(seed=0, size=(4, 500, 30)):
    return np.random.default_rng(seed).normal(size=size)


def changing(slope, seed=0):
    """Draws whose variance in the other 29 directions is 1 + slope · z_7: their means over z_7 are right."""
    z = normal(seed, (8, 1000, 30))
    z[..., 7] = np.clip(z[..., 7], -3, 3)
    others = np.delete(np.arange(30), 7)
    z[..., others] *= np.sqrt(1 + slope * z[..., 7:8])
    return z


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("center", [0.0, 0.5])
def test_exact_draws_are_quiet(seed, center):
    assert heat.warnings(made_up(normal(seed), center=center)) == []
    scales = np.geomspace(1e-3, 1e3, 30)
    assert heat.warnings(made_up(np.sqrt(2.0) * normal(seed), 2.0, scales, center * scales)) == []


@pytest.mark.parametrize(("factor", "word", "sd"), [(1.5, "hotter", "25%"), (0.6, "colder", "20%")])
def test_one_parameter_of_thirty_is_off(factor, word, sd):
    z = normal(size=(4, 4000, 30))
    z[..., 12] *= np.sqrt(factor) / z[..., 12].std()
    run = made_up(z)
    assert abs(run.stats["virial"].mean() - 1) < 0.05
    (sentence,) = heat.warnings(run)
    assert sentence.startswith(f"b[11] is {word} than the target temperature, {factor:.2f} against 1")
    assert f"its sd is off by about {sd}" in sentence
    times = 20 * abs(factor - 1)
    assert f"take step_size={0.02 / times:.2g} or a batch {times:.0f} times as large, or let ewsg.plan" in sentence
    assert sentence in run.summary().warnings


def test_at_another_temperature_and_several_of_them():
    z = np.sqrt(2.0) * normal(size=(4, 4000, 30))
    z[..., [0, 5]] *= np.sqrt(1.4)
    (sentence,) = heat.warnings(made_up(z, 2.0))
    assert "(and 1 more) is hotter than the target temperature, 2." in sentence
    assert "against 2" in sentence


def test_what_a_few_draws_cannot_tell_is_not_said():
    z = normal(size=(4, 40, 30))
    z[..., 12] *= np.sqrt(1.2)
    assert heat.warnings(made_up(z)) == []
    assert heat.warnings(made_up(z[:, :3])) == []
    assert heat.warnings(made_up(z[:1])) == []


@pytest.mark.parametrize("scale", [1.0, 1e-3])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_temperature_that_changes_along_a_parameter(scale, sign):
    """E[z_7 ((d + 1) − |z|²)] = −(d − 1) · slope: 29/31 of the slope is seen."""
    run = made_up(changing(sign * 0.2), scales=scale)
    np.testing.assert_allclose(run.stats["virial"].mean((0, 1)), 1, atol=0.1)
    (sentence,) = heat.warnings(run)
    assert sentence.startswith("The temperature changes along b[6], by 1")
    assert "% per posterior sd (score " in sentence
    assert "or let ewsg.plan(target) choose." in sentence


def test_a_small_change_is_not_worth_a_sentence_however_long_the_run():
    run = made_up(np.concatenate([changing(0.03, seed) for seed in range(4)], axis=1))
    slope = run.stats["virial_slope"][..., 7].astype(float)
    assert abs(slope.mean()) / (slope.std() / np.sqrt(slope.size)) > 4
    assert heat.warnings(run) == []


def test_coordinates_are_numbered():
    z = normal(size=(4, 4000, 30))
    z[..., 12] *= np.sqrt(1.5)
    (sentence,) = heat.warnings(made_up(z, coordinates={"component": "Dense"}))
    assert sentence.startswith("coordinate 12 is hotter")
    (sentence,) = heat.warnings(made_up(changing(0.2), coordinates={"component": "Dense"}))
    assert "along coordinate 7" in sentence


def test_runs_without_such_stats_and_failed_chains():
    run = made_up(normal())
    assert heat.warnings(Run(run.draws, {}, run.status, COST, run.settings)) == []
    assert heat.warnings(Run(run.draws, run.stats, np.full(4, "diverged"), COST, run.settings)) == []
