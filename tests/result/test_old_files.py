"""Files of version 0.1.0: of the Gaussian in the plane, two chains of 40 steps, every fourth of the last 20 kept."""

from pathlib import Path

import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.errors import InputError

FILES = Path(__file__).parent / "files"


@pytest.fixture
def gaussian():
    """The target of these files, whose data another compiler would round differently."""
    return ewsg.Target(gaussian_log_likelihood, None, np.load(FILES / "centres.npy"))


@pytest.mark.parametrize("method", ["uniform", "paired"])
def test_they_are_read(method):
    run = ewsg.load(FILES / f"{method}-0.1.0")
    assert run.draws.shape == (2, 5, 2)
    assert "virial" not in run.stats
    assert run.cost.planning_gradients == 0
    assert run.verdict is None
    assert run.summary().parameters["mean"][0] == pytest.approx(run.draws[..., 0].mean())


def test_paired_still_predicts_its_error():
    """(τ₄/8) ρ/(1 + ρ), τ₄ = E[D⁴]/(3 E[D²])."""
    run = ewsg.load(FILES / "paired-0.1.0")
    second, fourth, ratio = (run.stats[name].mean() for name in ("tilt_second", "tilt_fourth", "noise_ratio"))
    found = run.summary()
    expected = fourth / second / 24 * ratio / (1 + ratio)
    assert found.diagnostics["predicted_sd_error"] == pytest.approx(expected, rel=1e-5)
    assert "friction_lost" not in found.diagnostics
    assert any("6% of the pairs clipped" in sentence for sentence in found.warnings)


@pytest.mark.float32
def test_they_go_on(gaussian, tmp_path):
    """As if never interrupted, and without the diagnostics that the file does not have."""
    method = ewsg.Uniform(4), ewsg.BAOAB(0.05, 5.0)
    options = {"init": np.zeros(2, np.float32), "num_chains": 2, "discard": 20, "thin": 4}
    run = ewsg.resume(FILES / "uniform-0.1.0", gaussian, num_steps=40)
    longer = ewsg.sample(gaussian, *method, num_steps=80, **options)
    np.testing.assert_allclose(run.draws, longer.draws, rtol=1e-4, atol=1e-5)
    assert set(longer.stats) - set(run.stats) == {"virial", "virial_slope"}
    run.save(tmp_path / "run")
    assert ewsg.resume(tmp_path / "run", gaussian, num_steps=4).draws.shape == (2, 16, 2)


@pytest.mark.float32
def test_those_of_paired_do_not_go_on(gaussian):
    """Its diagnostics are others now."""
    with pytest.raises(InputError, match=r"a different version of ewsg \(sample again\)"):
        ewsg.resume(FILES / "paired-0.1.0", gaussian, num_steps=4)
