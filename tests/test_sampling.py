"""`ewsg.sample`: what is kept, counted, compiled, resumed and frozen."""

import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg._core.component import check_choice
from ewsg._engine import driver, plan
from ewsg.errors import UnknownOption
from ewsg.integrators.base import AbstractIntegrator
from ewsg.result import chains as running

UNDERDAMPED = ewsg.Underdamped(step_size=0.01, friction=5.0)


def run(target, estimator=None, integrator=UNDERDAMPED, **options):
    settings = {"init": jnp.zeros(2), "num_chains": 3, "num_steps": 60, "discard": 0, "thin": 1} | options
    return ewsg.sample(target, estimator or ewsg.Uniform(4), integrator, **settings)


def test_loop_equals_a_loop_of_ones_own(gaussian):
    """The draws are those of init and step called by hand with the documented keys."""
    found = run(gaussian, num_chains=2, num_steps=7, thin=3, discard=1, seed=11, rng="threefry")
    sampler = ewsg.compose(gaussian, ewsg.Uniform(4), UNDERDAMPED)
    for chain in range(2):
        own = jax.random.fold_in(jax.random.key(11), chain)
        state = sampler.init(jax.random.fold_in(own, 1), jnp.zeros(2))
        kept = []
        for step in range(7):
            state, _ = sampler.step(jax.random.fold_in(jax.random.fold_in(own, 2), step), state)
            if step + 1 > 1 and (step + 1 - 1) % 3 == 0:
                kept.append(state.phase.position)
        np.testing.assert_allclose(found.draws[chain], np.stack(kept), rtol=1e-5, atol=1e-7)


def test_thinning_discarding_and_chunking_do_not_change_the_chain(gaussian, monkeypatch):
    every = run(gaussian)
    thinned = run(gaussian, thin=7, discard=11)
    np.testing.assert_array_equal(thinned.draws, every.draws[:, 11 + 6 :: 7])
    monkeypatch.setattr(plan, "_MOST_DRAWS_PER_CALL", 5)
    monkeypatch.setattr(driver, "next_quota", lambda taken, seconds, quota: 3)
    chunked = run(gaussian, thin=7, discard=11)
    np.testing.assert_array_equal(chunked.draws, thinned.draws)
    for name, values in thinned.stats.items():
        np.testing.assert_array_equal(chunked.stats[name], values)


def test_chunking_does_not_change_which_chains_fail(gaussian, monkeypatch):
    """With a limit that chains cross and come back from: when they are looked at is the plan's, not the clock's."""
    options = {"num_chains": 64, "num_steps": 200, "discard": 70, "thin": 65, "divergence_limit": 1e-9}
    monkeypatch.setattr(running, "HOT_RATIO", 2.0)
    whole = run(gaussian, **options)
    assert 5 < np.sum(whole.status == "diverged") < 60
    for quota in (1, 7):
        monkeypatch.setattr(driver, "next_quota", lambda taken, seconds, _, quota=quota: quota)
        cut = run(gaussian, **options)
        np.testing.assert_array_equal(cut.status, whole.status)
        np.testing.assert_array_equal(cut.draws, whole.draws)
        jax.tree.map(np.testing.assert_array_equal, cut.stats, whole.stats)


def test_stats_are_means_over_the_steps_between_draws(gaussian):
    fine, coarse = run(gaussian, thin=1), run(gaussian, thin=20)
    for name in ("kinetic_temperature", "configurational_temperature"):
        means = fine.stats[name].reshape(3, 3, 20).mean(2)
        np.testing.assert_allclose(coarse.stats[name], means, rtol=1e-4, atol=1e-5)
    assert run(gaussian, ewsg.Exponential(2, 3), thin=30).stats["acceptance"].min() > 0


def test_chains_differ_and_do_not_depend_on_their_number(gaussian):
    few, many = run(gaussian, num_chains=2), run(gaussian, num_chains=5)
    np.testing.assert_array_equal(few.draws, many.draws[:2])
    assert np.unique(many.draws[:, -1], axis=0).shape[0] == 5
    assert not np.array_equal(few.draws, run(gaussian, num_chains=2, seed=1).draws)
    np.testing.assert_array_equal(
        run(gaussian, num_chains=2, rng="threefry").draws, run(gaussian, num_chains=2, seed=jax.random.key(0)).draws
    )


def test_init_by_a_function_of_a_key(gaussian):
    found = run(gaussian, init=lambda key: 5 + jax.random.normal(key, (2,)), num_chains=400, num_steps=1)
    assert found.draws.mean() == pytest.approx(5.0, abs=0.2)
    assert found.draws.std() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(
    ("estimator", "per_step"),
    [
        (ewsg.Full(), 50),
        (ewsg.Uniform(7, replace=False), 7),
        (ewsg.Reshuffled(7), 7),
        (ewsg.Exponential(3, 4, restart=False), 15),
        (ewsg.Exponential(1, exact=True), 50),
    ],
    ids=str,
)
def test_cost_is_counted_by_hand(gaussian, estimator, per_step):
    found = run(gaussian, estimator, num_steps=None, data_passes=3)
    steps = 150 // per_step
    assert found.settings["num_steps"] == steps
    assert found.cost.datum_gradients == 3 * steps * per_step
    assert found.cost.data_passes == steps * per_step / 50 <= 3
    assert found.cost.seconds > 0


def test_one_compilation_serves_all_settings_of_a_shape(gaussian):
    traces = []

    class Counted(ewsg.estimators.AbstractEstimator):
        batch_size: int = 4

        def estimate(self, key, target, kick, state):
            traces.append(1)
            return ewsg.Uniform(4).estimate(key, target, kick, state)

        def cost(self, num_data):
            return ewsg.Uniform(4).cost(num_data)

        def noise_factor(self, num_data):
            return 0.25

    run(gaussian, Counted())
    after_first = len(traces)
    for h, gamma, temperature, steps, thin in ((0.02, 3.0, 0.5, 40, 2), (0.005, 9.0, 1.0, 5000, 3)):
        integrator = ewsg.Underdamped(step_size=h, friction=gamma, temperature=temperature)
        run(gaussian, Counted(), integrator, num_steps=steps, thin=thin, seed=3, init=jnp.ones(2))
    assert len(traces) == after_first
    assert after_first <= 2  # one for the shapes of the stats, one for the loop


def test_step_size_schedules(gaussian):
    """Overdamped with a schedule moves by √(2 h_t T) noise plus h_t force at step t."""
    schedule = ewsg.schedules.Polynomial(initial=0.01, delay=2.0, power=1.0)
    found = run(gaussian, ewsg.Full(), ewsg.Overdamped(schedule), num_chains=4000, num_steps=2)
    h0, h1 = 0.01, 0.01 / 1.5
    variance = 2 * h0 * (1 - 50 * h1) ** 2 + 2 * h1
    assert found.draws[:, 1].var(0) == pytest.approx(variance, rel=0.1)
    by_hand = ewsg.Overdamped(lambda t: 0.01 / (1 + t.astype(float) / 2.0))
    same = run(gaussian, ewsg.Full(), by_hand, num_chains=4000, num_steps=2)
    np.testing.assert_allclose(found.draws, same.draws, rtol=1e-5, atol=1e-6)


def test_reshuffled_visits_every_datum_once_an_epoch(gaussian):
    sampler = ewsg.compose(gaussian, ewsg.Reshuffled(7), UNDERDAMPED)
    state = sampler.init(jax.random.key(0), jnp.zeros(2))
    step, seen = jax.jit(sampler.step), []
    for t in range(14):
        state, info = step(jax.random.key(t), state)
        seen.append(np.asarray(info.estimate.indices))
    first, second = np.concatenate(seen[:7]), np.concatenate(seen[7:])
    assert len(set(first)) == len(set(second)) == 49
    assert not np.array_equal(first, second)


def test_collect_keeps_a_function_of_the_draws(gaussian):
    whole = run(gaussian)
    part = run(gaussian, collect=lambda theta: {"norm": jnp.sum(theta**2)})
    np.testing.assert_allclose(part.draws["norm"], (whole.draws**2).sum(-1), rtol=1e-5)


def test_collect_moments_keeps_no_draws(gaussian):
    whole = run(gaussian, num_steps=500, discard=100, thin=2)
    found = run(gaussian, num_steps=500, discard=100, thin=2, collect=ewsg.collect.Moments())
    assert jax.tree.leaves(found.draws) == []
    np.testing.assert_allclose(found.collected.mean, whole.draws.mean(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.collected.variance, whole.draws.var(1, ddof=1), rtol=1e-3)


def test_diverging_chain_is_frozen_named_and_kept_out(gaussian):
    """h·λ_max = 12.5 friction: Euler–Maruyama must explode; the summary names the condition and how far off it is."""
    found = run(gaussian, integrator=ewsg.Underdamped(step_size=0.5, friction=2.0), num_steps=500)
    assert set(found.status) == {"diverged"}
    assert np.isnan(found.draws[:, -1]).all()
    text = str(found.summary())
    assert "3 of 3 chains diverged" in text
    assert "step_size · λ_max < friction" in text
    assert "12 times" in text or "13 times" in text


def test_chains_of_an_integrator_without_a_known_limit_fail_with_a_sentence(gaussian, monkeypatch):
    """A user's integrator need not say when it is stable: its failed run is still a result."""
    monkeypatch.setattr(ewsg.Underdamped, "stability", AbstractIntegrator.stability)
    found = run(gaussian, integrator=ewsg.Underdamped(step_size=0.5, friction=2.0), num_steps=300)
    assert not found.ok.any()
    assert "Lower the step size" in str(found.summary())


def test_one_bad_chain_does_not_mix_into_results(centres):
    """A likelihood with a hole that only the third chain has to cross."""

    def log_likelihood(theta, centre):
        hole = (theta[0] > 20.0) & (theta[0] < 40.0)
        return gaussian_log_likelihood(theta, centre) + jnp.sqrt(jnp.where(hole, -theta[0], 1.0))

    target = ewsg.Target(log_likelihood, None, centres)
    starts = jnp.array([[0.0, 0.0], [0.1, 0.0], [45.0, 0.0]])
    keys = ewsg._random.streams.chain_keys(jax.random.key(0), 3).init
    words = [np.asarray(jax.random.key_data(key)) for key in keys]

    def init(key):
        data = jax.random.key_data(key)
        chosen = jnp.array([jnp.all(data == word) for word in words])
        return starts[jnp.argmax(chosen)]

    found = run(
        target,
        init=init,
        integrator=ewsg.Overdamped(step_size=1e-3),
        num_steps=2000,
        collect=None,
        seed=jax.random.key(0),
    )
    assert list(found.status) == ["ok", "ok", "nonfinite"]
    assert np.isfinite(found.draws[:2]).all()
    assert np.isnan(found.draws[2, -1]).all()
    table = found.summary()
    assert np.all(np.abs(table.parameters["mean"]) < 1)
    assert "became NaN" in str(table)
    assert found.to_arviz().posterior["theta"].shape[0] == 2


def test_interrupt_returns_a_valid_partial_run(gaussian, tmp_path, monkeypatch):
    """Ctrl-C in the middle of the sixth chunk: that chunk is finished, and what there is comes back."""
    chunks = []

    def interrupting_quota(taken, seconds, quota):
        chunks.append(taken)
        if len(chunks) == 6:
            signal.raise_signal(signal.SIGINT)
        return 100

    monkeypatch.setattr(driver, "next_quota", interrupting_quota)
    found = run(gaussian, num_steps=2_000_000_000, thin=40_000_000, save_to=tmp_path / "run.npz")
    assert found.settings["interrupted"]
    assert found.settings["num_steps"] == sum(chunks) == 8 + 5 * 100
    assert found.ok.all()
    assert found.cost.datum_gradients == 3 * 4 * sum(chunks)
    assert found.draws.shape[1] == 0
    assert "interrupted" in str(found.summary())
    again = ewsg.resume(tmp_path / "run.npz", gaussian, num_steps=10)
    assert again.settings["num_steps"] == found.settings["num_steps"] + 10


MEMORY_SCRIPT = """
import re, sys
import jax, jax.numpy as jnp, numpy as np, ewsg
steps = int(sys.argv[1])
target = ewsg.Target(lambda t, c: -0.5 * jnp.sum((t - c) ** 2), None, np.random.default_rng(0).normal(size=(50, 2)))
run = ewsg.sample(target, ewsg.Exponential(1, 1), ewsg.Underdamped(0.05, 10.0), init=jnp.zeros(2),
                  num_chains=10_000, num_steps=steps, discard=0, thin=steps)
assert run.draws.shape == (10_000, 1, 2)
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 2**10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, for the peak of this process alone")
def test_memory_stays_small_and_does_not_grow_with_steps():
    def peak_mib(steps):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY_SCRIPT, str(steps)], capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    short, long = peak_mib(150), peak_mib(1500)
    assert long < 1024
    assert long < short + 40


def test_misspelt_options_are_named_with_the_nearest(gaussian, tmp_path):
    """Seen before: `resume` gave Python's own TypeError, without a suggestion."""
    with pytest.raises(UnknownOption, match="unknown option of sample 'num_chain'; did you mean 'num_chains'"):
        ewsg.sample(gaussian, ewsg.Full(), ewsg.BAOAB(0.1, 1.0), init=jnp.zeros(2), num_chain=2)
    with pytest.raises(UnknownOption, match="unknown option of resume 'data_pass'; did you mean 'data_passes'"):
        ewsg.resume(tmp_path / "missing.npz", gaussian, data_pass=1)


def test_an_array_is_no_name():
    """Seen before: NumPy's own words, of an ambiguous truth value."""
    with pytest.raises(UnknownOption, match="units of BAOAB"):
        check_choice("BAOAB", "units", np.array(["sum", "mean"]), ("sum", "mean"))
