"""The door of `sample` and the run behind it: what is refused at once, what is judged, and what is never lost."""

import os
import signal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import gaussian_log_likelihood

import ewsg
from ewsg import _driver, _interrupt, _random, _start
from ewsg.errors import InputError
from ewsg.estimators.base import AbstractMinibatch

METHOD = ewsg.Uniform(4), ewsg.Underdamped(step_size=0.01, friction=5.0)


def sample(target, **options):
    return ewsg.sample(target, *METHOD, **{"init": jnp.zeros(2), "num_chains": 2, "num_steps": 40, "thin": 4} | options)


def equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


# ---- divergence


def far_likelihood(theta, datum):
    return -0.5 * jnp.sum(((theta - datum) / 100.0) ** 2)


@pytest.mark.parametrize("integrator", [ewsg.BAOAB(20.0, 0.02), ewsg.Overdamped(100.0)], ids=["BAOAB", "Overdamped"])
def test_a_posterior_far_from_the_origin_is_no_divergence(integrator):
    """Centre 3·10⁶, posterior sd 100/√10, from a start at 0: the chain is hot on its way, and in order there."""
    target = ewsg.Target(far_likelihood, None, np.full((10, 2), 3e6, np.float32))
    run = ewsg.sample(target, ewsg.Full(), integrator, init=jnp.zeros(2), num_chains=50, num_steps=2000, discard=1000)
    assert run.ok.all()
    assert run.draws.mean() == pytest.approx(3e6, abs=8)
    assert run.draws.std() == pytest.approx(100 / np.sqrt(10), rel=0.1)


@pytest.mark.parametrize("discard", [0, 10])
def test_a_chain_that_is_recorded_on_its_way_is_no_divergence(discard):
    """5,000 sd from the start, it is 10⁷ times too hot at first."""
    target = ewsg.Target(lambda theta, x: -0.05 * jnp.sum((theta - x) ** 2), None, np.full((10, 2), 5e3, np.float32))
    run = ewsg.sample(
        target, ewsg.Full(), ewsg.BAOAB(0.2, 1.0), init=jnp.zeros(2), num_chains=4, num_steps=200, discard=discard
    )
    assert run.stats["kinetic_temperature"].max() > 1e5
    assert run.ok.all()
    assert run.draws[:, -1].mean() == pytest.approx(5e3, abs=3)


# ---- random numbers


def test_seeds_that_agree_modulo_2_32_differ(gaussian):
    runs = [sample(gaussian, seed=seed, rng=rng).draws for rng in ("fast", "threefry") for seed in (5, 2**32 + 5)]
    assert len({draws.tobytes() for draws in runs}) == 4
    words = jax.random.key_data(_random.make_key(2**32 + 5, "threefry"))
    np.testing.assert_array_equal(words, [1, 5])


@pytest.mark.parametrize("seed", [-1, 2**64, 2**70])
def test_seeds_out_of_range(gaussian, seed):
    with pytest.raises(InputError, match=r"from 0 to 2\^64"):
        sample(gaussian, seed=seed)


# ---- cost


def test_what_diagnostics_evaluate_is_counted(gaussian):
    """32 directional derivatives per probe: one for the first draw, one for every tenth step after it."""
    assert sample(gaussian, num_steps=50, discard=0, thin=1).cost.diagnostic_directional == 2 * 5 * 32
    assert sample(gaussian, num_steps=51, discard=0, thin=1).cost.diagnostic_directional == 2 * 6 * 32
    assert sample(gaussian, num_steps=60, discard=0, thin=20).cost.diagnostic_directional == 2 * 3 * 32
    full = ewsg.sample(gaussian, ewsg.Full(), METHOD[1], init=jnp.zeros(2), num_chains=2, num_steps=5)
    assert full.cost.diagnostic_directional == full.cost.datum_directional == 0


# ---- settings


@pytest.mark.untyped
def test_numpy_integers_are_settings_like_any_other(gaussian, tmp_path):
    plain = sample(gaussian, seed=3)
    run = sample(
        gaussian,
        num_chains=np.int64(2),
        seed=np.int64(3),
        num_steps=np.int32(40),
        thin=np.uint8(4),
        discard=np.float32(0.5),
        save_to=tmp_path / "run.npz",
    )
    equal(run.draws, plain.draws)
    assert run.settings["seed"] == 3
    equal(ewsg.load(tmp_path / "run.npz").draws, plain.draws)


def test_versions_name_the_library_itself(gaussian):
    assert sample(gaussian).settings["versions"]["ewsg"] == ewsg.__version__


def test_default_thinning_bounds_what_is_kept():
    """1,000 draws; of a network whose draw takes 10 MiB, 102; of one that takes 1 GiB, 10."""
    for draw_bytes, kept in ((100, 1000), (10 * 2**20, 102), (2**30, 10)):
        plan = _start.make_plan(1_000_000, 0.5, None, draw_bytes)
        assert plan.num_draws == pytest.approx(kept, rel=0.01)


def test_default_thinning_knows_what_a_draw_of_all_chains_takes(gaussian, monkeypatch):
    """Two chains of two float32 are 16 bytes: 20 draws fit into 320 bytes, 10 of float64."""
    monkeypatch.setattr(_start, "_DEFAULT_BYTES", 320)
    monkeypatch.setattr("ewsg.sampling.drive", lambda sampler, collector, plan, *rest: plan)
    plan = sample(gaussian, discard=0, thin=None)
    assert plan.num_draws == 320 // (2 * jnp.zeros(2).nbytes)


class Unprepared(AbstractMinibatch):
    batch_size: int = eqx.field(static=True, default=4)

    def prepare(self, target):
        raise AssertionError("work was done before the arguments were checked")

    def estimate(self, key, target, kick, state): ...

    def cost(self, num_data): ...

    def noise_factor(self, num_data): ...


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"num_chains": 0}, "num_chains must be"),
        ({"seed": "today"}, "seed must be"),
        ({"devices": 99}, "devices=99"),
        ({"init": None}, "sample needs init="),
        ({"init": jnp.zeros(2, int)}, "must be floating-point"),
        ({"init": {1: jnp.zeros(1), "a": jnp.zeros(1)}}, "keys JAX cannot sort"),
        ({"save_to": "no/such/folder/run.npz"}, "does not exist"),
        ({"discard": 1.0}, r"share from 0.0 to below 1.0"),
        ({"thin": 0}, "thin must be"),
        ({"num_steps": 5, "data_passes": 3}, "not both"),
        ({"divergence_limit": -1}, "divergence_limit must be"),
        ({"collect": "moments"}, r"ewsg.collect.Moments\(\), not 'moments'"),
        ({"collect": 3}, "collect must be None"),
        ({"collect": ewsg.collect.Moments}, r"write Moments\(\)"),
        ({"collect": lambda theta: theta @ jnp.zeros(3)}, "collect failed"),
        ({"collect": lambda theta: "text"}, "collect failed"),
        ({"collect": lambda theta: jax.random.key(0)}, "a file holds numbers only"),
        ({"num_chains": 10**9}, "num_chains=1,000,000,000 needs .* run fewer chains"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_arguments_are_checked_before_any_work(gaussian, options, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        ewsg.sample(gaussian, Unprepared(), METHOD[1], **{"init": jnp.zeros(2)} | options)
    assert "\n" not in str(caught.value)


def test_a_forked_process_is_refused(gaussian, monkeypatch):
    monkeypatch.setattr("ewsg._process._owner", os.getpid() + 1)
    with pytest.raises(InputError, match="forked"):
        sample(gaussian)


class Line(eqx.Module):
    """A module that can be called, as the parameters of a network can."""

    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


def test_a_module_of_arrays_is_a_starting_point_and_no_function(centres):
    parameters, _ = eqx.partition(Line(jnp.ones(2)), eqx.is_inexact_array)
    target = ewsg.Target(lambda line, centre: gaussian_log_likelihood(line.weight, centre), None, centres)
    run = ewsg.sample(target, *METHOD, init=parameters, num_chains=2, num_steps=2, discard=0)
    assert run.draws.weight.shape == (2, 2, 2)


def test_a_small_run_compiles_few_programs(centres):
    compiled = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    jax.clear_caches()
    target = ewsg.Target(lambda t, c: -0.3 * jnp.sum((t - c) ** 2), None, centres)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        sample(target, init=np.zeros(2, np.float32))
    finally:
        jax.monitoring.clear_event_listeners()
    assert 0 < len(compiled) <= 16


# ---- running moments


def test_moments_are_right_when_the_first_draw_is_a_thousand_sd_away():
    rng = np.random.default_rng(0)
    values = rng.normal(5.0, 1.0, size=(3000, 2)).astype(np.float32)
    values[0] = 1005.0
    collector = ewsg.collect.Moments()

    @jax.jit
    def moments(values):
        def update(k, summary):
            return collector.update(summary, values[k], k + 1)

        summary = jax.lax.fori_loop(0, len(values), update, collector.init(values[0]))
        return collector.result(summary, jnp.int32(len(values)))

    found = moments(values)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(found.mean, exact.mean(0), rtol=3e-7)
    np.testing.assert_allclose(found.variance, exact.var(0, ddof=1), rtol=1e-6)


def test_moments_of_too_few_draws_are_no_numbers():
    collector = ewsg.collect.Moments()
    empty = collector.init(jnp.zeros(2))
    assert np.isnan(collector.result(empty, jnp.int32(0)).mean).all()
    one = collector.update(empty, jnp.array([1.0, 2.0]), jnp.int32(1))
    found = collector.result(one, jnp.int32(1))
    assert found.mean.tolist() == [1.0, 2.0]
    assert np.isnan(found.variance).all()


def test_counts_beyond_half_precision():
    summary = ewsg.collect.Moments().init(jnp.ones(2, jnp.float16))
    summary = (summary[0], summary[1].add(jnp.full(2, 7e4 / 4, jnp.float16)))
    variance = ewsg.collect.Moments().result(summary, jnp.int32(70_001)).variance
    np.testing.assert_allclose(variance, 0.25, rtol=1e-2)


def test_collectors_may_keep_python_numbers(gaussian):
    assert (sample(gaussian, collect=lambda theta: 3.0).draws == 3).all()


# ---- interrupts


@pytest.fixture
def signal_after(monkeypatch):
    """Sends a signal after some calls of the loop, which take three steps each."""

    def arrange(number, calls):
        seen = []

        def quota(taken, seconds, old):
            seen.append(taken)
            if len(seen) == calls:
                signal.raise_signal(number)
            return 3

        monkeypatch.setattr(_driver, "_next_quota", quota)

    return arrange


def test_an_interrupt_in_the_discarded_part_loses_nothing(gaussian, tmp_path, signal_after, monkeypatch, capfd):
    """Resumed by fewer steps than are left of it, then to the end of the plan: bit for bit the whole run."""
    path = tmp_path / "run.npz"
    whole = sample(gaussian)
    signal_after(signal.SIGINT, 2)
    part = sample(gaussian, save_to=path)
    monkeypatch.undo()
    assert part.interrupted
    assert part.draws.shape == (2, 0, 2)
    assert part.settings["num_steps"] == 8 + 3 < part.settings["discard"]
    assert "press Ctrl-C again" in capfd.readouterr().err
    short = ewsg.resume(path, gaussian, num_steps=4, save_to=path)
    assert short.settings["num_steps"] == 15
    assert short.draws.shape == (2, 0, 2)
    resumed = ewsg.resume(path, gaussian, save_to=path)
    equal((resumed.draws, resumed.stats, resumed.checkpoint.carry), (whole.draws, whole.stats, whole.checkpoint.carry))
    with pytest.raises(InputError, match="complete"):
        ewsg.resume(path, gaussian)


def test_sigterm_saves_and_then_takes_its_course(gaussian, tmp_path, signal_after):
    path, ended = tmp_path / "run.npz", []
    signal_after(signal.SIGTERM, 3)
    previous = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(path.exists()))
    try:
        run = sample(gaussian, save_to=path)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert ended == [True]
    assert run.interrupted
    assert ewsg.load(path).settings["num_steps"] == run.settings["num_steps"] == 8 + 2 * 3


def test_a_second_sigterm_does_not_disturb_the_save(capfd):
    ended = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    try:
        with _interrupt.deferred(terminate=True) as stop:
            for _ in range(3):
                signal.raise_signal(signal.SIGTERM)
            assert stop()
            assert ended == []
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert ended == [signal.SIGTERM]
    assert capfd.readouterr().err.count("told to end") == 1


def test_a_handler_that_was_not_set_from_python(monkeypatch):
    set_handler = signal.signal
    monkeypatch.setattr(_interrupt.signal, "signal", lambda number, handler: set_handler(number, handler) and None)
    try:
        with _interrupt.deferred() as stop:
            assert not stop()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    finally:
        set_handler(signal.SIGINT, signal.default_int_handler)


def test_steps_beyond_what_can_be_counted(gaussian, tmp_path):
    path = tmp_path / "run.npz"
    sample(gaussian, save_to=path)
    with pytest.raises(InputError, match="more than the 2,147,483,647"):
        ewsg.resume(path, gaussian, num_steps=2**31 - 40)
    with pytest.raises(InputError, match="start a new run"):
        sample(gaussian, num_steps=2**31)


# ---- saving


def test_a_full_disk_costs_a_warning_and_not_the_run(gaussian, tmp_path, monkeypatch):
    whole = sample(gaussian)

    def full(run, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ewsg.Run, "save", full)
    with pytest.warns(RuntimeWarning, match="could not be saved to .*run.npz .*No space left"):
        run = sample(gaussian, save_to=tmp_path / "run.npz")
    equal(run.draws, whole.draws)


@pytest.mark.untyped
def test_slow_saves_are_rare(monkeypatch):
    """A save of ten seconds is followed by 200 seconds without one; a quick one by a minute."""
    now, saves = [0.0], []

    class SlowRun:
        def save(self, path):
            saves.append(now[0])
            now[0] += 10.0

    monkeypatch.setattr(_driver.time, "perf_counter", lambda: now[0])
    saver = _driver._Saver("run.npz")
    while now[0] < 600:
        now[0] += 1
        saver.now_and_then(SlowRun)
    assert saves == [60, 270, 480]
