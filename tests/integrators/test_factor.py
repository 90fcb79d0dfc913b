"""The factor of a kick: what integrators hand over to estimators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.integrators.baoab import BAOAB


@pytest.mark.parametrize(
    ("integrator", "factor"),
    [
        (ewsg.Underdamped(0.1, 4.0), 1.0),
        (BAOAB(0.1, 4.0), (1 + np.exp(-0.4)) / 2),
        (ewsg.UBU(0.1, 4.0), 1 / (2 - 0.4 / (np.exp(0.4) - 1))),
    ],
    ids=["underdamped", "baoab", "ubu"],
)
def test_integrators_hand_over_their_factor(gaussian, integrator, factor):
    seen = []

    def force_function(key, kick, state):
        seen.append(float(kick.factor))
        return ewsg.Full().estimate(key, gaussian, kick, state)

    phase = integrator.init(jax.random.key(0), jnp.zeros(2))
    integrator.step(jax.random.key(1), phase, jnp.int32(0), force_function, ())
    assert seen == pytest.approx([factor], rel=1e-5)
