"""FlyMC: the joint law of position and indicators, its bounds, its table of bright data, its cost."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_kernels import OBSERVED, START, assert_skewed_law, last_draws, log_likelihood, log_prior

import ewsg
from ewsg import _random
from ewsg.errors import InputError
from ewsg.interface import Cost
from ewsg.kernels import AbstractBound, FlyMC, GaussianTaylorBound, LogisticBound
from ewsg.kernels._bright_table import Table
from ewsg.kernels.bounds import logistic as logistic_bound
from ewsg.kernels.bounds.base import Prepared
from ewsg.kernels.flymc import exponential, log_expm1
from ewsg.target import mode

ROWS = np.array([[1.0], [2.5], [-1.5]], np.float32)
TANGENT = jnp.array([4.0])
GRID = np.linspace(-14.0, 14.0, 6001)


@pytest.fixture(scope="module")
def three():
    """Three data of a logistic regression with one coefficient."""
    return ewsg.models.logistic(np.abs(ROWS), ROWS[:, 0] > 0)


@pytest.fixture(scope="module")
def skewed():
    return ewsg.Target(log_likelihood, log_prior, OBSERVED)


def logistic(n, d, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)).astype(np.float32)
    truth = rng.normal(size=d) / np.sqrt(d)
    return ewsg.models.logistic(features, rng.uniform(size=n) < 1 / (1 + np.exp(-features @ truth)))


def log_gaps(theta):
    """ℓ_i − log B_i of the three data with the bound tangent at TANGENT, in float64, by the formula."""
    s, xi = ROWS.astype(np.float64) * theta, ROWS * 4.0
    curvature = np.tanh(xi / 2) / (4 * xi)
    bound = -np.log1p(np.exp(-xi)) + (s - xi) / 2 - curvature * (s**2 - xi**2)
    return -np.logaddexp(0, -s) - bound


def joint(temperature):
    """p(θ, z) on the grid × {0, 1}³, by enumeration: {z: weights over the grid}, of total 1."""
    log_likelihoods = -np.logaddexp(0, -ROWS.astype(np.float64) * GRID) / temperature
    gaps = np.maximum(log_gaps(GRID), 0) / temperature
    prior = -(GRID**2) / (2 * 2.5**2) / temperature
    weights = {}
    for z in itertools.product((0, 1), repeat=3):
        bright = np.array(z)[:, None] == 1
        share = np.where(bright, -np.expm1(-gaps), np.exp(-gaps))  # (L − B)/L or B/L
        weights[z] = np.exp(prior + log_likelihoods.sum(0)) * share.prod(0)
    total = sum(w.sum() for w in weights.values())
    return {z: w / total for z, w in weights.items()}


def run_by_hand(sampler, init, num_chains, num_steps, seed=0):
    """The states of all chains after some steps."""
    keys = [jax.random.split(key, num_chains) for key in jax.random.split(jax.random.key(seed), 3)]

    @jax.jit
    def run(sampler, keys):
        def chain(key_state, key_position, key_steps):
            def step(t, state):
                return sampler.step(jax.random.fold_in(key_steps, t), state)[0]

            return jax.lax.fori_loop(0, num_steps, step, sampler.init(key_state, init(key_position)))

        return jax.vmap(chain)(*keys)

    return run(sampler, keys)


def indicators(state):
    """z of every chain, one row each."""
    table = state.estimator.table
    return np.asarray(table.place < table.num_bright[:, None])


def assert_mean(values, expected, deviations=4.5):
    error = max(values.std(), 1e-12) / np.sqrt(len(values))
    assert abs(values.mean() - expected) < deviations * error, (values.mean(), expected, error)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_indicators_have_their_law_at_a_fixed_position(three, temperature):
    """All eight states of z, given θ, after each of the three has been drawn anew several times, one at a time."""
    sampler = ewsg.compose(three, FlyMC(LogisticBound(TANGENT), 1e-30, resample=1, temperature=temperature))
    start = run_by_hand(sampler, lambda key: jnp.array([-1.2]), 40_000, 0)
    later = run_by_hand(sampler, lambda key: jnp.array([-1.2]), 40_000, 9)
    dark = np.exp(-log_gaps(np.array([-1.2]))[:, 0] / temperature)
    assert np.all((dark > 0.03) & (dark < 0.9))
    assert np.mean(np.any(indicators(start) != indicators(later), axis=1)) > 0.3
    for state in (start, later):
        z = indicators(state)
        for pattern in itertools.product((0, 1), repeat=3):
            expected = np.prod(np.where(np.array(pattern) == 1, 1 - dark, dark))
            assert_mean(np.all(z == np.array(pattern), axis=1).astype(float), expected)


@pytest.mark.parametrize(("resample", "temperature"), [(1, 1.0), (2, 1.0), (1.0, 1.0), (1, 0.4)])
def test_joint_law(three, resample, temperature):
    """E θ^k, E z_i, E z_i z_j, E θ z_i, E θ² z_i and E z₁z₂z₃ against quadrature over θ and enumeration of z."""
    kernel = FlyMC(LogisticBound(TANGENT), 1.5, resample=resample, temperature=temperature)
    state = run_by_hand(ewsg.compose(three, kernel), lambda key: jax.random.normal(key, (1,)), 40_000, 150)
    theta, z = np.asarray(state.phase.position, np.float64)[:, 0], indicators(state).astype(float)
    exact = joint(temperature)

    def expectation(function):
        return sum(np.sum(weights * function(GRID, np.array(pattern))) for pattern, weights in exact.items())

    for power in (1, 2, 3):
        assert_mean(theta**power, expectation(lambda t, _, power=power: t**power))
    for i in range(3):
        assert 0.2 < expectation(lambda t, z, i=i: z[i]) < 0.98
        assert_mean(z[:, i], expectation(lambda t, z, i=i: z[i]))
        assert_mean(theta * z[:, i], expectation(lambda t, z, i=i: t * z[i]))
        assert_mean(theta**2 * z[:, i], expectation(lambda t, z, i=i: t**2 * z[i]))
        assert_mean(z[:, i] * z[:, i - 1], expectation(lambda t, z, i=i: z[i] * z[i - 1]))
    assert_mean(z.prod(1), expectation(lambda t, z: z.prod()))


def test_carried_density_is_that_of_the_state(three):
    """After many steps the two carried parts of log p(θ, z) are what they are when computed anew."""
    sampler = ewsg.compose(three, FlyMC(LogisticBound(TANGENT), 1.5, resample=2))
    state = run_by_hand(sampler, lambda key: jax.random.normal(key, (1,)), 500, 200)
    theta = np.asarray(state.phase.position, np.float64)[:, 0]
    weights = np.log(np.expm1(np.maximum(log_gaps(theta), 1e-12))).T
    expected = np.sum(np.where(indicators(state), weights, 0), axis=1)
    np.testing.assert_allclose(state.estimator.bright_sum.value(), expected, rtol=1e-3, atol=2e-3)
    base = jax.vmap(sampler._base)(state.phase.position)
    np.testing.assert_allclose(state.estimator.base, base, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("temperature", [pytest.param(1.0, marks=pytest.mark.slow), 0.3])
@pytest.mark.parametrize("remainder", ["datum", "largest"])
def test_skewed_posterior(skewed, remainder, temperature):
    """Mean, sd, skewness and correlation against quadrature in two dimensions."""
    kernel = FlyMC(GaussianTaylorBound(remainder), 0.8 * temperature**0.5, resample=0.5, temperature=temperature)
    draws, run = last_draws(skewed, kernel, 300)
    assert_skewed_law(draws, temperature)
    assert run.stats["bound_violations"].max() == 0
    assert 0.05 < run.stats["bright"].mean() < 4.5


def test_few_data_are_bright_when_the_bound_is_tight():
    target = logistic(5_000, 4)

    def bright(bound):
        options = {"init": jnp.zeros(4), "num_steps": 600, "seed": 1}
        run = ewsg.sample(target, FlyMC(bound, 0.03, resample=0.2), **options)
        assert run.stats["bound_violations"].max() == 0
        return run.stats["bright"].mean()

    tight, loose = bright(LogisticBound()), bright(LogisticBound(jnp.full(4, 1.5)))
    assert tight < 0.001 * 5_000
    assert loose > 20 * tight


def test_hundred_thousand_data():
    """Both ways of saying how much is resampled; mean and sd near those of the posterior's Gaussian approximation."""
    target = logistic(100_000, 3)
    rows = np.asarray(target.data.arrays, np.float64)
    for resample, count in ((0.01, 1_000), (50, 50)):
        bound, _, prepared = LogisticBound().prepare(target)
        kernel = FlyMC(LogisticBound(), 0.01, resample=resample)
        run = ewsg.sample(target, kernel, init=bound.mode, num_chains=16, num_steps=1_200, discard=300, thin=1)
        weights = 0.25 / np.cosh(rows @ np.asarray(bound.mode, np.float64) / 2) ** 2
        sd = np.sqrt(np.diag(np.linalg.inv((rows * weights[:, None]).T @ rows)))
        assert np.all(np.abs(run.draws.mean((0, 1)) - bound.mode) < 0.5 * sd)
        np.testing.assert_allclose(run.draws.std((0, 1)), sd, rtol=0.25)
        assert run.stats["bright"].mean() < 20
        per_chain = (run.cost.datum_gradients - prepared.datum_gradients) / 16
        assert 100_000 + 1_200 * count <= per_chain < 100_000 + 1_200 * (count + 20)


def test_time_of_a_step_does_not_grow_with_the_data():
    """CPU time of a step at 10⁴ and at 10⁶ data, 40 of them resampled; one copy of the table takes 20 times that."""
    found = {}
    for n in (10_000, 1_000_000):
        sampler = ewsg.compose(logistic(n, 2), FlyMC(LogisticBound(jnp.zeros(2)), 1e-4, resample=40))
        keys = jax.random.split(jax.random.key(0), 2)
        state = jax.jit(jax.vmap(sampler.init))(keys, jnp.full((2, 2), 1e-3))

        @jax.jit
        def run(sampler, state, number, num_steps):
            def step(t, state):
                keys = jax.random.split(jax.random.fold_in(jax.random.key(1), number + t), 2)
                axes = type(state)(0, 0, None)
                return jax.vmap(sampler.step, (0, axes), (axes, 0))(keys, state)[0]

            return jax.lax.fori_loop(0, num_steps, step, state)

        state = jax.block_until_ready(run(sampler, state._replace(step=jnp.int32(0)), 0, 1))
        seconds = []
        for repeat in range(3):
            began = time.process_time()
            state = jax.block_until_ready(run(sampler, state, 1 + 2_000 * repeat, 2_000))
            seconds.append(time.process_time() - began)
        found[n] = min(seconds)
    assert found[1_000_000] < 10 * found[10_000], found


@pytest.mark.parametrize(("resample", "count"), [(0.07, 3), (5, 5), (1.0, 40)])
def test_cost_is_counted_by_hand(resample, count, monkeypatch):
    """The start, the resampled and the bright data; the passes of the mode search, counted where they are made."""
    passes = []
    for module, name in ((mode, "_expand"), (logistic_bound, "_sums")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, original=original: passes.append(1) or original(*args))
    target = logistic(40, 2)
    searching = ewsg.compose(target, FlyMC(LogisticBound(), 1.0))
    assert len(passes) >= 3
    assert searching.preparation_cost() == Cost(40 * len(passes))
    kernel = FlyMC(LogisticBound(jnp.full(2, 3.0)), 0.5, resample=resample)
    run = ewsg.sample(target, kernel, init=jnp.zeros(2), num_chains=3, num_steps=50, discard=0, thin=1)
    bright = round(run.stats["bright"].sum())
    assert bright > 300
    assert run.cost.datum_gradients == 40 + 3 * (40 + 50 * count) + bright
    assert set(run.stats) == {"acceptance", "bright", "bound_violations", "noise_ratio"}


def test_cost_of_preparing_the_normal_bound(skewed):
    assert ewsg.compose(skewed, FlyMC(GaussianTaylorBound(), 1.0)).preparation_cost() == Cost(2 * 5)
    assert ewsg.compose(skewed, FlyMC(GaussianTaylorBound(mode=(1.0, 0.0)), 1.0)).preparation_cost() == Cost(5)


@pytest.mark.parametrize("bound", [GaussianTaylorBound("largest"), GaussianTaylorBound(mode=(1.0, 0.3))], ids=str)
def test_resume_bit_for_bit(skewed, bound, tmp_path):
    options = {"init": START, "num_chains": 3, "discard": 0, "thin": 1, "seed": 4}
    kernel = FlyMC(bound, 0.7, resample=2, temperature=0.8)
    whole = ewsg.sample(skewed, kernel, num_steps=60, **options)
    ewsg.sample(skewed, kernel, num_steps=35, save_to=tmp_path / "run.npz", **options)
    again = ewsg.resume(tmp_path / "run.npz", skewed, num_steps=25)
    np.testing.assert_array_equal(again.draws, whole.draws)
    assert again.cost.datum_gradients == whole.cost.datum_gradients
    for name, values in whole.stats.items():
        np.testing.assert_array_equal(again.stats[name], values)


def test_compiled_equals_eager(skewed):
    def advance(sampler, key, positions):
        key_init, *step_keys = jax.random.split(key, 3)
        state = jax.vmap(sampler.init)(jax.random.split(key_init, len(positions)), positions)
        for step_key in step_keys:
            state, _ = jax.vmap(sampler.step)(jax.random.split(step_key, len(positions)), state)
        return state

    sampler = ewsg.compose(skewed, FlyMC(GaussianTaylorBound(), 0.8, resample=3, block_size=2))
    positions = jnp.broadcast_to(START, (300, 2))
    compiled = jax.jit(advance)(sampler, jax.random.key(1), positions)
    with jax.disable_jit():
        eager = advance(sampler, jax.random.key(1), positions)
    same = np.all(indicators(compiled) == indicators(eager), axis=1)
    same &= np.abs(compiled.phase.position - eager.phase.position).max(1) < 1e-3
    assert np.mean(~same) <= 0.01
    assert np.unique(compiled.phase.position[:, 0]).size > 100


def test_the_block_size_does_not_change_the_chain(skewed):
    runs = []
    for block_size in (2, 256):
        kernel = FlyMC(GaussianTaylorBound("largest"), 0.7, resample=2, block_size=block_size)
        runs.append(ewsg.sample(skewed, kernel, init=START, num_steps=100, num_chains=20))
    for run in runs[1:]:
        np.testing.assert_allclose(run.draws, runs[0].draws, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (100, 60), (100, 100), (300, 2)])
def test_table_against_sets(n, m):
    """Random switches of several chains, and of one alone, against plain indicators."""
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(3, n)) < 0.5
    tables = jax.vmap(lambda bright: Table.of(bright, 8))(jnp.asarray(z))
    switch = jax.jit(lambda table, indices, bright: table.switched(indices, bright))
    switch_all = jax.jit(jax.vmap(switch))
    for _ in range(40):
        indices = np.stack([rng.permutation(n)[:m] for _ in range(3)]).astype(np.int32)
        bright = rng.uniform(size=(3, m)) < rng.uniform()
        alone = switch(jax.tree.map(lambda leaf: leaf[1], tables), indices[1], bright[1])
        tables = switch_all(tables, indices, bright)
        for chain in range(3):
            z[chain, indices[chain]] = bright[chain]
        each = [jax.tree.map(lambda leaf, chain=chain: np.asarray(leaf[chain]), tables) for chain in range(3)]
        for chain, (order, place, num_bright) in [*enumerate(each), (1, alone)]:
            np.testing.assert_array_equal(np.asarray(place)[order[:n]], np.arange(n))
            np.testing.assert_array_equal(np.sort(order[:num_bright]), np.flatnonzero(z[chain]))


def test_exponential_variates(monkeypatch):
    """Mean and variance; and the smallest and largest values, which a float32 uniform alone could not give."""
    values = np.asarray(exponential(jax.random.key(0), (1_000_000,), jnp.float32), np.float64)
    assert_mean(values, 1.0)
    assert_mean(values**2, 2.0)
    assert_mean((values > 5).astype(float), np.exp(-5))
    eps = np.finfo(np.float32).eps
    for coarse, expected in ((0.0, eps / 4), (1 - eps, -np.log(0.75 * eps)), (0.5, np.log(2.0))):
        pair = jnp.array([coarse, 0.25], jnp.float32)
        monkeypatch.setattr(_random, "uniform", lambda *_, pair=pair: pair)
        assert exponential(jax.random.key(0), (), jnp.float32) == pytest.approx(expected, rel=1e-6)
    x = np.array([1e-12, 1e-6, 0.1, 3.0, 50.0, 1e4], np.float32)
    expected = [np.log(np.expm1(v)) if v < 500 else v for v in x.astype(np.float64)]
    np.testing.assert_allclose(log_expm1(jnp.asarray(x)), expected, rtol=1e-6)


# ---------------------------------------------------------------- bounds


def normal_data(n=40, seed=1):
    return np.exp(np.random.default_rng(seed).normal(size=n))


CASES = {
    "logistic": (lambda: logistic(60, 3), LogisticBound(), 3.0),
    "logistic, tangent elsewhere": (lambda: logistic(60, 3), LogisticBound(np.array([0.0, 4.0, -1.0])), 3.0),
    "datum": (lambda: ewsg.Target(log_likelihood, None, normal_data()), GaussianTaylorBound(), 1.0),
    "largest": (lambda: ewsg.Target(log_likelihood, None, normal_data()), GaussianTaylorBound("largest"), 1.0),
    "normal, elsewhere": (
        lambda: ewsg.Target(log_likelihood, None, normal_data()),
        GaussianTaylorBound(mode=(3.0, -0.5)),
        1.0,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_everywhere_and_touch_at_the_mode(name):
    """2,000 positions at all distances × all data, in float64; sums and gaps agree with the definition."""
    build, bound, scale = CASES[name]
    with jax.enable_x64(True):
        target = build()
        data = jax.tree.map(lambda leaf: leaf.astype(np.float64), target.data.arrays)
        bound, statistics, _ = bound.prepare(ewsg.Target(target.likelihood, None, data))
        mode = jnp.stack([jnp.asarray(entry) for entry in bound.mode])
        rng = np.random.default_rng(0)
        offsets = rng.normal(size=(2_000, mode.size)) * np.exp(rng.uniform(-9, 1, size=(2_000, 1)))
        points = jnp.concatenate([mode[None], mode[None] + scale * offsets])
        values = jax.vmap(lambda p: target.likelihood.values(p, data))(points)
        lower = jax.vmap(lambda p: bound.log_bounds(p, data))(points)
        gaps = jax.vmap(lambda p: bound.gap(p, data, target.likelihood).value)(points)
        sums = jax.vmap(lambda p: bound.log_bound_sum(p, statistics))(points)
        sizes = 1 + np.abs(values) + np.abs(lower)
        assert np.max((lower - values) / sizes) < 1e-14
        np.testing.assert_allclose(lower[0], values[0], rtol=1e-12, atol=1e-13)
        assert np.max(np.abs(gaps - (values - lower)) / sizes) < 1e-13
        totals = np.asarray(lower).sum(1)
        np.testing.assert_allclose(sums - sums[0], totals - totals[0], rtol=1e-9, atol=1e-9 * np.abs(totals).max())
        assert np.mean(gaps > 1e-3) > 0.1
        near = np.argmin(np.abs(np.linalg.norm(offsets, axis=1) - 1e-2)) + 1
        assert np.mean(gaps[near]) < 0.05
        one = bound.log_bound(points[near], jax.tree.map(lambda leaf: leaf[7], data))
        np.testing.assert_allclose(one, lower[near, 7], rtol=1e-12)


def test_normal_gap_keeps_its_digits():
    """In float32, where ℓ − log B would be all rounding error: gaps of 10⁻¹⁰ to 7 digits."""
    x = normal_data()
    target = ewsg.Target(log_likelihood, None, x.astype(np.float32))
    narrow = GaussianTaylorBound().prepare(target).bound
    point = np.array([x.mean() + 1e-3, np.log(x.std()) + 1e-3], np.float32)
    found = narrow.gap(jnp.asarray(point), target.data.arrays, target.likelihood).value
    with jax.enable_x64(True):
        mode = tuple(jnp.asarray(float(entry), jnp.float64) for entry in narrow.mode)
        wide = GaussianTaylorBound(mode=mode, largest=1.0)
        exact = np.asarray(wide.gap(jnp.asarray(point, np.float64), jnp.asarray(x), target.likelihood).value)
    assert 0 < np.median(exact[exact > 0]) < 1e-8
    np.testing.assert_allclose(found, exact, rtol=2e-3)


def test_the_bound_is_tangent_at_the_mode():
    target = logistic(300, 3)
    bound, _, cost = LogisticBound().prepare(target)
    assert cost.datum_gradients < 12 * 300
    assert np.max(np.abs(target.full_force(bound.mode))) < 0.1
    separable = ewsg.models.logistic(np.array([[1.0], [2.0], [-1.0]]), [1, 1, 0], prior_scale=50.0)
    bound = LogisticBound().prepare(separable).bound
    assert abs(float(separable.full_force(bound.mode)[0])) < 1e-3


class Lowered(AbstractBound):
    """exp(−½(x − θ)²) times e^{−drop}; by default right."""

    drop: float = 0.7
    slope: float = 1.0

    def prepare(self, target):
        x = target.data.arrays
        return Prepared(self, (float(x.size), jnp.sum(x)), Cost(0))

    def log_bound(self, params, datum):
        return -0.5 * (datum - params) ** 2 - self.drop

    def log_bound_sum(self, params, statistics):
        count, total = statistics
        return self.slope * params * total - 0.5 * count * params**2


class Reaching(Lowered):
    """Right only where |θ| < 4."""

    def log_bound(self, params, datum):
        return -0.5 * (datum - params) ** 2 - 0.7 + 2 * jnp.maximum(jnp.abs(params) - 4, 0)

    def log_bound_sum(self, params, statistics):
        count, _ = statistics
        return super().log_bound_sum(params, statistics) + 2 * count * jnp.maximum(jnp.abs(params) - 4, 0)


@pytest.fixture(scope="module")
def located():
    return ewsg.Target(lambda theta, x: -0.5 * (x - theta) ** 2, None, np.array([0.5, 1.0, 1.2, 2.0], np.float32))


def test_a_bound_of_ones_own(located):
    """θ ~ N(mean, 1/4), whatever the bound; half of the data (e^−0.7) are dark."""
    draws, run = last_draws(located, FlyMC(Lowered(), 0.8, resample=2), 100, init=jnp.array(0.0))
    assert_mean(draws.astype(np.float64), 1.175)
    assert_mean((draws.astype(np.float64) - 1.175) ** 2, 0.25)
    bright = run.stats["bright"][:, -1] / 4
    assert bright.mean() == pytest.approx(1 - np.exp(-0.7), abs=0.01)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (Lowered(drop=-0.25), "Lowered is not a lower bound.* exceeds log_likelihood by 0.25"),
        (Lowered(slope=1.1), "log_bound_sum changes by"),
        (Lowered(drop=float("nan")), "exceeds log_likelihood by nan"),
        (Reaching(), "Reaching is not a lower bound"),
    ],
    ids=str,
)
def test_an_invalid_bound_is_refused(located, bound, message):
    sampler = ewsg.compose(located, FlyMC(bound, 1.0))
    with pytest.raises(InputError, match=message):
        sampler.check(jnp.zeros(3))


def test_sample_refuses_an_invalid_bound(located):
    with pytest.raises(InputError, match="is not a lower bound"):
        ewsg.sample(located, FlyMC(Lowered(drop=-0.25), 1.0), init=jnp.array(0.0), num_steps=5)


def test_valid_bounds_pass_the_check(located, skewed):
    ewsg.compose(located, FlyMC(Lowered(), 1.0)).check(jnp.zeros(3))
    for remainder in ("datum", "largest"):
        ewsg.compose(skewed, FlyMC(GaussianTaylorBound(remainder), 0.5)).check(START[None])
    for n in (50, 20_000):
        target = logistic(n, 3)
        ewsg.compose(target, FlyMC(LogisticBound(), 2 / np.sqrt(n))).check(jnp.zeros((2, 3)))


def test_a_bound_for_another_likelihood_is_refused():
    """The normal density without its constant, and with a wrong scale."""
    data = normal_data().astype(np.float32)
    kernel = FlyMC(GaussianTaylorBound(), 0.1)
    start = jnp.array([[1.5, 0.7]])
    without = ewsg.Target(lambda p, x: -0.5 * ((x - p[0]) * jnp.exp(-p[1])) ** 2 - p[1], None, data)
    with pytest.raises(InputError, match=r"is for another likelihood: its gap differs .* by 0.919"):
        ewsg.compose(without, kernel).check(start)
    narrow = ewsg.Target(lambda p, x: log_likelihood(jnp.stack([p[0], p[1] - 0.1]), x), None, data)
    with pytest.raises(InputError, match="is not a lower bound"):
        ewsg.compose(narrow, kernel).check(start)


def test_violations_during_the_run_are_counted(located):
    """A bound that is wrong only far away, met by a chain that is there."""
    sampler = ewsg.compose(located, FlyMC(Reaching(), 0.01, resample=2))

    def violations(theta):
        state = sampler.init(jax.random.key(0), jnp.array(theta))
        _, info = sampler.step(jax.random.key(1), state)
        return info.estimate.stats["bound_violations"]

    assert violations(1.0) == 0
    assert violations(6.0) == 2  # no datum is bright there


def test_parameters_by_name_and_temperature_one_half():
    """The same chain with a dict in place of an array."""

    def by_name(params, x):
        return log_likelihood(jnp.stack([params["mu"], params["log_sigma"]]), x)

    kernel = FlyMC(GaussianTaylorBound(), 0.3, resample=3)
    data = normal_data(10).astype(np.float32)
    named = ewsg.sample(
        ewsg.Target(by_name, None, data), kernel, init={"mu": 1.5, "log_sigma": 0.4}, num_chains=200, num_steps=400
    )
    plain = ewsg.sample(
        ewsg.Target(log_likelihood, None, data), kernel, init=jnp.array([1.5, 0.4]), num_chains=200, num_steps=400
    )
    for name, column in (("mu", 0), ("log_sigma", 1)):
        assert named.draws[name].mean() == pytest.approx(plain.draws[..., column].mean(), abs=0.05)
        assert named.draws[name].std() == pytest.approx(plain.draws[..., column].std(), rel=0.1)


def test_points_without_density_are_rejected():
    """Where ℓ is NaN (θ > 1) no datum is bright, and no chain that has a bright datum goes there."""

    def with_hole(theta, z):
        return jnp.where(theta[0] > 1, jnp.nan, jax.nn.log_sigmoid(theta[0] * z[0]))

    target = ewsg.Target(with_hole, lambda t: -0.5 * t[0] ** 2, ROWS)
    sampler = ewsg.compose(target, FlyMC(LogisticBound(TANGENT), 1.0, resample=1.0))
    state = run_by_hand(sampler, lambda key: jax.random.normal(key, (1,)) - 1.0, 2_000, 50)
    theta, some = np.asarray(state.phase.position), indicators(state).any(axis=1)
    assert np.isfinite(theta).all()
    assert 0.2 < some.mean() < 0.95
    assert theta[some].max() <= 1 < theta.max()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: FlyMC(LogisticBound(), -1.0), "step_size must be positive"),
        (lambda: FlyMC(LogisticBound(), 1.0, resample=1.5), "must be a fraction"),
        (lambda: FlyMC(LogisticBound(), 1.0, resample=0), "resample must be positive"),
        (lambda: FlyMC(LogisticBound(), 1.0, block_size=0), "block_size must be a whole number"),
        (lambda: FlyMC("logistic", 1.0), "bound must be a lower bound of ewsg.kernels"),
        (lambda: FlyMC(LogisticBound(), 1.0, resampled=3), "did you mean 'resample'"),
        (lambda: GaussianTaylorBound("cubic"), "remainder of GaussianTaylorBound"),
        (lambda: GaussianTaylorBound(mode=(1.0,)), "must be \\(mu, log_sigma\\)"),
        (lambda: ewsg.compose(logistic(9, 2), FlyMC(LogisticBound(), 1.0, resample=10)), "more than the 9 data"),
        (lambda: ewsg.compose(logistic(9, 2), FlyMC(LogisticBound(jnp.ones(3)), 1.0)), "the data have 2 columns"),
        (lambda: ewsg.compose(logistic(9, 2), FlyMC(GaussianTaylorBound(), 1.0)), "not arrays of shape \\(9, 2\\)"),
        (lambda: LogisticBound().log_bound(jnp.ones(2), jnp.ones(2)), "is not prepared"),
        (lambda: ewsg.compose(logistic(9, 2), FlyMC(LogisticBound(), 1.0)).num_steps(100), "give num_steps="),
    ],
)
def test_bad_settings_are_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_equal_data_have_no_most_likely_scale():
    target = ewsg.Target(log_likelihood, None, np.ones(4, np.float32))
    with pytest.raises(InputError, match="all data are equal"):
        ewsg.compose(target, FlyMC(GaussianTaylorBound(), 1.0))


def test_float64_chains():
    with jax.enable_x64(True):
        target = ewsg.Target(log_likelihood, None, normal_data())
        run = ewsg.sample(target, FlyMC(GaussianTaylorBound(), 0.2), init=np.array([1.5, 0.4]), num_steps=20)
        assert run.draws.dtype == np.float64
        target = ewsg.models.logistic(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2)
        run = ewsg.sample(target, FlyMC(LogisticBound(), 0.2), init=np.zeros(2, np.float32), num_steps=20)
        assert run.draws.dtype == np.float32
