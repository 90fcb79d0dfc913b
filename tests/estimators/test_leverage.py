"""`Leverage`: its law, unbiased forces, their noise, its cost, and what it refuses."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from anchors import (
    ANCHOR,
    POSITION,
    UNDERDAMPED,
    N,
    Rows,
    Watched,
    close,
    corrected_forces,
    each_gradient,
    flat,
    kick_at,
)

import ewsg
from ewsg._core.component import describe
from ewsg.errors import InputError
from ewsg.estimators import paired
from ewsg.estimators.exponential import enumerate_batches
from ewsg.estimators.leverage import Leverage, draw_law, gradient_sizes
from ewsg.target.weighted import weighted

POINTS = {"w": jnp.array([[0.3, 0.1, 0.2], [-0.4, 0.9, 0.0], [0.2, 0.2, -1.0]]), "b": jnp.array([0.1, -0.5, 0.8])}
EACH = [jax.tree.map(lambda leaf, k=k: leaf[k], POINTS) for k in range(3)]


def prepared(target, inner, **settings):
    return Leverage(inner, POINTS, **settings).prepare(target)[0]


full_force = jax.jit(lambda target: target.full_force(POSITION))


def law_of(table):
    keep = np.asarray(table.keep, float)
    law = keep.copy()
    np.add.at(law, np.asarray(table.other), 1 - keep)
    return law / len(law)


def test_data_are_drawn_by_the_size_of_their_gradients(curved):
    """By hand, from the user's function; inside a control variate it is the gradient without that at the anchor."""
    plain = [each_gradient(curved, point) for point in EACH]
    there = each_gradient(curved, ANCHOR)
    control = ewsg.ControlVariate(Leverage(ewsg.Uniform(2), POINTS), anchor=ANCHOR).prepare(curved)[0]
    for gradients, table in (
        (plain, prepared(curved, ewsg.Uniform(2)).table),
        ([each - there for each in plain], control.inner.table),
    ):
        size = np.sqrt(np.mean([np.sum(each**2, axis=1) for each in gradients], axis=0))
        law = 0.3 / N + 0.7 * size / size.sum()
        close(law_of(table), law)
        close(np.asarray(table.weight), 1 / (N * law))
        assert np.asarray(table.weight).max() <= 1 / 0.3
        assert law.max() / law.min() > 1.5
    all_uniform = prepared(curved, ewsg.Uniform(2), uniform_share=1.0).table
    np.testing.assert_array_equal(all_uniform.keep, 1.0)


def test_sizes_do_not_depend_on_the_blocks(curved, monkeypatch):
    whole = gradient_sizes(curved, POINTS)
    monkeypatch.setattr("ewsg.estimators.leverage._ROWS_PER_BLOCK", 4)
    close(gradient_sizes(curved, POINTS), whole)


def test_data_without_gradients_are_drawn_uniformly():
    np.testing.assert_allclose(draw_law(np.zeros(4), 0.3), 0.25)
    np.testing.assert_allclose(draw_law(np.array([0.0, 3.0]), 0.4), [0.2, 0.8])


@pytest.mark.parametrize("anchor", [None, ANCHOR])
def test_unbiased_by_enumeration(curved, anchor):
    """Σ p_i (force of datum i) is the full force, by each of the four ways in which estimators ask for it."""
    estimator = Leverage(ewsg.Uniform(1), POINTS)
    if anchor is not None:
        control = ewsg.ControlVariate(estimator, anchor=anchor).prepare(curved)[0]
        estimator, target = control.inner, control._anchored(curved, POSITION)
    else:
        estimator, target = estimator.prepare(curved)[0], curved
    law, drawn = law_of(estimator.table), weighted(target, estimator.table)
    full, everyone = flat(full_force(curved)), jnp.arange(N)

    @jax.jit
    def found(position):
        one = jax.vmap(lambda i: drawn.force(position, i[None]))(everyone)
        held = jax.vmap(lambda i: drawn.hold(i[None]).weighted_force(position, i[None], jnp.ones(1)))(everyone)
        forces, along = drawn.forces(position, everyone), drawn.directional(position, everyone, ANCHOR)
        value = drawn.likelihood(position, jax.tree.map(lambda leaf: leaf[2], drawn.data.arrays))
        return (forces, one, held), along, (value, drawn.likelihood.values(position, drawn.data.rows(0, N))[2])

    forces, along, values = found(POSITION)
    for each in forces:
        close(law @ flat(each), full)
    close(law @ np.asarray(along), full @ flat(ANCHOR))
    np.testing.assert_allclose(*values, rtol=1e-5)


@pytest.mark.parametrize("rule", ["weight", "sequential"])
def test_paired_forces_are_unbiased_over_both_momenta(curved, rule, monkeypatch):
    estimator = prepared(curved, ewsg.Paired(1, rule))
    law, kick, pairs = law_of(estimator.table), kick_at(POSITION), enumerate_batches(N, 2, True)

    def force(pair, sign):
        monkeypatch.setattr(paired, "draw_batch", lambda *_: pair)
        momentum = jax.tree.map(lambda leaf: sign * leaf, kick.momentum)
        return estimator.estimate(jax.random.key(0), curved, kick._replace(momentum=momentum), ())[0]

    forces = jax.jit(jax.vmap(force, (0, None)))
    both = [flat(forces(jnp.asarray(pairs), jnp.array(sign))) for sign in (1.0, -1.0)]
    close(law[pairs].prod(1) @ np.mean(both, axis=0), flat(full_force(curved)), 5e-5)


@pytest.mark.parametrize("around", ["nothing", "control variate"])
def test_noise_trace_is_that_of_the_weighted_forces(curved, around):
    """Against the covariance of G_i/(n p_i) under p, enumerated; that of uniform draws differs."""
    estimator = Leverage(ewsg.Uniform(3), POINTS)
    if around == "control variate":
        estimator = ewsg.ControlVariate(estimator, anchor=ANCHOR)
        forces = corrected_forces(curved, POSITION, ANCHOR)
        constant = forces.mean(0) - N * (each_gradient(curved, POSITION) - each_gradient(curved, ANCHOR)).mean(0)
        likelihood = forces - constant
    else:
        likelihood = N * each_gradient(curved, POSITION)
    estimator = estimator.prepare(curved)[0]
    table = estimator.inner.table if around == "control variate" else estimator.table
    law = law_of(table)
    each = likelihood / (N * law)[:, None]
    exact = (law @ np.sum(each**2, axis=1) - np.sum((law @ each) ** 2)) / 3
    uniform = np.trace(np.cov(likelihood.T, bias=True)) / 3
    assert abs(exact / uniform - 1) > 0.1
    keys = jax.random.split(jax.random.key(5), 40_000)
    traces = np.asarray(jax.jit(jax.vmap(lambda key: estimator.noise_trace(key, curved, POSITION, ())))(keys))
    assert abs(traces.mean() - exact) < 4.5 * traces.std() / 200


def test_rare_data_cost_less_noise():
    """1 % of the data have gradients a hundred times as large: uniform minibatches have 30 times the noise."""
    scale = np.where(np.arange(1000) % 100 == 0, 100.0, 1.0).astype(np.float32)
    centre = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    target = ewsg.Target(lambda t, x: -0.5 * x[0] * (t - x[1]) ** 2, None, (np.stack([scale, centre], 1)))
    points = jnp.array([0.5, -0.5])

    def noise(estimator):
        estimator, keys = estimator.prepare(target)[0], jax.random.split(jax.random.key(0), 2000)
        traces = jax.jit(jax.vmap(lambda key: estimator.noise_trace(key, target, jnp.array(0.1), ())))(keys)
        return np.mean(traces)

    assert noise(ewsg.Uniform(4)) > 15 * noise(Leverage(ewsg.Uniform(4), points))


class Counted(Watched):
    """Notes the rows of `gradients` as well, once for every point."""

    def gradients(self, params, batch):
        jax.debug.callback(lambda _: self.seen.append(batch.shape[0]), params)
        return super().gradients(params, batch)


def test_preparation_counts_every_gradient_and_is_done_once(centres):
    """The anchor's gradients serve all points."""
    seen = Rows()
    target = ewsg.Target(Counted(lambda p, c: -jnp.sum(jnp.cosh(p - c)), seen), None, centres)
    points = jnp.array([[0.1, 0.2], [0.5, -0.5], [0.0, 1.0]])
    alone, cost = Leverage(ewsg.Paired(2), points).prepare(target)
    jax.effects_barrier()
    assert cost == (sum(seen), 0) == (3 * 50, 0)
    again, cost = alone.prepare(target)
    assert cost == (0, 0)
    assert again.table is alone.table
    seen.clear()
    _, cost = ewsg.ControlVariate(Leverage(ewsg.Paired(2), points), anchor=jnp.zeros(2)).prepare(target)
    jax.effects_barrier()
    assert cost == (sum(seen), 0) == ((3 + 1 + 1) * 50, 0)  # and one pass for the control variate itself


def test_costs_are_those_of_the_inner_estimator(gaussian):
    estimator = Leverage(ewsg.Paired(3), jnp.ones((2, 2)))
    run = ewsg.sample(gaussian, estimator, UNDERDAMPED, init=jnp.zeros(2), num_chains=2, data_passes=10)
    steps = (500 - 2 * 50) // 6
    assert run.settings["num_steps"] == steps
    assert run.cost.datum_gradients == 2 * 6 * steps + 2 * 50
    assert run.cost.datum_directional == 2 * 6 * steps


@pytest.mark.parametrize("given", ["plain", "prepared"])
def test_resume_makes_the_table_again(tmp_path, given):
    """12,000 data: a table of that size is not in the file, whether or not the estimator came with one."""
    data = np.random.default_rng(1).standard_t(3, size=(12_000, 2)).astype(np.float32)
    target = ewsg.Target(lambda theta, c: -jnp.log1p(jnp.sum((theta - c) ** 2)), None, data)
    points = jnp.array([[0.02, 0.0], [-0.01, 0.03]])
    estimator = ewsg.ControlVariate(Leverage(ewsg.Paired(2), points), anchor=jnp.zeros(2))
    if given == "prepared":
        estimator = estimator.prepare(target)[0]
    assert describe(estimator)["inner"]["table"] is None
    options = {"init": jnp.zeros(2), "num_chains": 2, "discard": 4, "thin": 3, "seed": 5}
    move = ewsg.BAOAB(2e-3, 50.0)
    whole = ewsg.sample(target, estimator, move, num_steps=40, **options)
    ewsg.sample(target, estimator, move, num_steps=17, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", target, num_steps=23)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    np.testing.assert_array_equal(resumed.stats["noise_ratio"], whole.stats["noise_ratio"])
    assert np.unique(whole.draws).size > 20


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda p: Leverage(ewsg.Exponential(2), p), "for Uniform and Paired with replace=True, not for Exponential:"),
        (lambda p: Leverage(ewsg.Paired(2, replace=False), p), "not for Paired(replace=False)"),
        (lambda p: Leverage(ewsg.SVRG(ewsg.Uniform(2), 5), p), "not for SVRG"),
        (lambda p: Leverage(8, p), "Leverage wraps an estimator, such as Paired(8), not 8"),
        (lambda p: Leverage(ewsg.Uniform(2), p, uniform_share=0.0), "uniform_share must be positive"),
        (lambda p: Leverage(ewsg.Uniform(2), p, uniform_share=1.5), "uniform_share must be at most 1, not 1.5"),
        (lambda p: Leverage(ewsg.Uniform(2), p[0, 0]), "one more leading axis, one entry per point, not points ()"),
        (lambda p: Leverage(ewsg.Uniform(2), {"a": p, "b": p[:1]}), "points['a'] (2, 2), points['b'] (1, 2)"),
        (lambda p: Leverage(ewsg.Uniform(2), p[0]), "shapes [(2,)] and the parameters have [(2,)]"),
        (lambda p: Leverage(ewsg.Uniform(2), p.at[1, 0].set(jnp.nan)), "Leverage: points has NaN"),
        (lambda p: Leverage(ewsg.Uniform(2), 1e30 * p), "the gradient of datum 0 is not finite at points"),
        (lambda p: ewsg.CovarianceFriction(Leverage(ewsg.Uniform(2), p)), "inner must be Uniform(...)"),
    ],
)
@pytest.mark.float32
def test_bad_input_is_refused_in_a_sentence(gaussian, build, words):
    with pytest.raises(InputError, match=re.escape(words)):
        ewsg.sample(gaussian, build(jnp.ones((2, 2))), UNDERDAMPED, init=jnp.zeros(2), num_steps=3)


def test_unprepared_it_says_so(gaussian):
    with pytest.raises(InputError, match="not prepared"):
        Leverage(ewsg.Uniform(2), jnp.ones((1, 2))).init(jax.random.key(0), gaussian, jnp.zeros(2))


def test_distinct_data_are_never_drawn_by_a_table(gaussian):
    table = Leverage(ewsg.Uniform(2), jnp.ones((1, 2))).prepare(gaussian)[0].table
    with pytest.raises(InputError, match="drawn with replacement"):
        weighted(gaussian, table).draw(jax.random.key(0), 3, replace=False)
