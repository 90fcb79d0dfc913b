"""The object for ArviZ: coordinates, data, log-likelihoods, attributes, and the functions of ArviZ that use them."""

import dataclasses
import json
import warnings

import jax.numpy as jnp
import jax.scipy.stats as stats
import numpy as np
import pytest
import scipy.stats

import ewsg
from ewsg.errors import InputError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz as az

NEW = int(az.__version__.split(".")[0]) >= 1
RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2)).astype(np.float32)
BETA, INTERCEPT = np.array([1.0, -0.5]), 0.3
Y = (X @ BETA + INTERCEPT + RNG.normal(size=40)).astype(np.float32)
PRECISION_OF_PRIOR = 0.25


def log_likelihood(params, datum):
    x, y = datum
    return stats.norm.logpdf(y, x @ params["beta"] + params["intercept"])


def log_prior(params):
    return -0.5 * PRECISION_OF_PRIOR * (params["intercept"] ** 2 + jnp.sum(params["beta"] ** 2))


def posterior(x, y):
    """Mean and covariance of (intercept, beta) under N(0, 4 I), in float64."""
    design = np.column_stack([np.ones(len(x)), x]).astype(float)
    covariance = np.linalg.inv(design.T @ design + PRECISION_OF_PRIOR * np.eye(3))
    return covariance @ design.T @ y.astype(float), covariance


@pytest.fixture(scope="module")
def target():
    return ewsg.Target(log_likelihood, log_prior, (X, Y), init={"beta": np.zeros(2, np.float32), "intercept": 0.0})


@pytest.fixture(scope="module")
def run(target):
    """A run whose draws are replaced by 4,000 exact ones."""
    method = ewsg.Uniform(8), ewsg.BAOAB(step_size=0.02, friction=5.0)
    found = ewsg.sample(target, *method, num_chains=2, num_steps=8, discard=4, thin=1, progress=False)
    draws = np.random.default_rng(0).multivariate_normal(*posterior(X, Y), size=(2, 2000)).astype(np.float32)
    stats = {name: np.repeat(values, 500, axis=1) for name, values in found.stats.items()}
    return dataclasses.replace(found, draws={"beta": draws[..., 1:], "intercept": draws[..., 0]}, stats=stats)


@pytest.fixture(scope="module")
def whole(run, target):
    return run.to_arviz({"feature": ["age", "dose"]}, {"beta": ["feature"]}, target=target, log_likelihood=True)


def test_axes_have_the_given_names_and_labels(run, whole):
    assert whole.posterior["beta"].dims == ("chain", "draw", "feature")
    dose = whole.posterior["beta"].sel(feature="dose").values
    np.testing.assert_array_equal(dose, run.draws["beta"][..., 1])
    assert whole.sample_stats["kinetic_temperature"].shape == (2, 2000)


def test_data_are_inputs_and_outcomes(whole):
    np.testing.assert_array_equal(whole.observed_data["y"], Y)
    np.testing.assert_array_equal(whole.constant_data["x"], X)
    assert whole.observed_data["y"].dims == whole.constant_data["x"].dims[:1] == ("datum",)


def test_log_likelihoods_are_those_of_each_datum_at_each_draw(run, whole):
    mean = run.draws["beta"].astype(float) @ X.T.astype(float) + run.draws["intercept"][..., None]
    exact = scipy.stats.norm.logpdf(Y.astype(float), mean)
    assert whole.log_likelihood["y"].dims == ("chain", "draw", "datum")
    np.testing.assert_allclose(whole.log_likelihood["y"], exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("group", ["", "posterior"])
def test_attributes_are_json(run, whole, group):
    attrs = (whole[group] if group else whole).attrs
    assert attrs["inference_library"] == "ewsg"
    assert attrs["inference_library_version"] == ewsg.__version__
    assert attrs["sampling_time"] == run.cost.seconds
    assert json.loads(attrs["settings"])["estimator"]["batch_size"] == 8
    assert json.loads(attrs["cost"]) == dataclasses.asdict(run.cost)
    assert "verdict" not in attrs  # the run was not planned
    assert all(isinstance(value, str | float | int | list | np.ndarray) for value in attrs.values())


def test_the_verdict_is_an_attribute_too(run):
    verdict = {"word": "reached", "accuracy": 0.05, "objections": []}
    planned = dataclasses.replace(run, settings=run.settings | {"verdict": verdict})
    assert json.loads(planned.to_arviz().attrs["verdict"]) == verdict


def test_rows_limit_data_and_log_likelihoods(run, target, whole):
    rows = [7, 31, 2]
    part = run.to_arviz(target=target, log_likelihood=True, rows=rows)
    np.testing.assert_array_equal(part.log_likelihood["y"], whole.log_likelihood["y"].values[..., rows])
    np.testing.assert_array_equal(part.observed_data["y"], Y[rows])
    np.testing.assert_array_equal(part.log_likelihood["datum"], rows)
    data_alone = run.to_arviz(target=target)
    assert "log_likelihood" not in (data_alone.children if NEW else data_alone.groups())


def exact_loo():
    """Σ_i log p(y_i | all others), each a normal density."""
    total = 0.0
    for i in range(len(Y)):
        rest = np.arange(len(Y)) != i
        mean, covariance = posterior(X[rest], Y[rest])
        row = np.append(1.0, X[i])
        total += scipy.stats.norm.logpdf(Y[i], row @ mean, np.sqrt(1 + row @ covariance @ row))
    return total


def monte_carlo_error(whole):
    """Of Σ_i −log mean(1/p_i) over 4,000 independent draws, by the delta method."""
    inverse = np.exp(-whole.log_likelihood["y"].values.reshape(4000, -1).astype(float))
    return (inverse / inverse.mean(0)).sum(1).std() / np.sqrt(4000)


def test_loo_is_the_exact_leave_one_out_score(whole):
    found = az.loo(whole)
    elpd = float(found.elpd if NEW else found.elpd_loo)
    error = monte_carlo_error(whole)
    assert error < 0.1
    assert elpd == pytest.approx(exact_loo(), abs=4 * error)
    full = scipy.stats.norm.logpdf(Y, X @ posterior(X, Y)[0][1:] + posterior(X, Y)[0][0]).sum()
    assert abs(full - exact_loo()) > 10 * error  # the test can tell one from the other


@pytest.mark.skipif(not NEW, reason="ArviZ has loo_subsample since 1.0")
def test_loo_of_a_subsample(whole):
    found = az.loo_subsample(whole, observations=20)
    error = np.hypot(float(found.subsampling_se), monte_carlo_error(whole))
    assert float(found.elpd) == pytest.approx(exact_loo(), abs=4 * error)


def test_summary_has_the_labels_and_the_moments(whole):
    table = az.summary(whole, round_to="none")
    mean, covariance = posterior(X, Y)
    for name, at in {"intercept": 0, "beta[age]": 1, "beta[dose]": 2}.items():
        sd = np.sqrt(covariance[at, at])
        assert float(table.loc[name, "mean"]) == pytest.approx(mean[at], abs=4 * sd / np.sqrt(4000))
        assert float(table.loc[name, "sd"]) == pytest.approx(sd, rel=4 / np.sqrt(8000))


def test_plot_trace_draws_every_parameter(whole):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = az.plot_trace(whole.isel(draw=slice(50)) if not NEW else whole)
    axes = found.viz["plot"].ds if NEW else found
    assert ({"intercept", "beta"} <= set(axes.data_vars)) if NEW else len(axes) == 2
    pyplot.close("all")


def test_other_data_are_outcomes(gaussian, centres):
    method = ewsg.Uniform(5), ewsg.Overdamped(step_size=1e-3)
    run = ewsg.sample(gaussian, *method, init=jnp.zeros(2), num_chains=2, num_steps=12, progress=False)
    found = run.to_arviz(dims={"theta": ["axis"]}, target=gaussian, log_likelihood=True)
    np.testing.assert_array_equal(found.observed_data["data"], centres)
    assert found.log_likelihood["data"].dims == ("chain", "draw", "datum")
    exact = -0.5 * np.square(run.draws[:, :, None] - centres).sum(-1)
    np.testing.assert_allclose(found.log_likelihood["data"], exact, rtol=1e-4, atol=1e-5)


def test_a_slash_in_a_name_is_refused_where_arviz_takes_none(run):
    slashed = dataclasses.replace(run, draws={"a/b": run.draws["intercept"]})
    if NEW:
        with pytest.raises(InputError, match="takes no names with a slash: rename 'a/b'"):
            slashed.to_arviz()
    else:
        assert "a/b" in slashed.to_arviz().posterior


@pytest.mark.parametrize(
    ("data", "inputs", "outcomes"),
    [
        ((X, {"count": Y, "weight": Y}), {"x"}, {"count", "weight"}),
        ({"features": X, "responses": Y}, {"features"}, {"responses"}),
        (((Y,), {}), set(), {"data"}),  # arguments and keywords of a model
        ([X, Y, Y], set(), {"0", "1", "2"}),
    ],
)
def test_names_of_data(data, inputs, outcomes):
    target = ewsg.Target(lambda theta, datum: -0.5 * jnp.sum(theta**2), None, data)
    method = ewsg.Uniform(4), ewsg.Overdamped(step_size=1e-3)
    other = ewsg.sample(target, *method, init=jnp.zeros(2), num_chains=1, num_steps=2, discard=0, progress=False)
    found = other.to_arviz(target=target, rows=[5, 4])
    groups = found.children if NEW else found.groups()
    assert set(found.observed_data.data_vars) == outcomes
    assert (set(found.constant_data.data_vars) if "constant_data" in groups else set()) == inputs
    assert all(array.sizes["datum"] == 2 for array in found.observed_data.data_vars.values())


REFUSED = {
    "parameter": ({"dims": {"bet": ["feature"]}}, "unknown parameter in dims.*did you mean 'beta'"),
    "axes": ({"dims": {"beta": ["feature", "more"]}}, r"dims of beta must be a list of 1 names, .* shape \(2,\)"),
    "string": ({"dims": {"beta": "f"}}, "dims of beta must be a list"),
    "labels": ({"dims": {"beta": ["f"]}, "coords": {"f": ["a"]}}, "coords of f has 1 entries, and beta has 2"),
    "unused": ({"coords": {"f": ["a", "b"]}}, "not an axis of any parameter: name it in dims"),
    "no target": ({"log_likelihood": True}, "give target="),
    "rows alone": ({"rows": [1]}, "give target="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_arviz_would_ignore_is_refused(run, case):
    options, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        run.to_arviz(**options)


def test_another_target_temperature_or_row_is_refused(run, target):
    other = ewsg.Target(log_likelihood, log_prior, (X, Y + 1))
    with pytest.raises(InputError, match="not drawn from this target"):
        run.to_arviz(target=other)
    with pytest.raises(InputError, match="rows run from 1 to 40: the target has 40 data"):
        run.to_arviz(target=target, rows=[1, 40])
    cold = dataclasses.replace(run, settings=run.settings | {"temperature": 0.5})
    with pytest.raises(InputError, match=r"as if the temperature were 1, and it is 0\.5"):
        cold.to_arviz(target=target, log_likelihood=True)
    named_alike = dataclasses.replace(run, draws={"beta": run.draws["beta"], "y": run.draws["intercept"]})
    with pytest.raises(InputError, match="'y' is the name of a parameter and of data"):
        named_alike.to_arviz(target=target)
    with pytest.raises(InputError, match="'datum' is the dimension of the data"):
        run.to_arviz(dims={"beta": ["datum"]}, target=target)
