"""Start-up time: the command's help, the import, and the first sample of ewsg and of others.

    python benchmarks/startup.py

Every number is measured in fresh processes pinned to one core: the minimum of their wall-clock seconds, with CPU
seconds, which other work on the machine hardly changes. The first sample is of a logistic regression with 1,000 data
and 10 parameters, 4 chains of 1,000 steps, after the imports; "cold" without a compilation cache, "warm" with JAX's
persistent cache, set as by the command line and filled by an earlier process.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 3
COMMAND = str(Path(sys.executable).parent / "ewsg")
CACHE_SECONDS = "0.1"

MEASURE = """
import json, time
import jax, jax.numpy as jnp, numpy as np
programs = []
jax.devices()
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: programs.append(seconds) if event.endswith("backend_compile_duration") else None
)
rng = np.random.default_rng(0)
x = rng.normal(size=(1000, 10)).astype(np.float32)
y = (rng.random(1000) < 1 / (1 + np.exp(-x[:, 0]))).astype(np.float32)
start = np.zeros(10, np.float32)
marks = {}


class timed:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.began = time.perf_counter(), time.process_time(), len(programs)

    def __exit__(self, *_):
        wall, processor, before = self.began
        marks[self.name] = (time.perf_counter() - wall, time.process_time() - processor, len(programs) - before)
"""

SAMPLES = {
    "ewsg": """
import ewsg
target = ewsg.models.logistic(x, y)
ewsg.sample, ewsg.Paired, ewsg.BAOAB
with timed("first sample"):
    run = ewsg.sample(target, ewsg.Paired(10), ewsg.BAOAB(0.01, 5.0), init=start, num_steps=1000, progress=False)
with timed("first summary"):
    run.summary()
""",
    "blackjax": """
import blackjax


def log_density(theta):
    return -0.5 * theta @ theta + jnp.sum(y * (x @ theta) - jnp.logaddexp(0, x @ theta))


with timed("first sample"):
    nuts = blackjax.nuts(log_density, step_size=0.05, inverse_mass_matrix=jnp.ones(10))

    def chain(key):
        def step(state, key):
            state, _ = nuts.step(key, state)
            return state, state.position

        return jax.lax.scan(step, nuts.init(jnp.asarray(start)), jax.random.split(key, 1000))[1]

    jax.block_until_ready(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), 4)))
""",
    "numpyro": """
import numpyro
from numpyro.infer import MCMC, NUTS


def model():
    theta = numpyro.sample("theta", numpyro.distributions.Normal(jnp.zeros(10), 1.0).to_event(1))
    numpyro.sample("y", numpyro.distributions.Bernoulli(logits=x @ theta), obs=y)


with timed("first sample"):
    sampler = MCMC(NUTS(model), num_warmup=500, num_samples=500, num_chains=4, chain_method="vectorized",
                   progress_bar=False)
    sampler.run(jax.random.key(0))
    jax.block_until_ready(sampler.get_samples())
""",
}
LIMITS = {
    ("ewsg", "cold", "first sample"): 3.5,
    ("ewsg", "cold", "first summary"): 0.5,
    ("ewsg", "warm", "first sample"): 1.5,
}


def launch(command: list[str], **environment: str) -> str:
    """Runs a process on one core and returns what it prints."""
    pinned = ["taskset", "-c", "0", *command] if sys.platform == "linux" else command
    settings = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | environment
    return subprocess.run(pinned, check=True, stdout=subprocess.PIPE, text=True, env=settings).stdout


def least_seconds(command: list[str]) -> float:
    """Wall-clock seconds of the fastest of several processes."""
    found = []
    for _ in range(TURNS):
        began = time.perf_counter()
        launch(command)
        found.append(time.perf_counter() - began)
    return min(found)


def first_samples(name: str, cache: str | None) -> dict[str, list[float]]:
    """(seconds, CPU seconds, programs compiled or read from the cache) of each phase, the fastest of several."""
    settings = {}
    if cache is not None:
        settings = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": CACHE_SECONDS,
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    program = MEASURE + SAMPLES[name] + "\nprint(json.dumps(marks))"
    turns = [launch([sys.executable, "-c", program], **settings) for _ in range(TURNS + (cache is not None))]
    marks = [json.loads(turn.splitlines()[-1]) for turn in turns[cache is not None :]]
    return {phase: min(mark[phase] for mark in marks) for phase in marks[0]}


def main() -> None:
    """Prints each against its limit, where it has one."""
    python = [sys.executable, "-c"]
    jax = least_seconds([*python, "import jax, jax.numpy"])
    ours = least_seconds([*python, "import jax, jax.numpy, ewsg; ewsg.Target, ewsg.sample, ewsg.Paired, ewsg.BAOAB"])
    print(f"{least_seconds([COMMAND, '--help']):6.2f} s  (limit 0.2 s)  ewsg --help")
    print(f"{ours - jax:6.2f} s  (limit 0.4 s)  import of ewsg and all that sampling needs, beyond JAX")
    for name in SAMPLES:
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for kind, cache in (("cold", None), ("warm", folder)):
                for phase, (seconds, processor, programs) in first_samples(name, cache).items():
                    limit = LIMITS.get((name, kind, phase))
                    limited = f"(limit {limit} s)" if limit else " " * 13
                    print(
                        f"{seconds:6.2f} s  {limited}  {name}, {kind} cache: {phase} "
                        f"({processor:.2f} s of CPU, {programs:.0f} programs)"
                    )


if __name__ == "__main__":
    main()
