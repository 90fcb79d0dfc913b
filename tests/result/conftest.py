"""A saved run that tests may damage."""

import jax.numpy as jnp
import pytest

import ewsg


@pytest.fixture(scope="module")
def whole(gaussian, tmp_path_factory):
    """(target, bytes of a saved run with the stats of paired selection and parameters in a dict)."""
    target = ewsg.Target(lambda p, c: -0.5 * ((p["a"] - c[0]) ** 2 + (p["b"] - c[1]) ** 2), None, gaussian.data.arrays)
    init = {"a": jnp.array(0.0), "b": jnp.array(0.0)}
    method = ewsg.Paired(2), ewsg.Underdamped(step_size=0.01, friction=5.0)
    run = ewsg.sample(target, *method, init=init, num_chains=2, num_steps=9, discard=4, thin=1)
    path = tmp_path_factory.mktemp("whole") / "run.npz"
    run.save(path)
    return target, path.read_bytes()
