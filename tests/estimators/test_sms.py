"""SMS: one symmetric sweep."""

import jax
import jax.numpy as jnp
import numpy as np

import ewsg
from ewsg.estimators.sms import SMS
from ewsg.integrators.ubu import UBU


def test_sms_sweeps_forwards_and_backwards(gaussian):
    sampler = ewsg.compose(gaussian, SMS(7), UBU(step_size=0.01, friction=5.0))
    state = sampler.init(jax.random.key(0), jnp.zeros(2))
    step, seen = jax.jit(sampler.step), []
    for t in range(28):
        state, info = step(jax.random.key(t), state)
        seen.append(tuple(np.asarray(info.estimate.indices)))
    assert seen[7:14] == seen[6::-1]
    assert len({index for batch in seen[:7] for index in batch}) == 49
    assert seen[14:21] != seen[:7]
    assert seen[21:28] == seen[20:13:-1]
