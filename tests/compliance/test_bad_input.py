"""Bad input: one clear sentence, before anything is compiled, and nothing written."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gaussian import gaussian_log_likelihood

import ewsg
from ewsg.errors import InputError, UnknownOption

X = np.zeros((5, 2), np.float32)
UNIFORM = ewsg.Uniform(2)
UNDERDAMPED = ewsg.Underdamped(step_size=0.01, friction=5.0)


def target(log_likelihood=gaussian_log_likelihood, log_prior=None, data=X):
    return ewsg.Target(log_likelihood, log_prior, data)


def sample(the_target=None, estimator=UNIFORM, integrator=UNDERDAMPED, **options):
    options = {"init": jnp.zeros(2), "num_steps": 4} | options
    return ewsg.sample(the_target or target(), estimator, integrator, **options)


def with_hole(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


CASES = {
    "empty data": (lambda: target(data=np.zeros((0, 2))), "data has no rows"),
    "no arrays": (lambda: target(data={}), "data is empty"),
    "a scalar": (lambda: target(data=(X, np.float32(1))), r"data\[1\] is a scalar"),
    "text": (lambda: target(data=np.array(["a", "b"])), "must be numbers"),
    "axes that disagree": (lambda: target(data={"x": X, "y": np.zeros(4)}), r"disagree .*x.*: 5, .*y.*: 4"),
    "NaN": (lambda: target(data=with_hole(np.nan)), "1 NaN or infinite entries"),
    "inf": (lambda: target(data=with_hole(np.inf)), "1 NaN or infinite entries"),
    "not a function": (lambda: target(3.0), "log_likelihood must be a function"),
    "vector likelihood": (lambda: sample(target(lambda t, x: t - x)), r"one real scalar, not shape \(2,\)"),
    "tuple likelihood": (lambda: sample(target(lambda t, x: (t[0], x[0]))), "one real scalar"),
    "likelihood that raises": (lambda: sample(target(lambda t, x: t["a"])), "log_likelihood.* failed"),
    "vector prior": (lambda: sample(target(log_prior=lambda t: t)), r"log_prior.* one real scalar, not shape \(2,\)"),
    "integer parameters": (lambda: sample(init=jnp.zeros(2, int)), "must be floating-point"),
    "Python integer": (lambda: sample(init={"a": 0, "b": jnp.zeros(2)}), r"init\['a'\].* floating-point"),
    "text parameters": (lambda: sample(init="zeros"), "must be floating-point"),
    "no parameters": (lambda: sample(init={}), "no parameters"),
    "NaN parameters": (lambda: sample(init=jnp.array([jnp.nan, 0.0])), "NaN or infinite entries"),
    "init that raises": (lambda: sample(init=lambda key: 1 / 0), r"init\(key\) failed"),
    "infinite prior": (
        lambda: sample(target(log_prior=lambda t: jnp.where(t[0] > 0, 0.0, -jnp.inf))),
        "initial potential is not finite: log_prior is -inf",
    ),
    "NaN likelihood": (
        lambda: sample(target(lambda t, x: jnp.log(t[0] - 1.0 + x[0]))),
        "initial potential is not finite: log_likelihood is nan",
    ),
    "batch_size 0": (lambda: ewsg.Uniform(0), "batch_size must be a whole number of at least 1"),
    "batch_size 2.5": (lambda: ewsg.Exponential(2.5), "batch_size must be a whole number"),
    "batch larger than n": (
        lambda: sample(estimator=ewsg.Uniform(6, replace=False)),
        "batch_size 6 is larger than the number of data 5",
    ),
    "reshuffled batch larger than n": (lambda: sample(estimator=ewsg.Reshuffled(6)), "larger than the number of data"),
    "negative chain": (lambda: ewsg.Exponential(1, -1), "chain_length must be a whole number"),
    "too many to enumerate": (
        lambda: sample(estimator=ewsg.Exponential(4, exact=True), the_target=target(data=np.zeros((50, 2)))),
        "would enumerate more than",
    ),
    "negative step": (lambda: ewsg.Underdamped(step_size=-0.1, friction=1.0), "step_size must be positive"),
    "NaN step": (lambda: ewsg.Overdamped(step_size=float("nan")), "step_size must be positive and finite"),
    "text step": (lambda: ewsg.Overdamped(step_size="small"), "step_size must be a number"),
    "zero friction": (lambda: ewsg.Underdamped(step_size=0.1, friction=0.0), "friction must be positive"),
    "zero temperature": (lambda: ewsg.Overdamped(0.1, temperature=0.0), "temperature must be positive"),
    "no momentum": (
        lambda: sample(estimator=ewsg.Exponential(1), integrator=ewsg.Overdamped(1e-3)),
        "needs a momentum, but this integrator has none",
    ),
    "noise with momentum": (lambda: sample(estimator=ewsg.Exponential(1, x="noise")), "is for Overdamped"),
    "an integrator for an estimator": (lambda: sample(estimator=UNDERDAMPED), "estimator must be an ewsg estimator"),
    "no integrator": (lambda: sample(integrator=None), "integrator must be an ewsg integrator"),
    "a recipe and an integrator": (lambda: sample(estimator=ewsg.recipes.sgld(1, 0.1)), "either a recipe or"),
    "not a target": (lambda: sample(the_target="the data"), "target must be an ewsg target"),
    "both lengths": (lambda: sample(data_passes=3), "not both"),
    "no steps": (lambda: sample(num_steps=0), "num_steps must be a whole number of at least 1"),
    "too small a budget": (
        lambda: sample(estimator=ewsg.Full(), num_steps=None, data_passes=0.5),
        "is less than one step",
    ),
    "discard all": (lambda: sample(discard=4), "throws away all of the 4 steps"),
    "discard negative": (lambda: sample(discard=-0.1), "discard=-0.1 must be a share"),
    "thin too much": (lambda: sample(thin=5), "keeps no draw"),
    "no chains": (lambda: sample(num_chains=0), "num_chains must be a whole number"),
    "bad seed": (lambda: sample(seed="today"), "seed must be a whole number or a typed key"),
    "more draws than memory": (
        lambda: sample(num_steps=2**30, thin=1, num_chains=100, discard=0),
        "raise thin=, or keep less",
    ),
    "a path as data": (lambda: target(data=Path("x.csv")), "not a path: read the file first"),
    "a file name as data": (lambda: target(data="x.csv"), "not text: read a file first"),
    "a target in parts": (
        lambda: sample(the_target=(gaussian_log_likelihood, None, X)),
        r"not \(<func.*\.\.\.: make one",
    ),
    "several keys": (
        lambda: sample(seed=jax.random.split(jax.random.key(0))),
        "seed must be a whole number or a typed key",
    ),
    "a huge number": (lambda: ewsg.Overdamped(10**400), r"must be a number, not 10{99}\.\.\.$"),
    "an axis of chains": (
        lambda: sample(ewsg.models.logistic(X, [0, 1, 0, 1, 1]), init=jnp.zeros((4, 2))),
        r"shapes at the start: params \(4, 2\); a start has no axis of chains",
    ),
    "if": (lambda: sample(target(lambda t, x: t[0] if t[0] > 0 else x[0])), "use jnp.where in place of if"),
    "NumPy": (lambda: sample(target(lambda t, x: np.asarray(t)[0])), "use jax.numpy in place of NumPy"),
    "a missing key": (lambda: sample(collect=lambda t: {}["w"]), "collect failed .*: KeyError 'w'"),
    "collecting nothing": (
        lambda: sample(collect=lambda t: None),
        "collect returns None, so that no draw would be kept",
    ),
    "keys of what is collected": (
        lambda: sample(collect=lambda t: {1: t, "a": t}),
        "what collect returns has a dict whose keys",
    ),
    "a function of the kick that fails": (
        lambda: sample(estimator=ewsg.Exponential(2, x=lambda kick: kick.nothing)),
        "the first step failed, in the estimator or the integrator: 'Kick' object has no attribute 'nothing'",
    ),
    "ksd of a target": (lambda: ewsg.diagnostics.ksd(target(), X[None]), r"write ksd\(draws, target\)"),
    "unwritable path": (lambda: sample(save_to="no/such/folder/run.npz"), "folder no/such/folder does not exist"),
    "a folder": (lambda: sample(save_to="."), "is a folder"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_clear_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act, sentence = CASES[case]
    with pytest.raises(InputError, match=sentence) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("act", "suggestion"),
    [
        (lambda: ewsg.Exponential(1, x="momentun"), "momentum"),
        (lambda: ewsg.Exponential(1, chainlength=3), "chain_length"),
        (lambda: ewsg.Underdamped(0.1, 1.0, tempertaure=2.0), "temperature"),
        (lambda: ewsg.Underdamped(0.1, 1.0, units="means"), "mean"),
        (lambda: sample(num_chain=2), "num_chains"),
        (lambda: sample(burnin=2, discrad=3), None),
    ],
)
def test_unknown_options_suggest_the_nearest(act, suggestion):
    with pytest.raises(UnknownOption, match="unknown") as caught:
        act()
    assert isinstance(caught.value, TypeError)
    if suggestion:
        assert f"did you mean {suggestion!r}?" in str(caught.value)


def test_a_sweep_over_step_sizes_is_a_vmap():
    """Settings are leaves: they may be traced, and checks let tracers pass."""
    the_target = target(data=np.ones((5, 2), np.float32))

    def last(step_size):
        sampler = ewsg.compose(the_target, ewsg.Full(), ewsg.Overdamped(step_size))
        state = sampler.init(jax.random.key(0), jnp.zeros(2))
        return sampler.step(jax.random.key(1), state)[0].phase.position

    swept = jax.vmap(last)(jnp.array([0.01, 0.04]))
    np.testing.assert_allclose(swept[1], last(0.04), rtol=1e-6)


def test_unwritable_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(InputError, match="no permission"):
        sample(save_to=tmp_path / "run.npz")
