"""The table and its sentences, and the way to ArviZ."""

import sys

import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import MissingPackage


@pytest.fixture(scope="module")
def run(gaussian):
    return ewsg.sample(
        gaussian,
        ewsg.Uniform(25),
        ewsg.Underdamped(step_size=2e-3, friction=5.0),
        init={"b": jnp.zeros(2)}["b"],
        num_steps=20_000,
        thin=10,
    )


def test_estimates_are_those_of_the_draws(run, centres):
    table = run.summary().parameters
    pooled = run.draws.reshape(-1, 2)
    np.testing.assert_allclose(table["mean"], pooled.mean(0), rtol=1e-5)
    np.testing.assert_allclose(table["sd"], pooled.std(0, ddof=1), rtol=1e-5)
    assert np.all(np.abs(table["mean"] - centres.mean(0)) < 5 * table["mcse"])
    assert table["sd"] == pytest.approx(1 / np.sqrt(50), rel=0.12)
    assert np.all(table["rhat"] < 1.05)
    np.testing.assert_allclose(table["ess_per_million"], table["ess"] / run.cost.datum_gradients * 1e6)
    np.testing.assert_allclose(table["mcse"], table["sd"] / np.sqrt(table["ess"]))
    below = [(pooled < table[end]).mean(0) for end in ("5%", "95%")]
    np.testing.assert_allclose(below, [[0.05, 0.05], [0.95, 0.95]], atol=2 / len(pooled))


def test_a_data_frame_holds_the_table(run):
    summary = run.summary()
    frame = summary.to_pandas()
    assert list(frame.index) == ["theta[0]", "theta[1]"]
    assert list(frame.columns) == ["mean", "sd", "5%", "95%", "mcse", "ess", "ess_per_million", "rhat"]
    for name in frame.columns:
        np.testing.assert_array_equal(frame[name], summary.parameters[name])


def test_without_pandas_a_data_frame_is_one_sentence(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackage, match=r"package pandas, which is not installed: pip install pandas$"):
        run.summary().to_pandas()


def test_silent_when_all_is_well(run):
    summary = run.summary()
    assert summary.warnings == []
    assert "theta[0]" in str(summary)
    assert "!" not in str(summary)


def test_heat_is_named_with_a_remedy(gaussian):
    hot = ewsg.sample(gaussian, ewsg.Uniform(1), ewsg.Underdamped(0.02, 5.0), init=jnp.zeros(2), num_steps=4000)
    sentences = hot.summary().warnings
    assert any("hotter" in s and "take step_size=" in s and "times as large" in s for s in sentences)


def test_unmixed_chains_are_named(gaussian):
    slow = ewsg.sample(
        gaussian,
        ewsg.Uniform(10),
        ewsg.Underdamped(1e-4, 5.0),
        init=lambda key: ewsg._random.normal_like(key, jnp.zeros(2)),
        num_steps=200,
    )
    assert any("have not mixed" in s for s in slow.summary().warnings)


def test_names_of_nested_parameters(centres):
    target = ewsg.Target(lambda p, c: -jnp.sum((p["w"]["a"] - c) ** 2) - p["list"][0] ** 2, None, centres)
    start = {"w": {"a": jnp.zeros(2)}, "list": [jnp.array(0.0)]}
    run = ewsg.sample(target, ewsg.recipes.sgld(5, 1e-4), init=start, num_steps=40)
    assert list(run.summary().parameters["parameter"]) == ["list.0", "w.a[0]", "w.a[1]"]
    assert set(run.to_arviz().posterior.data_vars) == {"list.0", "w.a"}


def test_many_parameters_are_cut_short():
    target = ewsg.Target(lambda w, x: -0.5 * jnp.sum((w - x) ** 2), None, np.zeros(4, np.float32))
    run = ewsg.sample(target, ewsg.recipes.sgld(2, 0.01), init=jnp.zeros((50, 3)), num_steps=40)
    summary = run.summary()
    assert len(summary.parameters["mean"]) == 20
    assert "and 130 more parameters" in str(summary)


def test_arviz_holds_draws_and_stats(run):
    data = run.to_arviz()
    np.testing.assert_array_equal(data.posterior["theta"].values, run.draws)
    np.testing.assert_array_equal(data.sample_stats["kinetic_temperature"].values, run.stats["kinetic_temperature"])


def test_a_single_draw_and_no_good_chain(gaussian):
    one = ewsg.sample(gaussian, ewsg.recipes.sgld(5, 1e-3), init=jnp.zeros(2), num_steps=3, discard=0, thin=3)
    assert np.isnan(one.summary().parameters["ess"]).all()
    none = ewsg.sample(gaussian, ewsg.recipes.sgld(5, 10.0), init=jnp.zeros(2), num_steps=200)
    assert not none.ok.any()
    assert "4 of 4 chains" in str(none.summary())
