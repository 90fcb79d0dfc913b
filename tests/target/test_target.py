"""What a target checks of its densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError


@pytest.mark.parametrize(
    ("log_likelihood", "log_prior", "summed"),
    [(lambda t, x: t - x[0], None, "the datum"), (lambda t, x: -jnp.sum(t**2), lambda t: t, "the parameters")],
    ids=["likelihood", "prior"],
)
def test_an_axis_of_chains_is_named_as_a_cause(log_likelihood, log_prior, summed):
    target = ewsg.Target(log_likelihood, log_prior, np.ones((3, 2)))
    with pytest.raises(InputError, match=rf"not shape \(2, 2\): sum over .* of {summed}, or, .*init=lambda key"):
        target.check(jnp.zeros((2, 2)))


def test_log_concave_is_what_is_known_to_be():
    """And true of what says so: the Hessian of −V is negative at random points, whatever the data."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    known = {
        "logistic": ewsg.models.logistic(x, y),
        "flat prior": ewsg.Target(ewsg.models.logistic(x, y).likelihood, None, x.astype(np.float32)),
        "linear": ewsg.models.linear(x, y, noise_scale=0.7),
        "poisson": ewsg.models.poisson(x, y),
        "softmax": ewsg.models.softmax(x, y, num_classes=2),
    }
    for name, target in known.items():
        assert target.is_log_concave, name
        shape = (3, 2) if name == "softmax" else (3,)
        for theta in jnp.asarray(3 * rng.normal(size=(5, *shape)), jnp.float32):
            hessian = np.asarray(jax.hessian(target.log_density)(theta)).reshape(theta.size, -1)
            assert np.linalg.eigvalsh(hessian)[-1] < 1e-3, name
    logistic = known["logistic"]
    for other in (
        ewsg.models.linear(x, y),  # with an unknown scale
        ewsg.Target(logistic.likelihood, lambda t: jnp.sum(jnp.cos(t)), x.astype(np.float32)),
        ewsg.Target(lambda t, row: -jnp.sum((t - row) ** 2), logistic.log_prior, x.astype(np.float32)),
    ):
        assert not other.is_log_concave
