"""Covertype: its mode, its predictions, its claims, its data."""

from unittest import mock

import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError
from ewsg.lab.experiments.covertype import data as covertype, report as blr_report
from ewsg.lab.experiments.logistic import log_likelihood


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


def test_missing_data_says_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.setenv("EWSG_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("ewsg.datasets.download._fetch", mock.Mock(side_effect=OSError("no network")))
    with pytest.raises(InputError, match="covertype"):
        covertype.load()


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
