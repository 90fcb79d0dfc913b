import jax.numpy as jnp
import numpy as np

import ewsg
from ewsg.models import LinearUnknownScale, Logistic
from ewsg.target.weighted import WeightedLikelihood


def test_weights_multiply_every_form():
    rng = np.random.default_rng(0)
    rows, weights = (jnp.asarray(rng.normal(size=size), jnp.float32) for size in ((5, 3), 5))
    theta, anchor = (jnp.asarray(rng.normal(size=3), jnp.float32) for _ in range(2))
    weights = jnp.abs(weights)
    likelihood, batch = WeightedLikelihood(Logistic()), (weights, rows)
    each = weights[:, None] * Logistic().gradients(theta, rows)
    change = each - weights[:, None] * Logistic().gradients(anchor, rows)
    np.testing.assert_allclose(likelihood.gradients(theta, batch), each, rtol=1e-6)
    np.testing.assert_allclose(likelihood.gradient_changes(theta, anchor, batch), change, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(likelihood.gradient(theta, batch, jnp.ones(5)), each.sum(0), rtol=1e-5)
    np.testing.assert_allclose(likelihood.directional(theta, batch, anchor), each @ anchor, rtol=1e-5)
    np.testing.assert_allclose(likelihood.values(theta, batch), weights * Logistic().values(theta, rows), rtol=1e-6)


def test_weights_do_not_bend_a_concave_density():
    rows = np.ones((4, 2), np.float32)
    for likelihood in (Logistic(), LinearUnknownScale()):
        target = ewsg.Target(
            WeightedLikelihood(likelihood), ewsg.models.GaussianPrior(1.0), (np.ones(4, np.float32), rows)
        )
        assert target.is_log_concave == likelihood.log_concave
