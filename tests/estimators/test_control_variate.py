"""`ControlVariate`: its search, and with `SVRG` resume, compilation, pytrees and refusals."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special
from anchors import POSITION, UNDERDAMPED, Rows, Watched, flat

import ewsg
from ewsg.errors import InputError
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.svrg import SVRG


def test_the_search_finds_the_mode_and_counts_every_evaluation(centres):
    """A sum of logistic terms of very unequal stiffness, from far away; the mode by root finding in float64."""
    scale, seen = np.array([1.0, 30.0]), Rows()

    def density(params, centre):
        return -jnp.sum(jnp.logaddexp(0.0, (params - centre) * jnp.asarray(scale)))

    def force(theta, k):
        return -scale[k] * scipy.special.expit((theta - centres[:, k]) * scale[k]).sum() - 0.1 * (theta - 9.0)

    target = ewsg.Target(Watched(density, seen), lambda p: -0.05 * jnp.sum((p - 9.0) ** 2), centres)
    prepared, cost = ControlVariate(ewsg.Uniform(2), start=jnp.array([40.0, -20.0])).prepare(target)
    jax.effects_barrier()
    assert cost == (sum(seen), 0)
    assert 5 * 50 < cost.datum_gradients < 60 * 50
    mode = [scipy.optimize.brentq(force, -50, 50, args=(k,)) for k in range(2)]
    np.testing.assert_allclose(prepared.anchor, mode, atol=0.02)
    few, cost = ControlVariate(ewsg.Uniform(2), start=jnp.array([40.0, -20.0]), max_passes=1).prepare(target)
    assert cost == (100, 0)
    np.testing.assert_array_equal(few.anchor, [40.0, -20.0])
    again, cost = ControlVariate(ewsg.Uniform(2), start=prepared.anchor).prepare(target)
    assert cost.datum_gradients < 40 * 50
    np.testing.assert_allclose(again.anchor, mode, atol=0.02)


def test_the_search_is_deterministic(curved):
    one, cost = ControlVariate(ewsg.Uniform(2), start=POSITION).prepare(curved)
    other, again = ControlVariate(ewsg.Uniform(2), start=POSITION).prepare(curved)
    jax.tree.map(np.testing.assert_array_equal, (one.anchor, one.slope), (other.anchor, other.slope))
    assert cost == again
    assert np.abs(flat(curved.full_force(one.anchor))).max() < 2e-3


def test_resume_equals_continuous(bent, tmp_path):
    """With a state in the state: an anchor, and the minibatch of the estimator inside."""
    estimator = SVRG(ewsg.Exponential(2, 2, restart=False), 7)
    options = {"init": jnp.ones(2), "num_chains": 3, "discard": 4, "thin": 3, "seed": 5}
    whole = ewsg.sample(bent, estimator, UNDERDAMPED, num_steps=40, **options)
    ewsg.sample(bent, estimator, UNDERDAMPED, num_steps=17, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", bent, num_steps=23)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    for stat, values in whole.stats.items():
        np.testing.assert_array_equal(resumed.stats[stat], values)
    assert resumed.cost.datum_gradients == whole.cost.datum_gradients


@pytest.mark.parametrize("kind", ["svrg", "fixed"])
def test_parameters_in_a_pytree(bent, centres, kind):
    """The same chain whether θ is one array or two named scalars."""
    split = ewsg.Target(lambda p, c: -jnp.log1p((p["a"] - c[0]) ** 2 + (p["b"][0] - c[1]) ** 2), None, centres)
    start = {"a": jnp.array(1.0), "b": jnp.array([2.0])}
    options = {"num_chains": 2, "num_steps": 30, "discard": 0, "thin": 1}
    if kind == "svrg":
        one, two = SVRG(ewsg.Uniform(3), 7), SVRG(ewsg.Uniform(3), 7)
    else:
        two = ControlVariate(ewsg.Uniform(3), anchor={"a": 0.3, "b": np.array([-0.2], np.float32)})
        one = ControlVariate(ewsg.Uniform(3), anchor=jnp.array([0.3, -0.2]))
    whole = ewsg.sample(bent, one, UNDERDAMPED, init=jnp.array([1.0, 2.0]), **options).draws
    parts = ewsg.sample(split, two, UNDERDAMPED, init=start, **options).draws
    np.testing.assert_allclose(parts["a"], whole[..., 0], atol=1e-4)
    np.testing.assert_allclose(parts["b"], whole[..., 1:], atol=1e-4)


@pytest.mark.float32
@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: SVRG(ewsg.Uniform(2), 0), "period must be a whole number of at least 1, not 0"),
        (lambda: SVRG(ewsg.Uniform(2), 2.5), "period must be a whole number"),
        (lambda: SVRG(32, 5), "SVRG wraps an estimator, such as Uniform(32), not 32"),
        (lambda: SVRG(ewsg.Uniform(60, replace=False), 5), "larger than the number of data 50"),
        (lambda: SVRG(ewsg.Exponential(2, x="noise"), 5), "x='noise'"),
        (lambda: SVRG(ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(2)), 5), "would correct gradients twice"),
        (lambda: ControlVariate(SVRG(ewsg.Uniform(2), 5), anchor=jnp.zeros(2)), "would correct gradients twice"),
        (lambda: ControlVariate(ewsg.Uniform(2)), "needs an anchor: give anchor=, or start="),
        (lambda: ControlVariate(ewsg.Uniform(2), jnp.zeros(2), jnp.zeros(2)), "anchor= or start=, not both"),
        (
            lambda: ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(1)),
            "shapes [(1,)] but the parameters have [(2,)]",
        ),
        (lambda: ControlVariate(ewsg.Uniform(2), anchor=jnp.array([0, 1])), "anchor has dtype int32"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.array([0.0, jnp.nan])), "start has NaN"),
        (lambda: ControlVariate(ewsg.Uniform(2), start={"a": jnp.zeros(2)}), "at start, log_likelihood"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.full(2, 1e30)), "density is not finite at start"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.zeros(2), max_passes=0), "max_passes must be"),
        (lambda: ControlVariate(ewsg.Uniform(2), start=jnp.zeros(2), tolerance=-1), "tolerance must be"),
        (lambda: ControlVariate(ewsg.Uniform(2), anchors=jnp.zeros(2)), "did you mean 'anchor'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(gaussian, build, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ewsg.sample(gaussian, build(), UNDERDAMPED, init=jnp.zeros(2), num_steps=3)


def test_an_unprepared_control_variate_says_so(gaussian):
    with pytest.raises(InputError, match="not prepared"):
        ControlVariate(ewsg.Uniform(2), anchor=jnp.zeros(2)).init(jax.random.key(0), gaussian, jnp.zeros(2))
