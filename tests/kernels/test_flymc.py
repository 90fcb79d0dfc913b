"""FlyMC: its cost, resume, compiled = eager, its random numbers, refusals."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fireflies import ROWS, TANGENT, assert_mean, indicators, logistic, normal_data, run_by_hand
from skewed import START, log_likelihood

import ewsg
from ewsg import _random
from ewsg.errors import InputError
from ewsg.interface import Cost
from ewsg.kernels import FlyMC, GaussianTaylorBound, LogisticBound
from ewsg.kernels.bounds import logistic as logistic_bound
from ewsg.kernels.flymc import exponential, log_expm1
from ewsg.target import newton


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
    for module, name, price in ((newton, "_expand", 3), (logistic_bound, "_sums", 1)):  # a Hessian is d = 2 derivatives
        original = getattr(module, name)
        counted = lambda *args, original=original, price=price: passes.append(price) or original(*args)  # noqa: E731
        monkeypatch.setattr(module, name, counted)
    target = logistic(40, 2)
    searching = ewsg.compose(target, FlyMC(LogisticBound(), 1.0))
    assert len(passes) >= 3
    assert searching.preparation_cost() == Cost(40 * sum(passes))
    kernel = FlyMC(LogisticBound(jnp.full(2, 3.0)), 0.5, resample=resample)
    run = ewsg.sample(target, kernel, init=jnp.zeros(2), num_chains=3, num_steps=50, discard=0, thin=1)
    bright = round(run.stats["bright"].sum())
    assert bright > 300
    assert run.cost.datum_gradients == 40 + 3 * (40 + 50 * count) + bright
    assert set(run.stats) == {"acceptance", "bright", "bound_violations", "noise_ratio"}


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


def test_the_block_size_does_not_change_the_chain(skewed):
    runs = []
    for block_size in (2, 256):
        kernel = FlyMC(GaussianTaylorBound("largest"), 0.7, resample=2, block_size=block_size)
        runs.append(ewsg.sample(skewed, kernel, init=START, num_steps=100, num_chains=20))
    for run in runs[1:]:
        np.testing.assert_allclose(run.draws, runs[0].draws, rtol=1e-4, atol=1e-5)


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


def test_float64_chains():
    with jax.enable_x64(True):
        target = ewsg.Target(log_likelihood, None, normal_data())
        run = ewsg.sample(target, FlyMC(GaussianTaylorBound(), 0.2), init=np.array([1.5, 0.4]), num_steps=20)
        assert run.draws.dtype == np.float64
        target = ewsg.models.logistic(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2)
        run = ewsg.sample(target, FlyMC(LogisticBound(), 0.2), init=np.zeros(2, np.float32), num_steps=20)
        assert run.draws.dtype == np.float32


def test_few_data_are_bright_when_the_bound_is_tight():
    target = logistic(5_000, 4)

    def bright(bound):
        options = {"init": jnp.zeros(4), "num_steps": 300, "seed": 1}
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
    for resample, count in ((0.001, 100), (50, 50)):
        bound, _, prepared = LogisticBound().prepare(target)
        kernel = FlyMC(LogisticBound(), 0.01, resample=resample)
        run = ewsg.sample(target, kernel, init=bound.mode, num_chains=16, num_steps=800, discard=200, thin=1)
        weights = 0.25 / np.cosh(rows @ np.asarray(bound.mode, np.float64) / 2) ** 2
        sd = np.sqrt(np.diag(np.linalg.inv((rows * weights[:, None]).T @ rows)))
        assert np.all(np.abs(run.draws.mean((0, 1)) - bound.mode) < 0.5 * sd)
        np.testing.assert_allclose(run.draws.std((0, 1)), sd, rtol=0.25)
        assert run.stats["bright"].mean() < 20
        per_chain = (run.cost.datum_gradients - prepared.datum_gradients) / 16
        assert 100_000 + 800 * count <= per_chain < 100_000 + 800 * (count + 20)
