"""Runs of targets with constraints: draws are the parameters, however they were made, kept, saved or continued."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import ewsg
from ewsg.planning.networks.predictions import predictions
from ewsg.result import heat
from ewsg.target.density import spaced

X = np.random.default_rng(2).exponential(0.5, 300).astype(np.float32)
SHAPE, INVERSE_SCALE = len(X) + 2, float(X.sum()) + 1
MEAN, SD = SHAPE / INVERSE_SCALE, np.sqrt(SHAPE) / INVERSE_SCALE
METHOD = (ewsg.Full(), ewsg.BAOAB(step_size=0.03, friction=20.0))
OPTIONS = {"num_chains": 4, "num_steps": 300, "thin": 3, "progress": False}


def model(x):
    """Exponential waiting times, whose rate has the posterior Gamma(n + 2, Σx + 1)."""
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    numpyro.deterministic("scale", 1 / rate)
    with numpyro.plate("data", len(x)):
        numpyro.sample("x", dist.Exponential(rate), obs=x)


@pytest.fixture(scope="module")
def target():
    return ewsg.Target.from_numpyro(model, X)


@pytest.fixture(scope="module")
def run(target):
    return ewsg.sample(target, *METHOD, **OPTIONS)


def log_draws(run):
    return np.log(np.asarray(run.draws["rate"], np.float64))


def test_draws_are_parameters_and_all_that_is_derived_from_them(run):
    assert set(run.draws) == {"rate", "scale"}
    np.testing.assert_allclose(run.draws["scale"], 1 / run.draws["rate"], rtol=1e-5)
    effective = 4 * 50 / 4  # a relaxation time of some 4 draws
    assert abs(run.draws["rate"].mean() - MEAN) < 5 * SD / np.sqrt(effective)
    assert list(run.summary().parameters["parameter"]) == ["rate", "scale"]
    assert run.settings["support"] == {"constrained": {"rate": "positive"}, "derived": ["scale"]}


def test_arviz_has_the_names_of_summaries(run):
    assert set(run.to_arviz().posterior.data_vars) == {"rate", "scale"}


def test_temperatures_are_those_of_unconstrained_positions(run, target):
    """The virial of the position: −(z − c) ∂(log density of z)/∂z, c where recording began; here by hand."""
    virial = run.stats["virial"]
    assert virial.shape == (4, 50, 1)
    np.testing.assert_allclose(virial[..., 0], run.stats["configurational_temperature"], rtol=1e-4)
    assert abs(virial.mean() - 1) < 0.5


def test_warnings_on_temperatures_name_the_unconstrained_position(run):
    hot = dataclasses.replace(run, stats=run.stats | {"virial": run.stats["virial"] + 2})
    assert heat.warnings(hot)[0].startswith("rate (unconstrained) is hotter than the target temperature")


def test_coordinates_are_of_unconstrained_positions(target):
    z = ewsg.coordinates.Diagonal({"rate": np.float32(np.log(MEAN))}, np.array([SHAPE**-0.5], np.float32))
    run = ewsg.sample(target, ewsg.Full(), ewsg.BAOAB(0.5, 1.0), coordinates=z, **OPTIONS)
    assert set(run.draws) == {"rate", "scale"}
    np.testing.assert_allclose(run.draws["scale"], 1 / run.draws["rate"], rtol=1e-5)
    assert abs(run.draws["rate"].mean() - MEAN) < 5 * SD / np.sqrt(4 * 50 / 2)
    assert abs(run.draws["rate"].std() / SD - 1) < 5 / np.sqrt(2 * 4 * 50 / 2)


def test_a_resumed_run_is_the_run_that_was_never_interrupted(run, target, tmp_path):
    half = ewsg.sample(target, *METHOD, **OPTIONS | {"num_steps": 150, "discard": 75})
    whole = ewsg.sample(target, *METHOD, **OPTIONS | {"discard": 75})
    half.save(tmp_path / "half.npz")
    loaded = ewsg.load(tmp_path / "half.npz")
    np.testing.assert_array_equal(loaded.draws["scale"], half.draws["scale"])
    again = ewsg.resume(tmp_path / "half.npz", target, num_steps=150, progress=False)
    for name in whole.draws:
        np.testing.assert_array_equal(again.draws[name], whole.draws[name])
    other = ewsg.Target(lambda params, x: jnp.log(params["rate"]) - params["rate"] * x, None, X)
    with pytest.raises(ewsg.errors.InputError, match="different target"):
        ewsg.resume(tmp_path / "half.npz", other, num_steps=150)


def test_moments_are_those_of_the_draws_and_are_loaded_as_such(run, target, tmp_path):
    kept = ewsg.sample(target, *METHOD, collect=ewsg.collect.Moments(), **OPTIONS)
    for name in ("rate", "scale"):
        np.testing.assert_allclose(kept.collected.mean[name], run.draws[name].mean(1), rtol=1e-4)
        np.testing.assert_allclose(kept.collected.variance[name], run.draws[name].var(1, ddof=1), rtol=1e-3)
    kept.save(tmp_path / "moments.npz")
    loaded = ewsg.load(tmp_path / "moments.npz")
    np.testing.assert_array_equal(loaded.collected.variance["scale"], kept.collected.variance["scale"])
    assert str(loaded.summary()) == str(kept.summary())


def test_functions_of_draws_are_given_parameters(target, run):
    kept = ewsg.sample(target, *METHOD, collect=lambda params: params["rate"] * params["scale"], **OPTIONS)
    np.testing.assert_allclose(kept.draws, 1.0, rtol=1e-5)


def test_diagnostics_take_draws_back_to_positions(run, target):
    """KSD over log rate, by hand a target without constraints."""
    plain = ewsg.Target(lambda z, x: z - jnp.exp(z) * x, lambda z: 2 * z - jnp.exp(z), X, init=jnp.float32(0.0))
    expected = ewsg.diagnostics.ksd(log_draws(run).astype(np.float32), plain, bandwidth=0.06)
    np.testing.assert_allclose(ewsg.diagnostics.ksd(run, target, bandwidth=0.06), expected, rtol=1e-2)


def test_the_mode_is_that_of_the_density_over_positions(target):
    found = ewsg.find_mode(target, target.init)
    np.testing.assert_allclose(found.position["rate"], np.log(SHAPE / INVERSE_SCALE), atol=1e-3)
    np.testing.assert_allclose(target.constrain(found.position)["rate"], SHAPE / INVERSE_SCALE, rtol=1e-3)


def test_planned_runs_promise_the_numbers_that_summaries_show(target, tmp_path):
    """The error of the verdict is that of the constrained draws, deterministic sites included."""
    plan = ewsg.plan(target, accuracy=0.1, progress=False)
    assert set(plan.pilot.draws) == {"rate", "scale"}
    run = ewsg.sample(target, plan, progress=False)
    assert run.verdict is not None
    assert run.verdict.reached
    seen = np.stack([np.asarray(run.draws[name], np.float64) for name in ("rate", "scale")], -1)
    by_chain = seen.mean(1).std(0, ddof=1) / np.sqrt(len(seen)) / seen.std((0, 1))
    squares = ((seen - seen.mean((0, 1))) ** 2).mean(1).std(0, ddof=1) / np.sqrt(len(seen))
    of_sds = squares / (2 * seen.var((0, 1)))
    np.testing.assert_allclose(run.verdict.mcse, max(by_chain.max(), of_sds.max()), rtol=1e-3)
    assert abs(run.draws["rate"].mean() - MEAN) / SD < 4 * 0.05
    assert abs(run.draws["rate"].std() / SD - 1) < 4 * 0.05
    plan.save(tmp_path / "plan.npz")
    again = ewsg.resume(tmp_path / "plan.npz", target, progress=False)
    for name in run.draws:
        np.testing.assert_array_equal(again.draws[name], run.draws[name])


def test_nuts_gives_draws_of_parameters(target):
    found = ewsg.reference.nuts(target, target.init, num_warmup=100, num_draws=200, progress=False)
    assert set(found.draws) == {"rate", "scale"}
    assert found.mean.shape == (2,)
    assert abs(found.mean[0] - MEAN) < 5 * SD / np.sqrt(found.ess)
    np.testing.assert_allclose(found.draws["scale"], 1 / found.draws["rate"], rtol=1e-5)


def test_zeros_of_a_cholesky_factor_do_not_count_as_chains_that_stand_still():
    """Nor does the 1 in its corner; other parameters that do not move are named as ever."""
    pairs = np.random.default_rng(3).normal(size=(50, 2)).astype(np.float32)

    def log_likelihood(params, pair):
        white = jax.scipy.linalg.solve_triangular(params["root"], pair - params["mean"], lower=True)
        return -0.5 * jnp.sum(white**2) - jnp.log(params["root"][1, 1])

    init = {"root": np.eye(2, dtype=np.float32), "mean": np.zeros(2, np.float32)}
    target = ewsg.Target(log_likelihood, None, pairs, init=init, constraints={"root": "corr_cholesky"})
    run = ewsg.sample(target, *METHOD, **OPTIONS)
    np.testing.assert_array_equal(run.draws["root"][..., 0, :], np.broadcast_to([1.0, 0.0], (4, 50, 2)))
    np.testing.assert_allclose((run.draws["root"] ** 2).sum(-1), 1.0, rtol=1e-5)
    assert not [warning for warning in run.summary().warnings if "are equal" in warning]
    still = dataclasses.replace(run, draws=run.draws | {"mean": np.zeros((4, 50, 2), np.float32)})
    assert [warning for warning in still.summary().warnings if "All draws of mean[0] are equal" in warning]


def test_many_parameters_are_planned_as_networks_are(tmp_path):
    """Predictions, which the verdict is on, are evaluated at the positions of constrained draws."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(200, 520)) / np.sqrt(520)).astype(np.float32)
    y = (x.sum(1) + 0.3 * rng.normal(size=200)).astype(np.float32)

    def log_likelihood(params, row):
        return -0.5 * ((row[1] - row[0] @ params["w"]) / params["s"]) ** 2 - jnp.log(params["s"])

    def log_prior(params):
        return -0.5 * jnp.sum(params["w"] ** 2) - 0.5 * params["s"] ** 2

    init = {"w": np.zeros(520, np.float32), "s": np.float32(1.0)}
    wide = ewsg.Target(log_likelihood, log_prior, (x, y), init=init, constraints={"s": "positive"})
    run = ewsg.sample(wide, data_passes=60, progress=False)
    assert run.ok.all()
    assert run.draws["s"].min() > 0
    draws = {name: leaf[:, :3] for name, leaf in run.draws.items()}
    found = predictions(wide, wide.positions_of(draws))
    rows = spaced(200, 100)
    fit = np.einsum("ctd,nd->ctn", draws["w"].astype(np.float64), x[rows])
    scale = draws["s"].astype(np.float64)[..., None]
    np.testing.assert_allclose(found, -0.5 * ((y[rows] - fit) / scale) ** 2 - np.log(scale), rtol=1e-3, atol=1e-3)
    run.save(tmp_path / "run.npz")
    again = ewsg.resume(tmp_path / "run.npz", wide, num_steps=10, progress=False)
    old = run.draws["s"].shape[1]
    np.testing.assert_array_equal(again.draws["s"][:, :old], run.draws["s"])


def test_log_likelihoods_of_draws_are_those_of_the_parameters(run, target):
    rate = run.draws["rate"].astype(np.float64)[..., None]
    found = run.log_likelihood(target, rows=[0, 7, 299])
    np.testing.assert_allclose(found, np.log(rate) - rate * X[[0, 7, 299]], rtol=1e-4, atol=1e-5)
