"""Coefficients on the scale of the file's columns: exact for draws of any model, and right for a sampled one."""

import types

import numpy as np
import pytest

from ewsg import files
from ewsg.errors import FileFormatError
from ewsg.result.run import Run

CHAINS, DRAWS = 8, 40


def run_with(draws, encoding) -> Run:
    cost = types.SimpleNamespace(data_passes=1.0, seconds=1.0)
    return Run(draws, {}, np.array(["ok"] * CHAINS), cost, {"table": encoding.to_json()})  # pyright: ignore


def random_draws(target, seed=0):
    rng = np.random.default_rng(seed)
    init = target.init if isinstance(target.init, dict) else {"all": target.init}
    draws = {name: rng.normal(size=(CHAINS, DRAWS, *np.shape(leaf))) for name, leaf in init.items()}
    return draws if isinstance(target.init, dict) else draws["all"]


def predictors(frame, found, prefix=""):
    """The linear predictor of every row and draw, from the columns as they are in the file."""
    at = {name: found.draws[..., i] for i, name in enumerate(found.names)}
    eta = at[f"{prefix}(intercept)"][..., None]
    for name in frame.columns:
        column = frame[name].to_numpy()
        if column.dtype.kind in "fiub" and f"{prefix}{name}" in at:
            eta = eta + at[f"{prefix}{name}"][..., None] * column
        for level in np.unique(column) if column.dtype.kind not in "fiub" else ():
            if f"{prefix}{name}[{level}]" in at:
                eta = eta + at[f"{prefix}{name}[{level}]"][..., None] * (column == level)
    return eta


@pytest.mark.untyped  # a run made by hand
@pytest.mark.parametrize(
    ("outcome", "model"),
    [
        ("died", "logistic"),
        ("cost", "linear"),
        ("visits", "poisson"),
        ("visits", "negative-binomial"),
        ("grade", "softmax"),
    ],
)
def test_predictions_are_those_of_the_encoded_columns(patients, write, outcome, model):
    table = files.read(write("p.parquet", patients), outcome, model=model)
    target = table.target()
    draws = random_draws(target)
    features, _ = table.encoding.data(table.source, table.rows)
    found = table.coefficients(run_with(draws, table.encoding))
    frame = patients.drop(outcome)
    theta = draws["coefficients"] if isinstance(draws, dict) else draws
    # the encoded matrix is in float32: compare with the encoding done in float64
    exact = np.stack(
        [np.full(len(frame), 4.0)]
        + [
            ((frame[f.column].to_numpy() == f.level) if f.part == "level" else frame[f.column].to_numpy()) / f.scale
            - f.centre / f.scale
            for f in table.encoding.features
        ],
        axis=1,
    )
    np.testing.assert_allclose(features, exact, atol=1e-5)
    if model == "softmax":
        eta = np.einsum("nd,abdk->abkn", exact, theta)
        against = list(table.encoding.outcome.classes).index(table.encoding.outcome.reference)
        assert table.encoding.outcome.reference == "high"
        for k, name in enumerate(table.encoding.outcome.classes):
            if k != against:
                shown = predictors(frame, found, f"{name}: ")
                np.testing.assert_allclose(shown, eta[:, :, k] - eta[:, :, against], rtol=1e-6, atol=1e-6)
        return
    eta = np.einsum("nd,abd->abn", exact, theta)
    if model == "linear":
        y = patients["cost"].to_numpy()
        centre, scale = table.encoding.outcome.centre, table.encoding.outcome.scale
        np.testing.assert_allclose([centre, scale], [y.mean(), y.std(ddof=1)], rtol=1e-5)
        eta = centre + scale * eta
        np.testing.assert_allclose(found.draws[..., -1], scale * np.exp(draws["log_scale"]))
        assert found.names[-1] == "(sd of the noise)"
    if model == "negative-binomial":
        np.testing.assert_allclose(found.draws[..., -1], np.exp(draws["log_dispersion"]))
        assert found.names[-1] == "(dispersion)"
    np.testing.assert_allclose(predictors(frame, found), eta, rtol=1e-6, atol=1e-6)


@pytest.mark.untyped
def test_the_table_holds_moments_and_quantiles_of_the_draws(patients, write):
    table = files.read(write("p.parquet", patients), "died")
    found = table.coefficients(run_with(random_draws(table.target()), table.encoding))
    flat = found.draws.reshape(-1, len(found.names))
    np.testing.assert_allclose(found.table["mean"], flat.mean(0))
    np.testing.assert_allclose(found.table["sd"], flat.std(0, ddof=1))
    np.testing.assert_allclose(found.table["5%"], np.sort(flat, axis=0)[15:17].mean(0), rtol=0.2)
    assert (found.table["5%"] < found.table["95%"]).all()
    assert all(line.count("\n") == 0 and len(line) < 110 for line in str(found).splitlines())
    assert str(found).splitlines()[1].startswith("(intercept)")


def test_numbers_are_rounded_to_two_digits_of_their_sd():
    from ewsg.files.coefficients import _rounded

    assert _rounded(0.51287, 0.0213) == "0.513"
    assert _rounded(1234.5, 56.0) == "1,234"
    assert _rounded(-123456.0, 2345.0) == "-123,500"
    assert _rounded(1.5e-9, 1e-10) == "1.500e-09"
    assert _rounded(2.0, 0.0) == "2"


@pytest.mark.untyped
def test_a_run_that_was_not_made_from_a_file():
    run = run_with(np.zeros((CHAINS, DRAWS, 2)), types.SimpleNamespace(to_json=lambda: None))
    with pytest.raises(FileFormatError, match="not made from a file"):
        files.coefficients(run)


def test_the_intercept_starts_at_the_log_of_the_mean_count(patients, write):
    table = files.read(write("p.parquet", patients), "visits", model="negative-binomial")
    start = table._start(table.target())
    assert 4 * start["coefficients"][0] == pytest.approx(np.log(patients["visits"].mean()), rel=1e-6)
    assert not np.any(start["coefficients"][1:])


def test_linear_regression_on_the_files_own_scale(patients, write):
    """Against the conjugate posterior given the noise, which 200 rows determine well; within the accuracy promised."""
    table = files.read(write("p.csv", patients), "cost", drop=["visits", "grade", "died"])
    run = table.sample(accuracy=0.05, progress=False)
    assert run.verdict is not None
    assert run.verdict.reached
    shown = files.coefficients(run).table
    x = np.column_stack(
        [
            np.ones(len(patients)),
            patients["age"],
            patients["year"],
            *(patients["colour"].to_numpy() == level for level in ("blue", "green")),
            patients["smoker"],
        ]
    ).astype(np.float64)
    y = patients["cost"].to_numpy()
    n, d = x.shape
    mean, (total,), *_ = np.linalg.lstsq(x, y, rcond=None)
    # flat in log σ: a t distribution with n − d degrees of freedom; the prior of the coefficients is far wider
    sd = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * total / (n - d - 2))
    order = [
        list(shown["coefficient"]).index(name)
        for name in ("(intercept)", "age", "year", "colour[blue]", "colour[green]", "smoker")
    ]
    assert np.abs((shown["mean"][order] - mean) / sd).max() < 0.1
    np.testing.assert_allclose(shown["sd"][order], sd, rtol=0.1)
    assert shown["mean"][-1] == pytest.approx(np.sqrt(total / (n - d)), rel=0.02)
