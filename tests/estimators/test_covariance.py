"""Covariance friction: each mode and form of the covariance by an independent computation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.covariance import GradientMoments, svrg
from ewsg.estimators.covariance_friction import CovarianceFriction
from ewsg.interface import Kick

H, T, N = 0.02, 0.3, 12


@pytest.fixture(scope="module")
def coupled():
    """Twelve data, a prior, and parameters in two leaves (d = 3); gradients are neither linear nor Gaussian."""
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(N, 2)).astype(np.float32), "y": rng.normal(size=N).astype(np.float32)}

    def log_likelihood(p, datum):
        return -jnp.cosh(datum["y"] - p["w"] @ datum["x"] - p["b"])

    return ewsg.Target(log_likelihood, lambda p: -0.7 * jnp.sum(p["w"] ** 4) - p["b"] ** 2, data)


def place(vector):
    return {"b": jnp.float32(vector[0]), "w": jnp.asarray(vector[1:], jnp.float32)}


def flat(tree):
    return np.concatenate([np.ravel(tree["b"]), np.ravel(tree["w"])]).astype(np.float64)


def forces(target, vector, indices=None):
    """G_i = n∇(−V_i) by hand, one row a datum."""
    b, w = vector[0], vector[1:]
    x, y = (np.asarray(target.data.arrays[name], np.float64) for name in ("x", "y"))
    slope = np.sinh(y - x @ w - b)
    each = N * np.column_stack([slope, slope[:, None] * x]) - np.concatenate([[2 * b], 2.8 * w**3])
    return each if indices is None else each[np.asarray(indices)]


def kick_at(position, momentum, step, temperature=T):
    noise_scale = np.float32(np.sqrt(2 * 4.0 * temperature * H))
    decay = jax.tree.map(lambda r: H * 4.0 * r, momentum)
    return Kick(position, momentum, decay, momentum, H, noise_scale, temperature, jnp.int32(step))


def path(steps):
    """Positions, far out at every eighth step, and momenta."""
    rng = np.random.default_rng(5)
    spread = np.where(np.arange(steps) % 8 == 0, 1.2, 0.3)
    return spread[:, None] * rng.normal(size=(steps, 3)), rng.normal(size=(steps, 3))


def compiled(estimator, target):
    return jax.jit(lambda key, kick, state: estimator.estimate(key, target, kick, state))


def walk(target, estimator, steps):
    """Answers along a given path: (force with friction, inner force, minibatch, info) for each step."""
    state = estimator.init(jax.random.key(7), target, place(np.zeros(3)))
    inner_state = estimator.inner.init(jax.random.key(7), target, place(np.zeros(3)))
    answer = compiled(estimator, target)
    answer_inside = compiled(estimator.inner, target)
    for t, (theta, r) in enumerate(zip(*path(steps), strict=True)):
        kick = kick_at(place(theta), place(r), t)
        force, state, info = answer(jax.random.key(t), kick, state)
        plain, inner_state, inner_info = answer_inside(jax.random.key(t), kick, inner_state)
        np.testing.assert_array_equal(info.indices, inner_info.indices)
        yield flat(force), flat(plain), info


def cut(matrix, bound):
    """The matrix without negative eigenvalues and, as a friction H·matrix/2T, taking at most `bound` of r a step."""
    values, vectors = np.linalg.eigh(matrix)
    ceiling = np.inf if bound is None else bound * 2 * T / H**2
    return (vectors * np.clip(values, 0, ceiling)) @ vectors.T


@pytest.mark.parametrize(
    ("inner", "form", "bound"),
    [
        (ewsg.Uniform(4), "full", None),
        (ewsg.Uniform(4, replace=False), "full", 0.02),
        (ewsg.Uniform(4, replace=False), "diagonal", None),
        (ewsg.Exponential(3, 2), "diagonal", 0.02),
    ],
    ids=str,
)
def test_batch_friction_by_hand(coupled, inner, form, bound):
    """(h/2T)·S/b·r with S the sample covariance of the minibatch; (1 − b/n) of it without replacement."""
    estimator = CovarianceFriction(inner, mode="batch", form=form, bound=bound)
    b = inner.batch_size
    shrink = 1.0 if inner.replace else 1 - b / N
    positions, momenta = path(4)
    for t, (force, plain, info) in enumerate(walk(coupled, estimator, 4)):
        covariance = np.cov(forces(coupled, positions[t], info.indices).T) * shrink / b
        if form == "diagonal":
            covariance = np.diag(np.diag(covariance))
        drag = H / (2 * T) * cut(covariance, bound) @ momenta[t]
        np.testing.assert_allclose(plain - force, drag, rtol=2e-3, atol=1e-3)
        assert np.abs(drag).max() > 0.02
        assert info.cost.datum_gradients == inner.cost(N).datum_gradients + b


@pytest.mark.parametrize(("form", "bound"), [("full", 0.02), ("diagonal", None)])
def test_running_friction_by_hand(coupled, form, bound):
    """The t-th sample covariance enters with weight max(1/t, 1 − decay), before it is used."""
    estimator = CovarianceFriction(ewsg.Uniform(4), mode="running", form=form, decay=0.7, bound=bound, factor=0.5)
    positions, momenta = path(6)
    running = np.zeros((3, 3))
    for t, (force, plain, info) in enumerate(walk(coupled, estimator, 6)):
        sample = np.cov(forces(coupled, positions[t], info.indices).T)
        running = running + max(1 / (t + 1), 0.3) * (sample - running)
        covariance = 0.5 * (np.diag(np.diag(running)) if form == "diagonal" else running) / 4
        drag = H / (2 * T) * cut(covariance, bound) @ momenta[t]
        np.testing.assert_allclose(plain - force, drag, rtol=2e-3, atol=1e-3)
        assert info.cost.datum_gradients == 8


@pytest.mark.parametrize(
    ("inner", "form", "bound", "period"),
    [
        (ewsg.Exponential(1, 1), "full", None, 3),
        (ewsg.Exponential(1, 1), "diagonal", None, 3),
        (ewsg.Exponential(1, 1), "low_rank", None, 3),
        (ewsg.Uniform(3, replace=False), "full", 0.05, 8),
        (ewsg.Uniform(3, replace=False), "diagonal", 0.05, 8),
        (ewsg.Uniform(3, replace=False), "low_rank", 0.05, 8),
    ],
    ids=str,
)
def test_algorithm_2_by_hand(coupled, inner, form, bound, period):
    """m₁ and m₂ as printed; a rank of d is no approximation. Data chosen twice in a long period cost positivity."""
    rank = 3 if form == "low_rank" else None
    estimator = CovarianceFriction(inner, period=period, form=form, bound=bound, rank=rank)
    b = inner.batch_size
    factor = 1.0 if b == 1 else (N - b) / (N - 1) / b
    positions, momenta = path(8)
    projected = 0
    for t, (force, plain, info) in enumerate(walk(coupled, estimator, 8)):
        if t % period == 0:
            anchor = positions[t]
            everything = forces(coupled, anchor)
            m1, m2 = everything.mean(0), everything.T @ everything / N
        covariance = m2 - np.outer(m1, m1)
        if form == "diagonal":
            covariance = np.diag(np.diag(covariance))
        negative = np.linalg.eigvalsh(covariance)[0] < -1e-3
        drag = H / (2 * T) * cut(factor * covariance, bound) @ momenta[t]
        np.testing.assert_allclose(plain - force, drag, rtol=5e-3, atol=5e-3)
        assert bool(info.stats["projected"]) == negative
        projected += negative
        calibration = N if t % period == 0 else 0
        assert info.cost.datum_gradients == inner.cost(N).datum_gradients + (1 if b == 1 else 2 * b) + calibration
        for i in np.asarray(info.indices):
            new, old = forces(coupled, positions[t], [i])[0], forces(coupled, anchor, [i])[0]
            m1 = m1 + (new - old) / N
            m2 = m2 + (np.outer(new, new) - np.outer(old, old)) / N
    assert 0 < projected < 8 if period == 8 else projected == 0


def test_calibration_goes_through_the_data_in_blocks(coupled, monkeypatch):
    estimator = CovarianceFriction(ewsg.Uniform(2))
    whole = [force for force, _, _ in walk(coupled, estimator, 1)]
    monkeypatch.setattr(svrg, "_NUMBERS_PER_BLOCK", 15)
    blocks = [force for force, _, _ in walk(coupled, estimator, 1)]
    np.testing.assert_allclose(whole, blocks, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("form", ["full", "diagonal", "low_rank"])
def test_what_is_not_positive_is_projected_and_reported(coupled, form):
    """m₂ = 0 with m₁ ≠ 0 leaves −m₁m₁ᵀ: no friction at all, and every step counts."""
    estimator = CovarianceFriction(ewsg.Uniform(1), period=5, form=form, rank=2 if form == "low_rank" else None)
    state = estimator.init(jax.random.key(0), coupled, place(np.zeros(3)))
    broken = state.covariance._replace(mean=jnp.array([1.0, -2.0, 0.5]))
    kick = kick_at(place([0.1, 0.2, 0.3]), place([1.0, 1.0, 1.0]), 1)
    force, _, info = compiled(estimator, coupled)(jax.random.key(1), kick, state._replace(covariance=broken))
    plain, _, _ = compiled(estimator.inner, coupled)(jax.random.key(1), kick, ())
    np.testing.assert_allclose(flat(force), flat(plain), atol=1e-5)
    assert float(info.stats["projected"]) == 1.0


def test_low_rank_turns_to_the_leading_eigenvectors():
    """Ten coordinates, two of them with a thousand times the variance: after some calibrations rank 2 has both."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    centres = ((rng.normal(size=(40, 10)) * np.sqrt([1000.0, 500.0, *[1.0] * 8])) @ basis.T).astype(np.float32)
    target = ewsg.Target(gaussian_log_likelihood, None, centres)
    estimator = CovarianceFriction(ewsg.Uniform(1), period=1, form="low_rank", rank=2)
    covariance = 40**2 * np.cov(centres.astype(np.float64).T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    leading = (vectors[:, -2:] * values[-2:]) @ vectors[:, -2:].T
    state = estimator.init(jax.random.key(0), target, jnp.zeros(10))
    assert isinstance(state.covariance, GradientMoments)
    assert state.covariance.second.shape == (10, 2)
    momentum = jnp.asarray(rng.normal(size=10), jnp.float32)
    kick = kick_at(jnp.zeros(10), momentum, 0)
    answer, answer_inside = compiled(estimator, target), compiled(estimator.inner, target)
    for t in range(3):
        force, state, _ = answer(jax.random.key(t), kick._replace(step=jnp.int32(t)), state)
        plain, _, _ = answer_inside(jax.random.key(t), kick, ())
    found = np.asarray(plain - force, np.float64) / (H / (2 * T))
    exact = leading @ np.asarray(momentum, np.float64)
    assert np.linalg.norm(found - exact) < 0.01 * np.linalg.norm(exact)


def test_control_variates_go_around_it(coupled):
    """The anchored forces' covariance is used: at the anchor it vanishes, and with it the friction."""
    position = place([0.1, 0.2, -0.3])
    friction = CovarianceFriction(ewsg.Uniform(4), mode="batch")
    estimator, _ = ControlVariate(friction, anchor=position).prepare(coupled)
    kick = kick_at(position, place([1.0, 1.0, 1.0]), 0)
    state = estimator.init(jax.random.key(0), coupled, position)
    force, _, info = compiled(estimator, coupled)(jax.random.key(1), kick, state)
    np.testing.assert_allclose(flat(force), flat(coupled.full_force(position)), rtol=1e-4, atol=1e-3)
    assert info.cost.datum_gradients == 2 * 8
