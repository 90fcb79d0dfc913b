"""How long until something happens: the help of the command line, the import, and the first step with a warm cache.

    python benchmarks/startup.py

Wall-clock seconds, the least of several processes; the first step is that of the demonstration's model (logistic
regression on the breast-cancer data), with JAX's compilation cache, set as by the command line, in a folder that an
earlier process has filled.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 5
COMMAND = str(Path(sys.executable).parent / "ewsg")
FIRST_STEP = """
import jax.numpy as jnp
import ewsg
from sklearn.datasets import load_breast_cancer
features, labels = load_breast_cancer(return_X_y=True)
scaled, _, _ = ewsg.datasets.standardize(features)
target = ewsg.models.logistic(ewsg.models.with_intercept(scaled), labels)
ewsg.sample(target, ewsg.recipes.paired(10, 0.02, 10.0), init=jnp.zeros(31), num_chains=32, num_steps=1, discard=0)
"""


def least(command: list[str], **environment: str) -> float:
    """Seconds of the fastest of several processes."""
    found = []
    for _ in range(TURNS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | environment)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Prints each against its limit."""
    python = [sys.executable, "-c"]
    jax = least([*python, "import jax, jax.numpy"])
    ours = least([*python, "import jax, jax.numpy, ewsg; ewsg.Target, ewsg.sample, ewsg.Paired, ewsg.BAOAB"])
    with tempfile.TemporaryDirectory() as cache:
        settings = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
        first = least([*python, FIRST_STEP], TF_CPP_MIN_LOG_LEVEL="3", **settings)
    rows = {
        "ewsg --help": (least([COMMAND, "--help"]), 0.5),
        "import ewsg and all that sampling needs, beyond JAX": (ours - jax, 1.0),
        "from nothing to the first step, warm compilation cache": (first, 5.0),
    }
    for name, (seconds, limit) in rows.items():
        print(f"{seconds:6.2f} s  (limit {limit} s)  {name}")


if __name__ == "__main__":
    main()
