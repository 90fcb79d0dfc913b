"""Check what a plain `pip install ewsg` can do, and its errors where an extra is missing: run by tools/try_wheel.sh."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import ewsg
import ewsg.reference
from ewsg.errors import MissingPackage

EXTRAS = (
    "arviz",
    "blackjax",
    "flax",
    "jinja2",
    "matplotlib",
    "platformdirs",
    "pooch",
    "sklearn",
    "threadpoolctl",
    "typer",
)


def must_name(extra: str, call: Callable[[], object]) -> None:
    """Check that a call raises `MissingPackage` with the line that installs the extra."""
    try:
        call()
    except MissingPackage as error:
        sentence = str(error)
    else:
        sentence = "nothing was raised"
    assert f"pip install 'ewsg[{extra}]'" in sentence, sentence
    print(sentence)


def main() -> None:
    """Sample, summarise, predict and save; then ask for everything that the core does not have."""
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"the core must not install {present}"
    centres = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    target = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, centres)
    settings = {"init": jnp.zeros(2), "num_steps": 2000, "num_chains": 4}
    scheme = ewsg.BAOAB(step_size=0.01, friction=5.0)
    run = ewsg.sample(target, ewsg.Paired(5), scheme, **settings)
    print(run.summary())
    assert "theta[1]" in run.summary()._repr_html_()
    ewsg.sample(target, ewsg.ControlVariate(ewsg.Uniform(5), start=jnp.zeros(2)), scheme, **settings)
    run.save("run.npz")
    assert np.array_equal(ewsg.load("run.npz").draws, run.draws)
    for module in ("theory", "prediction", "diagnostics", "datasets", "models", "modules", "recipes"):
        importlib.import_module(f"ewsg.{module}")
    must_name("arviz", run.to_arviz)
    must_name("report", run.plot)
    must_name("report", lambda: run.report("run.html"))
    must_name("nuts", lambda: ewsg.sample(target, ewsg.NUTS(0.1), **settings))
    must_name("nuts", lambda: ewsg.sample(target, ewsg.RandomWalk(0.1), **settings))
    must_name("nuts", lambda: ewsg.reference.nuts(target, jnp.zeros(2)))
    must_name("cluster", lambda: ewsg.sample(target, ewsg.Clustered(5, 1), scheme, **settings))
    must_name("data", lambda: ewsg.datasets.load("pima"))
    command = subprocess.run(
        [sys.executable, "-c", "from ewsg.cli import main; main()"], capture_output=True, text=True
    )
    assert command.returncode == 2, command
    assert command.stderr.count("\n") == 1, command.stderr
    assert "pip install 'ewsg[lab]'" in command.stderr, command.stderr
    print(command.stderr, end="")


if __name__ == "__main__":
    main()
