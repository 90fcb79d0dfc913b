"""One list of duties: pytrees, determinism, resumed = continuous, `init`/`step` under jit and vmap.

For every method that carries something of its own from step to step, and for the plainest of the others.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg import _random

START = {"b": jnp.array(0.1), "w": jnp.array([0.2, -0.3])}
POINTS = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf + 0.3, -leaf]), START)
MOVE = ewsg.Underdamped(step_size=0.01, friction=5.0, temperature=0.7)

METHODS = {
    "reshuffled": (ewsg.Reshuffled(4), MOVE),
    "sms": (ewsg.SMS(4), ewsg.UBU(0.01, 5.0)),
    "clustered": (ewsg.Clustered(3, 2), MOVE),
    "ewsg carried": (ewsg.Exponential(2, 3, restart=False), MOVE),
    "ewsg vr": ewsg.recipes.ewsg_vr(1, 2e-3, 5.0, bound=1.0),
    "running covariance": (ewsg.CovarianceFriction(ewsg.Uniform(4), mode="running"), MOVE),
    "batch covariance": (ewsg.CovarianceFriction(ewsg.Uniform(4), mode="batch"), ewsg.BAOAB(0.01, 5.0)),
    "svrg ewsg": (ewsg.SVRG(ewsg.Exponential(2), period=5), MOVE),
    "control variate": (ewsg.ControlVariate(ewsg.Paired(2), start=START), ewsg.BAOAB(0.01, 5.0)),
    "leverage": (ewsg.ControlVariate(ewsg.Leverage(ewsg.Paired(2), POINTS), start=START), ewsg.BAOAB(0.01, 5.0)),
    "psgld": ewsg.recipes.psgld(4, 1e-3),
    "sgnht": ewsg.recipes.sgnht(4, 0.01, 5.0),
    "paired sequential": (ewsg.Paired(2, "sequential"), ewsg.UBU(0.01, 5.0)),
    "sgbd": (ewsg.Uniform(4), ewsg.Barker(1e-3, temperature=0.7)),
    "c-sgbd": (ewsg.CorrectedBarker(4, 1e-3), None),
    "random walk": (ewsg.RandomWalk(0.1), None),
}
QUICK = {  # in `make test`: every family once
    "reshuffled",
    "clustered",
    "ewsg carried",
    "running covariance",
    "svrg ewsg",
    "control variate",
    "psgld",
    "sgnht",
    "paired sequential",
    "random walk",
}


@pytest.fixture(scope="module")
def target():
    """A regression with heavy tails; parameters in a dict, data in a tuple."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)).astype(np.float32)
    y = (x @ np.array([0.5, -1.0]) + rng.standard_t(3, size=30)).astype(np.float32)

    def log_likelihood(params, datum):
        x, y = datum
        return -2.0 * jnp.log1p((y - params["w"] @ x - params["b"]) ** 2 / 3)

    return ewsg.Target(log_likelihood, lambda p: -0.5 * (p["b"] ** 2 + jnp.sum(p["w"] ** 2)), (x, y))


def equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in METHODS]
)
def test_duties(target, tmp_path, name):
    estimator, integrator = METHODS[name]
    options = {"init": START, "num_chains": 3, "discard": 2, "thin": 3}
    whole = ewsg.sample(target, estimator, integrator, num_steps=24, seed=5, **options)
    assert whole.ok.all()
    assert jax.tree.map(np.shape, whole.draws) == {"b": (3, 7), "w": (3, 7, 2)}
    assert np.unique(whole.draws["b"][:, -1]).size == 3

    part = ewsg.sample(target, estimator, integrator, num_steps=13, seed=5, **options)
    equal(part.draws, jax.tree.map(lambda leaf: leaf[:, :3], whole.draws))
    part.save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", target, num_steps=11)
    equal((resumed.draws, resumed.stats, resumed.checkpoint.carry), (whole.draws, whole.stats, whole.checkpoint.carry))
    assert resumed.cost.datum_gradients == whole.cost.datum_gradients > 0

    sampler = ewsg.compose(target, estimator, integrator)
    own = jax.random.fold_in(_random.make_key(5, _random.default_generator()), 0)
    state = sampler.init(jax.random.fold_in(own, 1), START)
    step = jax.jit(type(sampler).step)
    for t in range(5):
        state, _ = step(sampler, jax.random.fold_in(jax.random.fold_in(own, 2), t), state)
    first = jax.tree.map(lambda leaf: leaf[0, 0], whole.draws)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), state.phase.position, first)
