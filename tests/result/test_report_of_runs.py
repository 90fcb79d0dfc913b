"""Pages and figures of runs of every kind, sampled, saved and loaded."""

import jax.numpy as jnp
import numpy as np
import pytest
from fireflies import logistic
from pages import Page
from small_network import network

import ewsg
from ewsg.kernels import LogisticBound
from ewsg.result.report import page

STEPS = {"num_chains": 2, "num_steps": 60, "thin": 1}


@pytest.fixture(scope="module")
def target():
    return logistic(60, 2)


def sampled(kind, target):
    start = jnp.zeros(2)
    match kind:
        case "planned":
            return ewsg.sample(target, accuracy=0.3, progress=False)
        case "network":
            return ewsg.sample(network(), data_passes=150, progress=False)
        case "NUTS":
            return ewsg.sample(target, ewsg.NUTS(0.2), init=start, **STEPS)
        case "FlyMC":
            kernel = ewsg.FlyMC(LogisticBound(), step_size=0.3, resample=0.5)
            return ewsg.sample(target, kernel, init=start, **STEPS)
        case "moments":
            method = ewsg.Paired(5), ewsg.BAOAB(0.1, 2.0)
            return ewsg.sample(target, *method, init=start, collect=ewsg.collect.Moments(), **STEPS)
    return ewsg.sample(target, ewsg.recipes.sgld(5, 1e-3), init=start, **STEPS)


@pytest.mark.parametrize(
    ("kind", "figures", "words"),
    [
        ("planned", {"marginal", "trace", "time", "pair"}, "within 0.3 posterior standard deviations"),
        ("network", {"marginal", "trace", "time", "pair"}, "judged by its predictions"),
        ("NUTS", {"marginal", "trace", "pair"}, "no accuracy was promised"),
        ("FlyMC", {"marginal", "trace", "pair"}, "no accuracy was promised"),
        ("moments", None, "no accuracy was promised"),
        ("SGLD", {"marginal", "trace", "time", "pair"}, "no accuracy was promised"),
    ],
    ids=["planned", "network", "NUTS", "FlyMC", "moments", "SGLD"],
)
@pytest.mark.float32
def test_a_run_is_shown_alike_before_and_after_it_is_saved(kind, figures, words, target, tmp_path):
    run = sampled(kind, target)
    run.save(tmp_path / "run.npz")
    loaded = ewsg.load(tmp_path / "run.npz")
    text = page(run)
    assert page(loaded) == text
    read = Page(text)
    assert words in read.words["verdict"]
    means = [row[1] for row in read.tables["marginals"][0][1:]]
    np.testing.assert_allclose([float(mean) for mean in means], run.summary().parameters["mean"], rtol=6e-3)
    assert f"{run.cost.datum_gradients:,}" in read.words["cost"]
    if figures is None:
        with pytest.raises(ewsg.errors.InputError, match="kept no draws"):
            run.plot()
    else:
        assert {axes.get_label() for axes in run.plot().axes} == figures
    assert run._repr_html_() == loaded._repr_html_()
