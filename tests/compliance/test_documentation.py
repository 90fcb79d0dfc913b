"""What the documentation shows, run as it stands."""

import doctest
import importlib
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg._core.promotion import lenient

ROOT = Path(__file__).parents[2]
MARKS = {
    "ewsg.datasets.loading": [pytest.mark.slow, pytest.mark.needs_data("covertype")],
    "ewsg.kernels.flymc": pytest.mark.slow,
    "ewsg.kernels.nuts": pytest.mark.slow,
    "ewsg.reference": pytest.mark.slow,
}


def block(path: str, containing: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / path).read_text(), re.DOTALL | re.MULTILINE)
    return next(code for code in blocks if containing in code)


def modules_with_examples():
    """Every module whose docstrings hold an example, as `pytest` parameters."""
    for path in sorted((ROOT / "ewsg").rglob("*.py")):
        if ">>>" in path.read_text():
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            yield pytest.param(name, marks=MARKS.get(name, []), id=name.removeprefix("ewsg."))


@pytest.mark.float32
@pytest.mark.parametrize("module", list(modules_with_examples()))
def test_docstring_examples(module):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testmod(importlib.import_module(module), optionflags=flags)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.slow
@pytest.mark.float32
def test_the_page_on_planning_runs_from_top_to_bottom(tmp_path, monkeypatch):
    """Its plan is printed there as it comes, but for numbers that rounding and versions of JAX may change."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/planning.md").read_text()
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(code, names)
        verdict = names["run"].verdict
        assert verdict is None or verdict.reached
    printed = re.search(r"^```\n(Plan for .*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert printed
    rows = [re.split(r"  +", line.strip()) for line in printed[1].splitlines()[1:]]
    notes = names["plan"].notes
    assert [row[0] for row in rows] == list(notes)
    steady = [row for row in rows if row[0] not in ("mode", "pilots")]
    assert [row[2] for row in steady] == [notes[row[0]][1] for row in steady]
    assert names["run"].ok.all()
    assert len(text.splitlines()) <= 120


@pytest.mark.slow
@pytest.mark.float32
def test_the_page_on_numpyro_runs_from_top_to_bottom(capsys):
    text = (ROOT / "docs/numpyro.md").read_text()
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        with lenient():
            exec(code, names)
        assert names["run"].verdict.reached
    lines = capsys.readouterr().out.splitlines()
    assert [name for name in ("concentration", "dispersion", "slopes[0]") if any(name in line for line in lines)]
    difference, (mean, expected) = float(lines[-2]), map(float, lines[-1].split())
    assert abs(difference) < 0.1
    assert abs(mean / expected - 1) < 4 * 0.025 / np.sqrt(1_002)
    assert len(text.splitlines()) <= 120


def test_the_estimator_of_the_contributing_guide(gaussian):
    names = {"__package__": "ewsg.estimators", "__name__": "mirrored"}
    exec(block("CONTRIBUTING.md", "class Mirrored"), names)
    estimator = names["Mirrored"](2)
    position = jnp.array([0.3, -0.2])
    each = jax.vmap(lambda i: gaussian.force(position, jnp.array([0, 49]) + jnp.array([1, -1]) * i))(jnp.arange(50))
    np.testing.assert_allclose(each.mean(0), gaussian.full_force(position), rtol=1e-4, atol=1e-4)
    run = ewsg.sample(
        gaussian, estimator, ewsg.Underdamped(step_size=1e-3, friction=5.0), init=position, data_passes=4, thin=1
    )
    assert run.cost.data_passes == 4
    assert run.ok.all()


def test_the_integrator_of_the_extending_guide(gaussian, centres):
    """Semi-implicit Euler: its stationary variance solves the Lyapunov equation of its own matrix."""
    import scipy.linalg

    names = {"__name__": "heavy_ball"}
    exec(block("docs/extending.md", "class HeavyBall"), names)
    h, gamma, n = 0.03, 5.0, len(centres)
    run = ewsg.sample(
        gaussian,
        ewsg.Full(),
        names["HeavyBall"](step_size=h, friction=gamma),
        init=jnp.zeros(2),
        num_chains=10_000,
        num_steps=200,
        discard=0,
        thin=200,
    )
    kick = np.array([-h * n, 1 - h * gamma])
    matrix = np.array([[1.0, 0.0] + h * kick, kick])
    noise = 2 * gamma * h * np.outer([h, 1.0], [h, 1.0])
    exact = scipy.linalg.solve_discrete_lyapunov(matrix, noise)[0, 0]
    assert run.draws[:, -1].var(0) == pytest.approx(exact, rel=4.5 * np.sqrt(2 / 10_000))


def test_every_public_name_resolves_and_is_documented():
    for name in ewsg.__all__:
        assert getattr(ewsg, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'sampel'"):
        ewsg.sampel  # noqa: B018


def test_every_setting_is_documented():
    """Each constructor argument of an estimator or integrator appears in its docstring."""
    import dataclasses

    for name in ewsg.__all__:
        part = getattr(ewsg, name)
        if isinstance(part, type) and issubclass(part, ewsg._core.component.Component):
            for field in dataclasses.fields(part):
                assert f"{field.name}:" in part.__doc__, (name, field.name)
