"""Covariance friction: each mode and form by an independent computation, exact stationary laws, and EWSG-VR."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from conftest import gaussian_log_likelihood
from test_gaussian import assert_covariance, gaussian_kl

import ewsg
from ewsg.estimators.control_variate import ControlVariate
from ewsg.estimators.covariance import GradientMoments, svrg
from ewsg.estimators.covariance_friction import CovarianceFriction
from ewsg.interface import Kick
from ewsg.sampler import SamplerState

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


def walk(target, estimator, steps):
    """Answers along a given path: (force with friction, inner force, minibatch, info) for each step."""
    state = estimator.init(jax.random.key(7), target, place(np.zeros(3)))
    inner_state = estimator.inner.init(jax.random.key(7), target, place(np.zeros(3)))
    answer = jax.jit(lambda key, kick, state: estimator.estimate(key, target, kick, state))
    for t, (theta, r) in enumerate(zip(*path(steps), strict=True)):
        kick = kick_at(place(theta), place(r), t)
        force, state, info = answer(jax.random.key(t), kick, state)
        plain, inner_state, inner_info = estimator.inner.estimate(jax.random.key(t), target, kick, inner_state)
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
    force, _, info = estimator.estimate(jax.random.key(1), coupled, kick, state._replace(covariance=broken))
    plain, _, _ = estimator.inner.estimate(jax.random.key(1), coupled, kick, ())
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
    for t in range(3):
        force, state, _ = estimator.estimate(jax.random.key(t), target, kick._replace(step=jnp.int32(t)), state)
        plain, _, _ = estimator.inner.estimate(jax.random.key(t), target, kick, ())
    found = np.asarray(plain - force, np.float64) / (H / (2 * T))
    exact = leading @ np.asarray(momentum, np.float64)
    assert np.linalg.norm(found - exact) < 0.01 * np.linalg.norm(exact)


def test_without_covariance_it_is_ewsg(gaussian):
    """Equal data have no covariance; a factor of 0 takes it away: both give EWSG's chain, draw for draw."""
    integrator = ewsg.Underdamped(0.02, 5.0, temperature=0.3)

    def chain(target, estimator):
        sampler = ewsg.compose(target, estimator, integrator)
        step, state = jax.jit(sampler.step), sampler.init(jax.random.key(0), jnp.array([1.0, -0.5]))
        positions = []
        for t in range(60):
            state, _ = step(jax.random.key(t), state)
            positions.append(np.asarray(state.phase.position))
        return np.stack(positions)

    equal = ewsg.Target(gaussian_log_likelihood, None, np.full((50, 2), 0.3, np.float32))
    plain = ewsg.Exponential(2, 1)
    with_friction = chain(equal, CovarianceFriction(plain, period=1))
    np.testing.assert_allclose(with_friction, chain(equal, plain), rtol=1e-4, atol=2e-5)
    without = chain(gaussian, plain)
    np.testing.assert_allclose(chain(gaussian, CovarianceFriction(plain, factor=0.0)), without, rtol=1e-5, atol=1e-6)
    assert np.abs(chain(gaussian, CovarianceFriction(plain, factor=1.0)) - without).max() > 0.01


@pytest.fixture(scope="module")
def stretched():
    """Twenty centres with unequal, correlated spread."""
    rng = np.random.default_rng(1)
    centres = (rng.normal(size=(20, 2)) @ np.array([[1.0, 0.6], [0.0, 0.4]])).astype(np.float32)
    return ewsg.Target(gaussian_log_likelihood, None, centres), 20**2 * np.cov(centres.T.astype(np.float64), bias=True)


def stationary_covariance(noise, friction, n, h, gamma, temperature):
    """S = A S Aᵀ + Q of Euler–Maruyama with friction γI + `friction` and gradient covariance `noise`."""
    eye = np.eye(2)
    a = np.block([[eye, h * eye], [-h * n * eye, (1 - h * gamma) * eye - h * friction]])
    q = np.zeros((4, 4))
    q[2:, 2:] = 2 * gamma * temperature * h * eye + h**2 * noise
    return scipy.linalg.solve_discrete_lyapunov(a, q)[:2, :2]


def last_draws(target, estimator, integrator, num_steps, num_chains):
    run = ewsg.sample(
        target,
        estimator,
        integrator,
        init=jnp.zeros(2),
        num_chains=num_chains,
        num_steps=num_steps,
        discard=0,
        thin=num_steps,
    )
    return np.asarray(run.draws, np.float64)[:, -1], run


@pytest.mark.parametrize(
    ("inner", "factor", "form", "temperature"),
    [
        (ewsg.Uniform(1), 1.0, "full", 1.0),
        (ewsg.Uniform(1), 1.0, "full", 0.3),
        (ewsg.Uniform(4, replace=False), 16 / 19 / 4, "diagonal", 0.3),
    ],
    ids=str,
)
def test_stationary_law_is_exact(stretched, inner, factor, form, temperature):
    """Cov(g) of a quadratic potential is constant, so calibrations are exact and the friction matrix is known."""
    target, covariance = stretched
    h, gamma, noise = 0.02, 4.0, factor * covariance
    friction = h / (2 * temperature) * (noise if form == "full" else np.diag(np.diag(noise)))
    exact = stationary_covariance(noise, friction, 20, h, gamma, temperature)
    hot = stationary_covariance(noise, 0 * noise, 20, h, gamma, temperature)
    assert hot[0, 0] > 1.1 * exact[0, 0]
    estimator = CovarianceFriction(inner, period=1, form=form)
    draws, run = last_draws(target, estimator, ewsg.Underdamped(h, gamma, temperature), 300, 6_000)
    assert run.ok.all()
    assert_covariance(draws, exact)
    assert np.all(run.stats["projected"] == 0)


def test_running_mean_reaches_the_stationary_law(stretched):
    """decay = 1, as in CCAdL: the mean over 500 steps is within a few per cent of the covariance."""
    target, covariance = stretched
    h, gamma, temperature = 0.02, 4.0, 0.3
    noise = covariance / 5
    exact = stationary_covariance(noise, h / (2 * temperature) * noise, 20, h, gamma, temperature)
    estimator = CovarianceFriction(ewsg.Uniform(5), mode="running", decay=1.0)
    draws, run = last_draws(target, estimator, ewsg.Underdamped(h, gamma, temperature), 500, 4_000)
    assert run.ok.all()
    assert_covariance(draws, exact)


def test_ewsg_vr_on_the_papers_gaussian(gaussian, centres):
    """30 data passes, L = 1, b = 1, M = 1, γ = 10: what holds of the supplement's figure, and what does not.

    h = 0.05, as printed: h·Γ has eigenvalues 2.7 and 3.3, beyond Euler–Maruyama's 2 + h²n/2, and all chains diverge.
    """

    def outcome(estimator, h, chains=3_000):
        """(KL, its standard error) with Var ln s = 2/m for each variance s, or how the chains ended."""
        integrator = ewsg.Underdamped(h, 10.0, momentum="zero")
        sampler = ewsg.compose(gaussian, estimator, integrator)
        draws, run = last_draws(gaussian, estimator, integrator, sampler.num_steps(1500), chains)
        assert run.cost.data_passes == 30
        if not run.ok.all():
            return set(run.status)
        ratios = 1 / 50 / np.linalg.eigvalsh(np.cov(draws.T))
        return gaussian_kl(draws, centres), np.sqrt(np.sum((ratios - 1) ** 2) / (2 * chains)) + 5 / (2 * chains)

    plain = ewsg.Exponential(1, 1)
    eigenvalues = np.linalg.eigvalsh(50**2 * np.cov(centres.T, bias=True))
    assert np.all(0.05 * (10 + 0.05 / 2 * eigenvalues) > 2 + 0.05**2 * 50 / 2)
    assert outcome(CovarianceFriction(plain), 0.05, chains=50) <= {"diverged", "nonfinite"}
    # From Alg. 1 and 2 written in NumPy, 10,000 and 40,000 chains; plain EWSG at h = 0.05 has 0.93 (test_gaussian.py).
    for estimator, h, reference in (
        (CovarianceFriction(plain, bound=1.0), 0.05, 0.2448),
        (plain, 0.03, 0.467),
        (CovarianceFriction(plain), 0.03, 0.0508),
        (CovarianceFriction(ewsg.Uniform(1)), 0.03, 0.0027),
    ):
        value, error = outcome(estimator, h)
        assert abs(value - reference) < 4.5 * error + 0.03 * reference, (estimator, value, error)
        assert error < 0.1 * reference or reference < 0.01


def test_cost_is_counted_by_hand(gaussian):
    """50 for a calibration, 25 steps of 3, then 50 and 8 steps of 3 more: 199 of a budget of 200."""
    estimator = CovarianceFriction(ewsg.Exponential(1, 1))
    options = {"init": jnp.zeros(2), "num_chains": 3, "discard": 0, "thin": 1}
    run = ewsg.sample(gaussian, estimator, ewsg.Underdamped(0.01, 5.0), data_passes=4, **options)
    assert (run.settings["num_steps"], run.cost.datum_gradients) == (33, 3 * 199)
    assert CovarianceFriction(ewsg.Exponential(1, 1), passes=2).num_steps(200, 50) == 50
    assert CovarianceFriction(ewsg.Uniform(3), period=4).num_steps(150, 50) == 5
    assert CovarianceFriction(ewsg.Uniform(3), mode="running").num_steps(150, 50) == 25


def test_number_of_steps_is_the_largest_that_the_budget_pays_for():
    for estimator in (CovarianceFriction(ewsg.Uniform(2), period=7), CovarianceFriction(ewsg.Exponential(1, 2))):
        each, n = int(estimator.cost(40).datum_gradients), 40
        period = 7 if estimator.period else 14
        for budget in range(0, 700, 3):
            steps = estimator.num_steps(budget, n)
            assert steps * each + -(-steps // period) * n <= budget
            assert (steps + 1) * each + -(-(steps + 1) // period) * n > budget


def test_calibration_is_a_true_branch_for_many_chains(gaussian):
    """With the loop's shared step counter the jaxpr keeps its `cond`; a batched one would compute both sides.

    Another `cond`, of no data, keeps the indices of a minibatch apart from what they gather.
    """
    sampler = ewsg.compose(gaussian, CovarianceFriction(ewsg.Uniform(1)), ewsg.Underdamped(0.01, 5.0))
    axes = SamplerState(0, 0, None)
    keys = jax.random.split(jax.random.key(0), 3)
    state = jax.vmap(sampler.init, out_axes=axes)(keys, jnp.zeros((3, 2)))
    shared = str(jax.make_jaxpr(jax.vmap(sampler.step, (0, axes)))(jax.random.clone(keys), state))
    apart = state._replace(step=jnp.zeros(3, jnp.int32))
    batched = str(jax.make_jaxpr(jax.vmap(sampler.step))(jax.random.clone(keys), apart))
    assert shared.count("cond[") == batched.count("cond[") + 1


FRICTIONS = {
    "svrg": CovarianceFriction(ewsg.Exponential(1, 1), period=5),
    "carried": CovarianceFriction(ewsg.Exponential(2, 1, restart=False), form="diagonal", passes=0.5, bound=0.5),
    "low_rank": CovarianceFriction(ewsg.Uniform(3), form="low_rank", rank=1),
    "running": CovarianceFriction(ewsg.Uniform(3), mode="running"),
    "batch": CovarianceFriction(ewsg.Uniform(3), mode="batch"),
}


@pytest.mark.parametrize("name", ["carried", "low_rank"])
def test_resumed_equals_uninterrupted(gaussian, tmp_path, name):
    options = {"init": jnp.zeros(2), "num_chains": 3, "discard": 10, "thin": 7}
    integrator = ewsg.Underdamped(0.01, 5.0, temperature=0.3)
    whole = ewsg.sample(gaussian, FRICTIONS[name], integrator, num_steps=96, **options)
    ewsg.sample(gaussian, FRICTIONS[name], integrator, num_steps=41, **options).save(tmp_path / "run.npz")
    resumed = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=55)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    assert resumed.cost.datum_gradients == whole.cost.datum_gradients
    jax.tree.map(np.testing.assert_array_equal, resumed.checkpoint.carry, whole.checkpoint.carry)


@pytest.mark.parametrize(
    "name", [pytest.param("svrg", marks=pytest.mark.slow), pytest.param("low_rank", marks=pytest.mark.slow), "batch"]
)
def test_compiled_equals_eager(gaussian, name):
    chains, steps = 10_000, 2
    axes = SamplerState(0, 0, None)
    sampler = ewsg.compose(gaussian, FRICTIONS[name], ewsg.Underdamped(0.01, 10.0, 0.5))

    def advance(sampler, key, positions):
        key_init, *step_keys = jax.random.split(key, steps + 1)
        state = jax.vmap(sampler.init, out_axes=axes)(jax.random.split(key_init, chains), positions)
        for step_key in step_keys:
            keys = jax.random.split(step_key, chains)
            state, _ = jax.vmap(sampler.step, (0, axes), (axes, 0))(keys, state)
        return state.phase

    compiled = jax.jit(advance)(sampler, jax.random.key(1), jnp.zeros((chains, 2)))
    with jax.disable_jit():
        eager = advance(sampler, jax.random.key(1), jnp.zeros((chains, 2)))
    differs = np.zeros(chains, bool)
    for one, other in zip(compiled, eager, strict=True):
        differs |= np.abs(np.asarray(one) - np.asarray(other)).max(1) > 2e-3
    assert differs.mean() <= 5e-4  # a decision may fall on the other side of a rounding error


def test_control_variates_go_around_it(coupled):
    """The anchored forces' covariance is used: at the anchor it vanishes, and with it the friction."""
    position = place([0.1, 0.2, -0.3])
    friction = CovarianceFriction(ewsg.Uniform(4), mode="batch")
    estimator, _ = ControlVariate(friction, anchor=position).prepare(coupled)
    kick = kick_at(position, place([1.0, 1.0, 1.0]), 0)
    state = estimator.init(jax.random.key(0), coupled, position)
    force, _, info = estimator.estimate(jax.random.key(1), coupled, kick, state)
    np.testing.assert_allclose(flat(force), flat(coupled.full_force(position)), rtol=1e-4, atol=1e-3)
    assert info.cost.datum_gradients == 2 * 8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period": 0}, "a calibration period of 0"),
        ({"passes": 0}, "a calibration period of 0"),
        ({"period": 5, "passes": 1}, "not both"),
        ({"period": -1}, "period must be a whole number"),
        ({"mode": "svgr"}, "did you mean 'svrg'"),
        ({"mode": "batch", "period": 5}, "never calibrates"),
        ({"inner": ewsg.Uniform(1), "mode": "batch"}, "batch_size of at least 2"),
        ({"inner": ewsg.Uniform(1), "mode": "running"}, "batch_size of at least 2"),
        ({"inner": ewsg.Reshuffled(5)}, "not Reshuffled"),
        ({"inner": ewsg.Full()}, "not Full"),
        ({"form": "low_rank"}, "go together"),
        ({"rank": 3}, "go together"),
        ({"form": "low_rank", "rank": 3, "mode": "running"}, "is for mode='svrg'"),
        ({"form": "low_rank", "rank": 0}, "rank must be a whole number"),
        ({"bound": 0.0}, "bound must be positive"),
        ({"mode": "running", "decay": 1.2}, "decay must be at most 1"),
        ({"factor": -1.0}, "factor must be zero or positive"),
    ],
    ids=str,
)
def test_bad_settings(settings, message):
    with pytest.raises(ewsg.errors.InputError, match=message):
        CovarianceFriction(**({"inner": ewsg.Uniform(4)} | settings))


def test_it_needs_a_momentum(gaussian):
    with pytest.raises(ewsg.errors.InputError, match="acts on a momentum"):
        ewsg.compose(gaussian, CovarianceFriction(ewsg.Uniform(2)), ewsg.Overdamped(1e-3))


def test_a_matrix_too_large_is_refused():
    target = ewsg.Target(lambda t, c: -0.5 * jnp.sum((t - c) ** 2), None, np.zeros((3, 2001), np.float32))
    integrator = ewsg.Underdamped(0.01, 5.0)
    with pytest.raises(ewsg.errors.InputError, match="2001 × 2001 matrix"):
        ewsg.sample(target, CovarianceFriction(ewsg.Uniform(2)), integrator, init=jnp.zeros(2001), num_steps=2)
    for settings in ({"mode": "batch"}, {"form": "diagonal"}, {"form": "low_rank", "rank": 4}):
        sampler = ewsg.compose(target, CovarianceFriction(ewsg.Uniform(2), **settings), integrator)
        assert sum(leaf.size for leaf in jax.tree.leaves(sampler.init(jax.random.key(0), jnp.zeros(2001)))) < 30_000


def test_configurational_temperature_leaves_the_friction_out(gaussian):
    """On a Gaussian it is n·Var(θ); with the friction counted as a force it would read about 0.7."""
    run = ewsg.sample(
        gaussian,
        CovarianceFriction(ewsg.Uniform(1), passes=1),
        ewsg.Underdamped(step_size=0.02, friction=10.0),
        init=jnp.zeros(2),
        num_chains=2000,
        num_steps=1000,
        discard=300,
        thin=50,
    )
    spread = 50 * run.draws.var((0, 1)).mean()
    assert spread == pytest.approx(1.0, abs=0.08)
    assert run.stats["configurational_temperature"].mean() == pytest.approx(spread, abs=0.06)
