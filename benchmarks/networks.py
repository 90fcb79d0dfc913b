"""The cost of networks: our SGHMC against a handwritten loop, EWSG and paired selection against SGHMC, and peak memory.

    python benchmarks/networks.py [--sections mlp cnn memory] [--repeats 5] [--core 0] [--json FILE]

All sides of a section run in one process on one core, in turns; median CPU seconds are compared. Ours is the whole of
`ewsg.sample` minus a run of one step. Images are made up, of MNIST's size: times do not depend on them.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import machine

ROWS, BATCH, FRICTION, STEP = 60_000, 100, 0.1, 2e-3
STEPS = {"mlp": 2_400, "cnn": 12}
"""Steps of SGHMC with a minibatch of 100: four epochs of the MLP, a fiftieth of one of the CNN."""
LIMITS = {
    "SGHMC / by hand": 1.15,
    "SGHMC / by hand, our generator": None,
    "EWSG, M = 1 / SGHMC": 1.2,
    "EWSG, M = 1 / SGHMC, 2b": None,
    "paired, select / SGHMC, 2b": 1.35,
    "paired, weight / SGHMC, 2b": 1.35,
}
MEMORY_LIMIT = 1.5
"""GiB, for EWSG with M = 9 on the CNN."""
_MEMORY_STEPS = 5


def problem(kind: str):
    """The posterior of one of the paper's networks, and where chains start."""
    import equinox as eqx
    import jax
    import numpy as np

    import ewsg
    from ewsg.lab.experiments.networks import shared

    rng = np.random.default_rng(0)
    shape = (1, 28, 28) if kind == "cnn" else (784,)
    images = rng.random((ROWS, *shape), np.float32)
    labels = rng.integers(0, 10, ROWS).astype(np.int32)

    def build(key):
        return shared.cnn(key, 28, [32, 64], [200, 200]) if kind == "cnn" else shared.mlp(key, 28, [100])

    module = eqx.filter_jit(build)(jax.random.key(0))
    target = ewsg.Target.from_module(module, ewsg.modules.cross_entropy, (images, labels))
    return target, ewsg.modules.parameters(module)


def ours(target, start, estimator, steps: int) -> Callable[[int], float]:
    """seed -> CPU seconds for that number of steps."""
    import ewsg

    integrator = ewsg.Underdamped(STEP, FRICTION, units="mean")

    def run(seed: int, number: int) -> float:
        began = time.process_time()
        ewsg.sample(
            target,
            estimator,
            integrator,
            init=start,
            num_chains=1,
            num_steps=number,
            discard=number - 1,
            thin=1,
            seed=seed,
            progress=False,
        )
        return time.process_time() - began

    run(0, steps)
    setup = min(run(0, 1) for _ in range(3))
    return lambda seed: run(seed, steps) - setup


def by_hand(target, start, steps: int, generator: str) -> Callable[[int], float]:
    """The same loop as an expert writes it: one key and one gather per step, a batched loss, Euler–Maruyama.

    For the MLP only. `generator` is "jax" (threefry) or "ours".
    """
    import jax
    import jax.numpy as jnp

    from ewsg import _random

    images, labels = target.data.arrays
    h, gamma = STEP / ROWS**0.5, FRICTION * ROWS**0.5
    names = ("layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias")

    def loss(params, x, y):
        w1, b1, w2, b2 = (params[name] for name in names)
        logits = jax.nn.relu(x @ w1.T + b1) @ w2.T + b2
        losses = jax.nn.logsumexp(logits, 1) - jnp.take_along_axis(logits, y[:, None], 1)[:, 0]
        prior = sum(jnp.sum(leaf**2) for leaf in params.values()) / 2
        return ROWS * jnp.mean(losses) + prior

    def normals(key, params):
        if generator == "ours":
            return _random.normal_like(key, params)
        keys = jax.random.split(key, len(params))
        return {name: jax.random.normal(k, leaf.shape) for k, (name, leaf) in zip(keys, params.items(), strict=True)}

    def step(carry, key):
        params, momentum = carry
        split = _random.split if generator == "ours" else jax.random.split
        draw = _random.indices if generator == "ours" else lambda k, n, b: jax.random.randint(k, (b,), 0, n)
        key_batch, key_noise = split(key)
        chosen = draw(key_batch, ROWS, BATCH)
        gradient = jax.grad(loss)(params, images[chosen], labels[chosen])
        noise = normals(key_noise, params)
        scale = (2 * gamma * h) ** 0.5
        moved = jax.tree.map(lambda p, r: p + h * r, params, momentum)
        kicked = jax.tree.map(lambda r, g, e: r - h * g - h * gamma * r + scale * e, momentum, gradient, noise)
        return (moved, kicked), None

    @jax.jit
    def chain(key, params):
        momentum = jax.tree.map(jnp.zeros_like, params)

        def body(k, carry):
            fold = _random.fold if generator == "ours" else jax.random.fold_in
            return step(carry, fold(key, k))[0]

        return jax.lax.fori_loop(0, steps, body, (params, momentum))

    def run(seed: int) -> float:
        key = _random.make_key(seed, "fast") if generator == "ours" else jax.random.key(seed)
        began = time.process_time()
        jax.block_until_ready(chain(key, start))
        return time.process_time() - began

    run(0)
    return run


def sides(kind: str) -> dict[str, Callable[[int], float]]:
    """All sides, each drawing as many data as SGHMC: those with 2b per step take half as many steps."""
    import ewsg

    target, start = problem(kind)
    steps = STEPS[kind]
    found = {
        "SGHMC": ours(target, start, ewsg.Uniform(BATCH), steps),
        "SGHMC, 2b": ours(target, start, ewsg.Uniform(2 * BATCH), steps // 2),
        "EWSG, M = 1": ours(target, start, ewsg.Exponential(BATCH, 1), steps // 2),
        "paired, select": ours(target, start, ewsg.Paired(BATCH, "select"), steps // 2),
        "paired, weight": ours(target, start, ewsg.Paired(BATCH), steps // 2),
    }
    if kind == "mlp":
        found["by hand"] = by_hand(target, start, steps, "jax")
        found["by hand, our generator"] = by_hand(target, start, steps, "ours")
    return found


def compare(kind: str, repeats: int) -> dict[str, float]:
    """Medians of seconds, and their ratios with the limits."""
    taking_part = sides(kind)
    seconds: dict[str, list[float]] = {name: [] for name in taking_part}
    for turn in range(1, repeats + 1):
        for name, run in taking_part.items():
            seconds[name].append(run(turn))
    medians = {name: statistics.median(found) for name, found in seconds.items()}
    epoch = 600 / STEPS[kind]
    print(f"\n{kind}: CPU seconds per epoch (60,000 datum gradients), median of {repeats}")
    for name, value in medians.items():
        print(f"  {name:24} {value * epoch:8.3f}")
    found = {f"{name}, s/epoch": value * epoch for name, value in medians.items()}
    for pair, limit in LIMITS.items():
        one, other = pair.split(" / ")
        if other in medians:
            ratio = medians[one] / medians[other]
            verdict = "" if limit is None else f"  limit {limit:g}: {'ok' if ratio <= limit else 'MISSED'}"
            print(f"  {pair:40} {ratio:6.2f}{verdict}")
            found[pair] = ratio
    return found


def peak_memory() -> dict[str, float]:
    """Peak GiB of a process of its own that takes a few steps of EWSG with M = 9 on the CNN, data included."""
    done = subprocess.run([sys.executable, __file__, "--child"], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    verdict = "ok" if found["EWSG, M = 9, cnn, GiB"] <= MEMORY_LIMIT else "MISSED"
    print(f"\nmemory: {found}  limit {MEMORY_LIMIT:g}: {verdict}")
    return found


def child() -> None:
    """The other end of `peak_memory`."""
    import ewsg

    target, start = problem("cnn")
    before = machine.peak_bytes()
    ewsg.sample(
        target,
        ewsg.Exponential(BATCH, 9),
        ewsg.Underdamped(STEP, 1.0, units="mean"),
        init=start,
        num_chains=1,
        num_steps=_MEMORY_STEPS,
        discard=_MEMORY_STEPS - 1,
        thin=1,
        progress=False,
    )
    after = machine.peak_bytes()
    print(json.dumps({"before sampling, GiB": before / 2**30, "EWSG, M = 9, cnn, GiB": after / 2**30}))


def main() -> None:
    """Prints the chosen sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", nargs="+", choices=("mlp", "cnn", "memory"), default=["mlp", "cnn", "memory"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--core", type=int, default=machine.cores()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    machine.stay_on([chosen.core])
    if chosen.child:
        child()
        return
    found = {}
    for section in chosen.sections:
        found[section] = peak_memory() if section == "memory" else compare(section, chosen.repeats)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
