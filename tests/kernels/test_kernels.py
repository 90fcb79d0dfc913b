"""Random-walk Metropolis and NUTS in `ewsg.sample`: costs, resume, compiled = eager, refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from skewed import START

import ewsg
from ewsg._engine import loop
from ewsg.errors import InputError
from ewsg.kernels import NUTS, FlyMC, LogisticBound, RandomWalk, adapt_nuts
from ewsg.kernels.nuts import starting_points


def test_costs_are_counted_by_hand(skewed):
    """RandomWalk: n a step and n for the start. NUTS: n a leapfrog step and n for the start."""
    options = {"init": START, "num_chains": 3, "num_steps": 40, "discard": 0, "thin": 1}
    walk = ewsg.sample(skewed, RandomWalk(0.5), **options)
    assert walk.cost.datum_gradients == 3 * 5 * 41
    assert walk.cost.data_passes == 41
    nuts = ewsg.sample(skewed, NUTS(0.3, warmup_gradients=1234), **options)
    assert nuts.cost.datum_gradients == 1234 + 5 * (3 + int(nuts.stats["leapfrogs"].sum()))
    assert set(walk.stats) == {"acceptance", "noise_ratio"}
    assert set(nuts.stats) == {"acceptance", "leapfrogs", "divergent", "noise_ratio"}
    assert np.unique(nuts.stats["leapfrogs"]).size > 2


def test_gradients_of_nuts_are_those_evaluated():
    """The count against a call-back in the gradient itself, of one chain."""
    calls = []

    @jax.custom_vjp
    def density(p):
        return -0.5 * p**2

    def backward(p, cotangent):
        jax.debug.callback(lambda _: calls.append(1), p)
        return (-cotangent * p,)

    density.defvjp(lambda p: (density(p), p), backward)
    target = ewsg.Target(lambda p, x: -0.1 * x * p**2, density, jnp.ones(7))
    run = ewsg.sample(target, NUTS(0.2), init=jnp.array(0.3), num_chains=1, num_steps=50)
    jax.effects_barrier()
    assert run.cost.datum_gradients == 7 * len(calls)


def test_a_budget_is_kept_or_refused(skewed):
    options = {"init": START, "num_chains": 2, "discard": 0}
    assert ewsg.sample(skewed, RandomWalk(0.5), data_passes=20, **options).cost.data_passes == 20
    with pytest.raises(InputError, match="give num_steps="):
        ewsg.sample(skewed, NUTS(0.5), data_passes=20, **options)
    with pytest.raises(InputError, match="is less than one step"):
        ewsg.sample(skewed, RandomWalk(0.5), data_passes=1, **options)


@pytest.mark.parametrize("kernel", [RandomWalk(jnp.array([0.5, 0.2]), 0.7), NUTS(0.5)], ids=str)
def test_resume_bit_for_bit(skewed, kernel, tmp_path):
    options = {"init": START, "num_chains": 3, "discard": 0, "thin": 1, "seed": 4}
    whole = ewsg.sample(skewed, kernel, num_steps=60, **options)
    ewsg.sample(skewed, kernel, num_steps=35, save_to=tmp_path / "run.npz", **options)
    again = ewsg.resume(tmp_path / "run.npz", skewed, num_steps=25)
    np.testing.assert_array_equal(again.draws, whole.draws)
    assert again.cost.datum_gradients == whole.cost.datum_gradients
    for name, values in whole.stats.items():
        np.testing.assert_array_equal(again.stats[name], values)


def advance(sampler, key, positions, steps):
    chains = positions.shape[0]
    key_init, *step_keys = jax.random.split(key, steps + 1)
    state = jax.vmap(sampler.init)(jax.random.split(key_init, chains), positions)
    for step_key in step_keys:
        state, info = jax.vmap(sampler.step)(jax.random.split(step_key, chains), state)
    return state, info.estimate.cost.datum_gradients


@pytest.mark.slow
def test_compiled_equals_eager(skewed):
    """At 20 chains: 10,000 trajectories of NUTS, one operation at a time, would take many minutes."""
    chains, steps = 20, 1
    sampler = ewsg.compose(skewed, NUTS(0.4, max_depth=2))
    positions = jnp.broadcast_to(START, (chains, 2))
    compiled, _ = jax.jit(advance, static_argnums=3)(sampler, jax.random.key(1), positions, steps)
    with jax.disable_jit():
        eager, _ = advance(sampler, jax.random.key(1), positions, steps)
    differs = np.abs(np.asarray(compiled.phase.position) - np.asarray(eager.phase.position)).max(1) > 1e-3
    assert differs.mean() <= 5e-4
    assert np.unique(compiled.phase.position[:, 0]).size > chains // 2


@pytest.mark.parametrize("kernel", [RandomWalk(0.3), pytest.param(NUTS(0.3), marks=pytest.mark.slow)], ids=str)
def test_positions_are_pytrees_and_hold_their_dtype(kernel):
    def density(params, x):
        return -0.5 * (x - params["a"]) ** 2 - 0.5 * jnp.sum(params["b"] ** 2)

    target = ewsg.Target(density, None, jnp.arange(3.0))
    init = {"a": jnp.array(0.5), "b": jnp.ones((2, 2))}
    run = ewsg.sample(target, kernel, init=init, num_steps=400, num_chains=50)
    assert run.draws["b"].shape == (50, 200, 2, 2)
    assert run.draws["a"].mean() == pytest.approx(1.0, abs=0.15)
    assert run.draws["b"].std() == pytest.approx(3**-0.5, rel=0.1)
    with jax.enable_x64(True):
        for dtype in (np.float32, np.float64):
            narrow = jax.tree.map(lambda leaf, dtype=dtype: np.asarray(leaf, dtype), init)
            data = np.arange(3, dtype=dtype)
            run = ewsg.sample(ewsg.Target(density, None, data), kernel, init=narrow, num_steps=4)
            assert run.draws["a"].dtype == dtype


def test_nan_densities_are_rejected():
    """The density is NaN left of 0: a random walk never goes there."""
    target = ewsg.Target(lambda p, x: -x * p + jnp.sqrt(p), None, jnp.ones(2))
    run = ewsg.sample(target, RandomWalk(1.0), init=jnp.array(0.5), num_chains=200, num_steps=400)
    assert run.ok.all()
    assert run.draws.min() > 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RandomWalk(0.0), "step_size must be positive"),
        (lambda: RandomWalk(0.1, temperature=-1.0), "temperature must be positive"),
        (lambda: RandomWalk(stepsize=0.1), "did you mean 'step_size'"),
        (lambda: NUTS(0.1, max_depth=0), "max_depth must be a whole number of at least 1"),
        (lambda: NUTS(0.1, np.array([1.0, -1.0])), "inverse_mass_matrix must be positive"),
    ],
)
def test_bad_settings_are_refused(build, message):
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.float32
def test_what_does_not_fit_the_target_is_refused(skewed):
    for kernel in (RandomWalk(jnp.ones(3)), NUTS(0.1, jnp.ones(3))):
        with pytest.raises(InputError, match="there are 2 parameters"):
            ewsg.sample(skewed, kernel, init=START, num_steps=2)
    with pytest.raises(InputError, match="takes no integrator"):
        ewsg.compose(skewed, RandomWalk(0.1), ewsg.Overdamped(0.1))
    large = ewsg.Target(lambda p, x: -(p**2), None, jnp.zeros(2**23, jnp.int8))
    with pytest.raises(InputError, match="lower max_depth"):
        ewsg.compose(large, NUTS(0.1))
    sampler = ewsg.compose(skewed, RandomWalk(0.1))
    sampler.check(START[None])
    with pytest.raises(InputError, match="too few digits in float32"):
        sampler.check(jnp.array([[3e3, 0.0]]))
    with pytest.raises(InputError, match="is nan at the start of chain 1"):
        sampler.check(jnp.array([[0.0, 0.0], [0.0, -60.0]]))


@pytest.mark.parametrize("kernel", [RandomWalk(0.5), NUTS(0.5)], ids=str)
def test_one_trace_serves_all_settings(skewed, kernel):
    """Step size and temperature are traced, the start is no part of the shapes."""
    ewsg.sample(skewed, kernel, init=START, num_steps=10)
    compiled = loop.advance(None, False)._cache_size()
    ewsg.sample(skewed, type(kernel)(0.4, temperature=0.9), init=0.9 * START, num_steps=900, seed=1)
    assert loop.advance(None, False)._cache_size() == compiled


class Line(eqx.Module):
    """Parameters that can be called, as those of a network can."""

    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


def test_a_module_of_arrays_is_a_starting_point_of_nuts_and_no_function():
    target = ewsg.Target(lambda line, x: -0.5 * jnp.sum((line.weight - x) ** 2), None, jnp.zeros((3, 2)))
    keys = jax.random.split(jax.random.key(0), 4)
    assert starting_points(target, Line(jnp.ones(2)), keys, 1.0).weight.tolist() == [[1.0, 1.0]] * 4


def test_counts_may_be_integers_of_numpy(skewed):
    nuts = NUTS(0.5, max_depth=np.int64(3), warmup_gradients=np.int32(7))
    assert (type(nuts.max_depth), type(nuts.warmup_gradients)) == (int, int)
    fly = FlyMC(LogisticBound(), 0.1, resample=np.int64(3), block_size=np.int32(16))
    assert (fly.resample, type(fly.resample), type(fly.block_size)) == (3, int, int)
    assert FlyMC(LogisticBound(), 0.1, resample=np.float32(0.5)).resample == 0.5
    with pytest.raises(InputError, match="block_size must be a whole number"):
        FlyMC(LogisticBound(), 0.1, block_size=np.float64(2.5))
    lengths = {"num_chains": np.int64(2), "num_warmup": np.int64(20), "max_depth": np.int64(2)}
    assert type(adapt_nuts(skewed, START, **lengths).warmup_gradients) is int
