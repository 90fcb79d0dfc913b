"""Paired selection: unbiased, the right friction, bounded."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.estimators import paired
from ewsg.estimators.paired import Paired
from ewsg.integrators.baoab import BAOAB
from ewsg.interface import Kick

N, H, T = 4, 0.1, 0.7
POSITION = {"m": jnp.array([0.2, -0.4]), "s": jnp.array(0.1)}
MOMENTUM = {"m": jnp.array([0.8, -0.5]), "s": jnp.array(-1.3)}


@pytest.fixture(scope="module")
def target():
    data = np.array([[0.1, 0.0], [0.4, -0.3], [-0.2, 2.5], [1.5, 0.2]], np.float32)

    def log_likelihood(params, x):
        return -0.5 * jnp.sum((params["m"] - x) ** 2) * jnp.exp(-params["s"]) - params["s"] * x[1]

    return ewsg.Target(log_likelihood, lambda p: -0.6 * jnp.sum(p["m"] ** 2) - p["s"] ** 2, data)


def the_kick(momentum=MOMENTUM, h=H):
    return Kick(POSITION, momentum, None, None, h, 1.0, T)


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]).astype(np.float64)


def negative(tree):
    return jax.tree.map(jnp.negative, tree)


def each_force(target):
    """−G_i, one row per datum, from jax.grad of the two densities alone."""
    return np.stack([N * flat(_share(target, x)) for x in np.asarray(target.data.arrays)])


@jax.jit
def _share(target, x):
    return jax.grad(lambda params: target.likelihood(params, x) + target.log_prior(params) / N)(POSITION)


@jax.jit
def full_force(target):
    return target.full_force(POSITION)


@jax.jit
def estimate_for(estimator, target, pair, kick):
    """The answer for a given pair of data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paired, "draw_batch", lambda *_: jnp.stack(pair))
        return estimator.estimate(jax.random.key(0), target, kick, ())


@pytest.mark.parametrize("rule", ["weight", "sequential"])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_force_is_unbiased_over_pairs_and_both_momenta(target, rule, scale):
    """The mean over all pairs, over r and −r, is the full gradient, clipped or not."""
    momentum = jax.tree.map(lambda leaf: scale * leaf, MOMENTUM)
    found = [
        flat(estimate_for(Paired(1, rule), target, pair, the_kick(r))[0])
        for pair in itertools.product(range(N), repeat=2)
        for r in (momentum, negative(momentum))
    ]
    np.testing.assert_allclose(np.mean(found, 0), flat(full_force(target)), rtol=3e-5, atol=3e-5)


def test_selection_is_unbiased_over_pairs_choices_and_both_momenta(target):
    """The same for `select`, with the choice enumerated by the probability that the rule uses."""
    forces, r = each_force(target), flat(MOMENTUM)
    total = np.zeros(3)
    for i, j in itertools.product(range(N), repeat=2):
        for momentum in (r, -r):
            tilt = H * (forces[i] - forces[j]) @ momentum / (2 * T)
            chance = float(paired.choice_probability(jnp.float32(tilt)))
            total += chance * forces[j] + (1 - chance) * forces[i]
    np.testing.assert_allclose(total / (2 * N**2), flat(full_force(target)), rtol=1e-5, atol=1e-5)


def test_selection_chooses_with_that_probability(target, monkeypatch):
    forces = each_force(target)
    tilt = H * (forces[2] - forces[3]) @ flat(MOMENTUM) / (2 * T)
    assert 0.05 < abs(tilt) < 0.95
    monkeypatch.setattr(paired, "draw_batch", lambda *_: jnp.array([2, 3]))
    keys = jax.random.split(jax.random.key(1), 20_000)
    choose = jax.vmap(lambda key: Paired(1, "select").estimate(key, target, the_kick(), ())[2].indices[0])
    share = np.mean(np.asarray(jax.jit(choose)(keys)) == 3)
    chance = 0.5 + 0.5 * tilt
    assert abs(share - chance) < 4.5 * np.sqrt(chance * (1 - chance) / 20_000)


@pytest.mark.parametrize("rule", ["weight", "select", "sequential"])
def test_first_order_friction_is_half_h_over_t_times_the_covariance(target, rule):
    """d/dε of the mean force at momentum ε r is −(h/2T) Cov(g) r, by central differences over all pairs."""
    forces = each_force(target)
    per_datum = np.cov(forces.T, bias=True)
    r, epsilon, h = flat(MOMENTUM), 0.1, 0.005
    means = []
    for sign in (1, -1):
        momentum = jax.tree.map(lambda leaf, s=sign: s * epsilon * leaf, MOMENTUM)
        total = np.zeros(3)
        for i, j in itertools.product(range(N), repeat=2):
            if rule == "select":
                tilt = h * (forces[i] - forces[j]) @ (sign * epsilon * r) / (2 * T)
                total += 0.5 * (forces[i] + forces[j]) + 0.5 * tilt * (forces[j] - forces[i])
            else:
                total += flat(estimate_for(Paired(1, rule), target, (i, j), the_kick(momentum, h))[0])
        means.append(total / N**2)
    friction = (means[0] - means[1]) / (2 * epsilon)
    batch_covariance = per_datum if rule == "select" else per_datum / 2
    expected = -h / (2 * T) * batch_covariance @ r
    assert np.abs(friction - expected).max() < 0.01 * np.abs(expected).max()


@pytest.mark.parametrize(("q", "factor"), [(0.05, 1.0), (0.5, 1.0), (0.9, 1.0), (0.9, 0.3), (2.0, 0.3), (1.7, 1.0)])
def test_sequential_kick_keeps_the_thermal_law(target, q, factor):
    """With A the kick's linear part, v the pair's half difference, q = ‖v‖²/T: T A Aᵀ + c v vᵀ = T I while cq ≤ 1.

    Beyond, A takes all of the momentum's part along v, and nothing else.
    """
    forces = each_force(target)
    h = float(2 * np.sqrt(q * T) / np.linalg.norm(forces[0] - forces[1]))
    v = h * (forces[0] - forces[1]) / 2
    unravel = jax.flatten_util.ravel_pytree(POSITION)[1]
    estimator = Paired(1, "sequential", factor=None if factor == 1 else factor)

    def kicked(r):
        kick = the_kick(unravel(jnp.asarray(r, jnp.result_type(float))), h)._replace(
            factor=0.123
        )  # the integrator's has no say
        return r + h * flat(estimate_for(estimator, target, (0, 1), kick)[0])

    constant = kicked(np.zeros(3))
    matrix = np.stack([kicked(unit) - constant for unit in np.eye(3)], axis=1)
    left = max(1 - factor * q, 0)  # of the variance along v
    along = np.outer(v, v) / (v @ v)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3) - (1 - left) * along, atol=5e-5)
    np.testing.assert_allclose(constant, h * (forces[0] + forces[1]) / 2, rtol=1e-4, atol=1e-5)


def test_sequential_without_a_factor_is_the_plain_mean(target):
    """c = 0: no tilt at all, exactly; c = 1 differs."""
    answer = jax.jit(lambda estimator: estimator.estimate(jax.random.key(5), target, the_kick(), ()))
    none, one = (answer(Paired(3, "sequential", factor=c)) for c in (0.0, 1.0))
    plain = flat(jax.jit(lambda indices: target.force(POSITION, indices))(none[2].indices))
    np.testing.assert_allclose(flat(none[0]), plain, rtol=1e-5, atol=1e-5)
    assert np.abs(flat(one[0]) - plain).max() > 0.01


def test_the_drag_of_sequential_is_its_friction(target):
    """What is left of the force is the plain mean, also under a metric; other rules do not tell."""
    metric = {"m": jnp.array([4.0, 0.25]), "s": jnp.array(2.0)}
    for kick in (the_kick(), the_kick()._replace(metric=metric), the_kick(h=0.0)):
        force, _, info = Paired(3, "sequential").estimate(jax.random.key(5), target, kick, ())
        if kick.step_size > 0:
            plain = flat(target.force(POSITION, info.indices))
            np.testing.assert_allclose(flat(force) - flat(info.drag), plain, rtol=1e-4, atol=1e-4)
            assert flat(info.drag) @ flat(MOMENTUM) < -0.01
        assert np.isfinite(flat(info.drag)).all()
    assert Paired(3).estimate(jax.random.key(5), target, the_kick(), ())[2].drag is None


def test_friction_of_distinct_data_by_enumeration(target, monkeypatch):
    """Without replacement the mean force at momentum ε r shifts by −(h/2T) Cov(g) r, g the force of that rule."""
    forces, r, h, epsilon = each_force(target), flat(MOMENTUM), 0.005, 0.01
    small = jax.tree.map(lambda leaf: epsilon * leaf, MOMENTUM)
    pairs = list(itertools.permutations(range(N), 2))
    leans = []
    monkeypatch.setattr(paired, "choice_probability", lambda lean: (leans.append(float(lean[0])), lean)[1])
    for rule in ("weight", "select", "sequential"):
        total = np.zeros(3)
        for i, j in pairs:
            estimator = Paired(1, rule, replace=False)
            with jax.disable_jit(rule == "select"):  # `leans` are numbers
                force = flat(estimate_for(estimator, target, (i, j), the_kick(small, h))[0])
            if rule == "select":  # its mean over the choice
                force = 0.5 * (forces[i] + forces[j]) + 0.5 * leans[-1] * (forces[j] - forces[i])
            total += force - 0.5 * (forces[i] + forces[j])
        kept = [forces[i] if rule == "select" else 0.5 * (forces[i] + forces[j]) for i, j in pairs]
        expected = -h / (2 * T) * np.cov(np.stack(kept).T, bias=True) @ (epsilon * r)
        np.testing.assert_allclose(total / len(pairs), expected, rtol=0.02, atol=0.01 * np.abs(expected).max())


def test_weights_stay_within_bounds(target, monkeypatch):
    seen = []
    monkeypatch.setattr(ewsg.Target, "weighted_force", lambda self, p, i, w: (seen.append(np.asarray(w)), p)[1])
    huge = jax.tree.map(lambda leaf: 1e4 * leaf, MOMENTUM)
    for b in (1, 3):
        Paired(b).estimate(jax.random.key(b), target, the_kick(huge), ())
        assert seen[-1].min() >= 0
        assert seen[-1].max() <= 1 / b + 1e-7
        assert seen[-1].sum() == pytest.approx(1)


@pytest.mark.parametrize(("rule", "bound"), [("weight", 2.0), ("select", 1.0), ("sequential", 1.0)])
@pytest.mark.parametrize("h", [0.01, 1.0])
def test_stats_are_moments_of_the_tilt(target, rule, bound, h):
    """D = h r·(G_j − G_i)/(2bT), whatever the factor; `weight` is cut at |D| = 2, where a datum's weight is 0."""
    forces = each_force(target)
    tilt = h * flat(MOMENTUM) @ (forces[0] - forces[2]) / (2 * T)
    stats = estimate_for(Paired(1, rule), target, (0, 2), the_kick(h=h))[2].stats
    assert stats["tilt_second"] == pytest.approx(tilt**2, rel=1e-4)
    share = np.clip(tilt / 2, -1, 1)
    assert stats["tilt_lean"] == pytest.approx(2 * share * tilt, rel=1e-4)
    assert stats["tilt_squared_share"] == pytest.approx((share * tilt) ** 2, rel=1e-4)
    assert stats["clipped"] == float(abs(tilt) > bound)


def test_overdamped_pairs_lean_against_the_injected_noise(target):
    """D = ξ·v √(2hT) / (2hT): the same rule with the noise for the momentum."""
    forces, noise_scale = each_force(target), np.sqrt(2 * H * T)
    kick = Kick(POSITION, None, None, MOMENTUM, H, noise_scale, T)
    force = flat(estimate_for(Paired(1), target, (0, 2), kick)[0])
    lean = np.clip(H * (forces[0] - forces[2]) @ flat(MOMENTUM) * noise_scale / (2 * noise_scale**2) / 2, -1, 1)
    np.testing.assert_allclose(force, ((1 - lean) * forces[0] + (1 + lean) * forces[2]) / 2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", ["weight", "select", "sequential"])
def test_equal_data_give_the_full_gradient_chain(rule):
    data = np.full((20, 2), 0.7, np.float32)
    same = ewsg.Target(lambda t, x: -0.5 * jnp.sum((t - x) ** 2), lambda t: -jnp.sum(t**4), data)
    options = {"init": jnp.zeros(2), "num_steps": 30, "discard": 0, "thin": 1}
    integrator = BAOAB(step_size=0.05, friction=3.0, temperature=T)
    chains = [ewsg.sample(same, e, integrator, **options).draws for e in (ewsg.Full(), Paired(3, rule))]
    np.testing.assert_allclose(chains[1], chains[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rule", ["weight", "select", "sequential"])
def test_large_batches_tend_to_the_full_gradient(target, rule):
    """Error of the force over 2,000 draws: 16 times the pairs, a quarter of the error."""

    def error(batch_size):
        estimator = Paired(batch_size, rule)
        keys = jax.random.split(jax.random.key(3), 2000)
        forces = jax.jit(jax.vmap(lambda key: estimator.estimate(key, target, the_kick(h=0.01), ())[0]))(keys)
        wrong = jax.tree.map(lambda one, full: np.asarray(one) - np.asarray(full), forces, full_force(target))
        return np.sqrt(sum(np.mean(np.square(leaf)) for leaf in jax.tree.leaves(wrong)))

    errors = [error(b) for b in (8, 128)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("units", [pytest.param("sum", marks=pytest.mark.slow), "mean"])
@pytest.mark.parametrize("rule", ["weight", "sequential"])
def test_temperature_is_a_rescaling(gaussian, centres, rule, units):
    """The chain at T on V is the chain at 1 on V/T with h√T and γ/√T; mean units are h√n and γ/√n."""
    root = np.sqrt(0.3)
    colder = ewsg.Target(lambda t, c: -0.5 * jnp.sum((t - c) ** 2) / 0.3, None, centres)
    options = {"init": jnp.zeros(2), "num_steps": 40, "discard": 0, "thin": 1}
    scale = np.sqrt(50) if units == "mean" else 1.0
    integrator = ewsg.Underdamped(0.02 * scale, 5.0 / scale, 0.3, units=units)
    one = ewsg.sample(gaussian, Paired(2, rule), integrator, **options)
    other = ewsg.sample(colder, Paired(2, rule), ewsg.Underdamped(0.02 * root, 5.0 / root), **options)
    np.testing.assert_allclose(one.draws, other.draws, rtol=2e-3, atol=2e-4)


def test_reshuffled_is_refused_with_the_reason():
    with pytest.raises(ewsg.errors.InputError, match="over-cool"):
        Paired(ewsg.Reshuffled(4))


def test_too_many_gradients_for_sequential_are_refused():
    wide = ewsg.Target(lambda w, x: -jnp.sum((w - x) ** 2), None, np.zeros(10, np.float32))
    options = {"init": jnp.zeros(200_000), "num_steps": 1, "num_chains": 1, "thin": 1}
    with pytest.raises(ewsg.errors.InputError, match="use rule='weight'"):
        ewsg.sample(wide, Paired(100, "sequential"), BAOAB(1e-3, 1.0), **options)


def test_costs(gaussian):
    for rule, gradients, directional in (("weight", 6, 6), ("select", 3, 6), ("sequential", 6, 0)):
        run = ewsg.sample(gaussian, Paired(3, rule), BAOAB(0.01, 5.0), init=jnp.zeros(2), num_steps=10)
        assert run.cost.datum_gradients == 4 * 10 * gradients
        assert run.cost.datum_directional == 4 * 10 * directional


def test_the_factor_scales_the_tilt(target):
    """c multiplies D; a given factor replaces the integrator's; without replacement it shrinks by 1 − 2b/n."""
    kick = the_kick()._replace(factor=0.5)
    forces = each_force(target)
    tilt = H * (forces[0] - forces[2]) @ flat(MOMENTUM) / (2 * T)
    for estimator, factor in ((Paired(1), 0.5), (Paired(1, factor=0.2), 0.2), (Paired(1, replace=False), 0.5 * 0.5)):
        force = flat(estimate_for(estimator, target, (0, 2), kick)[0])
        lean = factor * tilt / 2
        np.testing.assert_allclose(force, ((1 - lean) * forces[0] + (1 + lean) * forces[2]) / 2, rtol=1e-4, atol=1e-4)
