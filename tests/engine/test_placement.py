"""Chains over two devices: the same draws, bit for bit, compiled once, saved and resumed across layouts."""

import json
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
import ewsg
from ewsg.errors import InputError
from ewsg._engine import loop, placement

rows = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
target = ewsg.Target(lambda theta, row: -0.5 * jnp.sum((theta - row) ** 2), None, rows)
found = {"devices": len(jax.devices())}
mesh = placement.mesh(6, 2)
methods = {
    "paired": (ewsg.Paired(2), ewsg.Underdamped(0.02, 10.0)),
    "reshuffled": (ewsg.Reshuffled(5), ewsg.BAOAB(0.02, 10.0)),
    "carried": (ewsg.Exponential(2, 1, restart=False), ewsg.Thermostat(0.02, 10.0)),
}
for name, method in methods.items():
    options = {"init": jnp.zeros(2), "num_chains": 6, "progress": False, "thin": 7}
    before = loop.advance(mesh, False)._cache_size()
    two = ewsg.sample(target, *method, num_steps=200, devices=2, **options)
    found[name + ", compiled"] = loop.advance(mesh, False)._cache_size() - before
    shards = two.checkpoint.carry.chains.state.phase.position.sharding.device_set
    found[name + ", shared by"] = len(shards)
    one = ewsg.sample(target, *method, num_steps=200, **options)
    found[name + ", same draws"] = bool(np.array_equal(one.draws, two.draws))
    found[name + ", same stats"] = all(np.allclose(one.stats[key], two.stats[key], 1e-4) for key in one.stats)
    found[name + ", same cost"] = one.cost.datum_gradients == two.cost.datum_gradients
    half = ewsg.sample(target, *method, num_steps=120, devices=2, discard=100, **options)
    half.save(sys.argv[1])
    whole = ewsg.sample(target, *method, num_steps=200, discard=100, **options)
    resumed = ewsg.resume(sys.argv[1], target, num_steps=80)
    found[name + ", resumed on one"] = bool(np.array_equal(whole.draws, resumed.draws))
    resumed = ewsg.resume(sys.argv[1], target, num_steps=80, devices=2)
    found[name + ", resumed on two"] = bool(np.array_equal(whole.draws, resumed.draws))
moments = ewsg.sample(target, *methods["paired"], num_steps=50, devices=2, collect=ewsg.collect.Moments(), **options)
kept = ewsg.sample(target, *methods["paired"], num_steps=50, collect=ewsg.collect.Moments(), **options)
found["same moments"] = bool(np.array_equal(moments.collected.mean, kept.collected.mean))
def factor(theta):
    return jnp.linalg.cholesky(jnp.eye(2) * (1 + theta @ theta))


for name, change in {"odd": {"num_chains": 5}, "factorised": {}, "collected": {"collect": factor}}.items():
    method = ewsg.CovarianceFriction(ewsg.Exponential(2, 1)) if name == "factorised" else methods["paired"][0]
    try:
        ewsg.sample(target, method, methods["paired"][1], num_steps=30, devices=2, **options | change)
    except ewsg.errors.InputError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


def test_two_devices_give_the_draws_of_one(tmp_path):
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run.npz")]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout.splitlines()[-1])
    counts = {key: value for key, value in found.items() if not isinstance(value, bool)}
    names = ("paired", "reshuffled", "carried")
    expected = {f"{name}, compiled": 1 for name in names} | {f"{name}, shared by": 2 for name in names}
    assert "if steps factorise matrices (eigh" in counts.pop("factorised")
    assert "if steps factorise matrices (cholesky" in counts.pop("collected")
    assert counts.pop("odd") == "num_chains=5 cannot be shared by devices=2: use a multiple of 2"
    assert counts == expected | {"devices": 2}
    assert [key for key, value in found.items() if value is False] == []


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (64, r"devices=64, but JAX has \d+: docs/speed.md says"),
        (0, "devices must be a whole number of at least 1, not 0"),
        (1.5, "devices"),
    ],
)
def test_impossible_numbers_of_devices_are_refused(devices, message):
    target = ewsg.Target(lambda theta, x: -((theta - x) ** 2), None, np.ones(3, np.float32))
    with pytest.raises(InputError, match=message):
        ewsg.sample(target, ewsg.recipes.sghmc(1, 0.1, 1.0), init=jnp.array(0.0), num_steps=3, devices=devices)
