"""Planned runs, from a target alone: the posterior, its verdict, its cost; plans; going on; bad input."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.planning import planner as planners, rule
from ewsg.planning.goal import Goal
from ewsg.planning.ground import num_probes
from ewsg.planning.sampling import sample_planned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3)) @ np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [0.0, 0.0, 20.0]])
Y = X @ np.array([0.5, -1.0, 0.02]) + 0.7 * RNG.normal(size=400)
COV = np.linalg.inv(X.T @ X / 0.49 + np.eye(3) / 6.25)
MEAN, SD = COV @ X.T @ Y / 0.49, np.sqrt(np.diag(COV))


def linear():
    return ewsg.models.linear(X, Y, noise_scale=0.7)


def logistic(rows=800):
    x = np.random.default_rng(1).normal(size=(rows, 3))
    return ewsg.models.logistic(x, np.random.default_rng(2).random(rows) < 1 / (1 + np.exp(-x[:, 0] + 1)))


@pytest.fixture(scope="module")
def run():
    return ewsg.sample(linear(), progress=False)


def test_nothing_is_set_and_the_posterior_is_exact(run):
    assert run.verdict.reached
    assert run.verdict.accuracy == 0.05
    draws = run.draws.reshape(-1, 3)
    np.testing.assert_allclose((draws.mean(0) - MEAN) / SD, 0, atol=0.07)
    np.testing.assert_allclose(draws.std(0) / SD, 1, atol=0.07)
    assert run.verdict.mcse <= 0.025
    assert "Accuracy 0.05 reached" in str(run.verdict)
    assert str(run.verdict) in str(run.summary())


def test_every_datum_gradient_is_counted(run):
    """The chains' own steps, and the plan: search, leverage, noise, pilots."""
    estimator = run.settings["estimator"]
    pairs = estimator
    while "inner" in pairs:
        pairs = pairs["inner"]
    per_step = {1: 2, 2: 4}[estimator["order"]] * 2 * pairs["batch_size"] if "order" in estimator else 400
    own = 32 * run.settings["num_steps"] * per_step
    assert run.cost.datum_gradients == own + run.cost.planning_gradients
    assert run.cost.planning_gradients > 3 * 400
    assert run.cost.data_passes == pytest.approx(run.cost.datum_gradients / 400 / 32)
    assert run.cost.planning_seconds > 0
    assert run.summary().diagnostics["planning_seconds"] == run.cost.planning_seconds


def test_equal_seeds_give_equal_runs(run):
    again = ewsg.sample(linear(), progress=False)
    np.testing.assert_array_equal(again.draws, run.draws)
    other = ewsg.sample(linear(), seed=1, progress=False)
    assert not np.array_equal(other.draws[:, :10], run.draws[:, :10])


def test_a_planned_run_compiles_few_programs_and_a_second_one_none():
    """Seconds of a first run are mostly compilation: small steps belong on the host, and pilots share programs."""
    compiled = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        ewsg.sample(logistic(), accuracy=0.2, progress=False)
        assert 0 < len(compiled) <= 20
        compiled.clear()
        ewsg.sample(logistic(), accuracy=0.2, progress=False)
        assert not compiled
    finally:
        jax.monitoring.clear_event_listeners()


def test_the_plan_says_where_every_number_came_from(tmp_path):
    target = logistic()
    plan = ewsg.plan(target, accuracy=0.1, progress=False)
    text = str(plan)
    for name, (_, why) in plan.notes.items():
        assert name in text
        assert why in text
    assert plan.method.coordinates is not None
    assert plan.pilot.draws.shape[0] == 32
    run = ewsg.sample(target, plan, progress=False)
    assert run.verdict.reached
    assert run.verdict.accuracy == 0.1
    kept = plan.pilot.draws.shape[1]
    if run.settings["integrator"] == plan.pilot.settings["integrator"]:
        np.testing.assert_array_equal(run.draws[:, :kept], plan.pilot.draws)
    plan.save(tmp_path / "plan.npz")
    from_file = ewsg.resume(tmp_path / "plan.npz", target, progress=False)
    np.testing.assert_array_equal(from_file.draws, run.draws)
    short = ewsg.sample(target, plan, num_steps=100, progress=False)
    assert short.draws.shape == (4, 50, 3)


def test_a_planned_run_goes_on_bit_for_bit(tmp_path, monkeypatch):
    target = logistic()
    whole = ewsg.sample(target, accuracy=0.04, progress=False)
    calls = []
    original = planners.Planner.telling

    def stopping(self, stage):
        calls.append(stage)
        if stage.startswith("error"):  # the run itself: after the pilots
            self.stop = lambda: True
        return original(self, stage)

    monkeypatch.setattr(planners.Planner, "telling", stopping)
    cut = ewsg.sample(target, accuracy=0.04, progress=False)
    monkeypatch.undo()
    assert cut.settings["num_steps"] < whole.settings["num_steps"]
    assert cut.verdict.word == "interrupted"
    assert cut.interrupted
    cut.save(tmp_path / "run.npz")
    on = ewsg.resume(tmp_path / "run.npz", target, progress=False)
    np.testing.assert_array_equal(on.draws, whole.draws)
    assert on.verdict == whole.verdict
    assert on.cost.datum_gradients == whole.cost.datum_gradients
    on.save(tmp_path / "run.npz")
    with pytest.raises(ewsg.errors.InputError, match="has reached its accuracy"):
        ewsg.resume(tmp_path / "run.npz", target)
    finer = ewsg.resume(tmp_path / "run.npz", target, accuracy=0.035, progress=False)
    assert finer.verdict.accuracy == 0.035
    assert finer.draws.shape[1] >= on.draws.shape[1]


def test_budgets_end_a_run():
    target = logistic()
    run = ewsg.sample(target, accuracy=0.01, data_passes=60, progress=False)
    assert run.verdict.word == "budget"
    assert run.cost.data_passes <= 60
    assert run.cost.data_passes > 50
    assert "times as long" in str(run.verdict)
    alone = ewsg.sample(target, data_passes=60, progress=False)
    assert 50 < alone.cost.data_passes <= 60


def test_collectors_see_the_parameters():
    run = ewsg.sample(linear(), accuracy=0.2, collect=lambda theta: {"t": theta, "sum": theta.sum()}, progress=False)
    np.testing.assert_allclose(run.draws["sum"], run.draws["t"].sum(-1), rtol=1e-5)
    with pytest.raises(ewsg.errors.InputError, match="judged by its draws"):
        ewsg.sample(linear(), collect=ewsg.collect.Moments())


class TestInvariance:
    """The same posterior, whatever its parameters are called."""

    def moments(self, target, back):
        run = ewsg.sample(target, accuracy=0.1, progress=False)
        assert run.verdict.reached
        draws = back(np.asarray(run.draws, np.float64).reshape(-1, 3))
        return draws.mean(0), draws.std(0)

    @pytest.mark.parametrize(
        ("change", "back"),
        [
            (lambda x: x / 1000, lambda theta: theta / 1000),
            (lambda x: x[:, [2, 0, 1]], lambda theta: theta[:, [1, 2, 0]]),
            (
                lambda x: x @ np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1.0]]),
                lambda t: t @ np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1.0]]),
            ),
        ],
        ids=["scaled", "permuted", "mixed"],
    )
    def test_linear_changes(self, change, back):
        target = ewsg.models.linear(change(X), Y, noise_scale=0.7, prior_precision=0.0)
        cov = np.linalg.inv(X.T @ X / 0.49)
        mean, sd = self.moments(target, back)
        np.testing.assert_allclose((mean - cov @ X.T @ Y / 0.49) / np.sqrt(np.diag(cov)), 0, atol=0.14)
        np.testing.assert_allclose(sd / np.sqrt(np.diag(cov)), 1, atol=0.14)

    def test_ten_times_the_data(self):
        target = ewsg.models.linear(np.tile(X, (10, 1)), np.tile(Y, 10), noise_scale=0.7, prior_precision=0.0)
        cov = np.linalg.inv(X.T @ X / 0.049)
        mean, sd = self.moments(target, lambda theta: theta)
        np.testing.assert_allclose((mean - cov @ X.T @ Y / 0.049) / np.sqrt(np.diag(cov)), 0, atol=0.14)
        np.testing.assert_allclose(sd / np.sqrt(np.diag(cov)), 1, atol=0.14)


class TestNoPlan:
    """A posterior that cannot be planned for is named, in one sentence, at once."""

    def test_separated_classes_under_a_flat_prior(self):
        x = RNG.normal(size=(200, 3))
        with pytest.raises(ewsg.errors.NoPlan, match="prior"):
            ewsg.sample(ewsg.models.logistic(x, x[:, 0] > 0, prior_precision=0.0), progress=False)

    def test_columns_that_are_sums_of_others(self):
        x = np.column_stack([X, X[:, 0] + X[:, 1]])
        with pytest.raises(ewsg.errors.NoPlan, match="1 direction"):
            ewsg.sample(ewsg.models.linear(x, Y, noise_scale=0.7, prior_precision=0.0), progress=False)
        run = ewsg.sample(ewsg.models.linear(x, Y, noise_scale=0.7), accuracy=0.2, progress=False)
        assert run.verdict.reached  # the prior informs that direction

    def test_two_modes(self):
        y = np.concatenate([RNG.normal(-2, 0.5, 60), RNG.normal(2, 0.5, 60)]).astype(np.float32)

        def log_likelihood(mu, y):
            return jnp.logaddexp(-2 * (y - mu[0]) ** 2, -2 * (y - mu[1]) ** 2)

        target = ewsg.Target(
            log_likelihood, lambda mu: -0.02 * jnp.sum(mu**2), y, init=np.array([-0.1, 0.1], np.float32)
        )
        with pytest.raises(ewsg.errors.NoPlan, match="several modes"):
            ewsg.plan(target, progress=False)

    def test_a_saddle(self):
        def log_likelihood(params, y):
            return -0.5 * (y - params[0] * params[1]) ** 2

        target = ewsg.Target(log_likelihood, None, np.full(50, 1.0, np.float32), init=np.zeros(2, np.float32))
        with pytest.raises(ewsg.errors.NoPlan):
            ewsg.sample(target, progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accuracy": 0.0}, "accuracy must be positive"),
        ({"accuracy": -1.0}, "accuracy must be positive"),
        ({"accuracy": 1e-6}, "finer than"),
        ({"accuracy": "high"}, "accuracy must be a number"),
        ({"num_chains": 2}, "too few to tell an error bar"),
        ({"num_steps": 100}, "num_steps= is not for a planned run"),
        ({"thin": 2}, "thin= is not for a planned run"),
        ({"seconds": 0}, "seconds must be positive"),
        ({"data_passes": 0.001}, "needs"),
        ({"estimator": ewsg.Full(), "integrator": ewsg.BAOAB(0.1, 1.0), "accuracy": 0.1}, "accuracy= is not for"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ewsg.errors.InputError) as caught:
        ewsg.sample(linear(), progress=False, **options)
    assert message in str(caught.value)


def test_a_target_without_a_start():
    target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
    with pytest.raises(ewsg.errors.InputError, match="needs init="):
        ewsg.sample(target)
    with pytest.raises(ewsg.errors.InputError, match="target must be"):
        ewsg.plan(dataclasses)


@pytest.mark.slow
def test_the_best_of_a_budget_for_each_chain():
    """More chains than a pilot has; the plan takes at most 30 % of the budget, and nothing is left over."""
    goal = Goal(accuracy=None, budget=800 * 64 * 60.0, num_chains=64, pooled=False)
    options = {"rng": None, "collect": None, "progress": False, "save_to": None, "devices": 1}
    found = sample_planned(logistic(), goal, init=None, seed=3, **options)
    assert found.draws.shape[0] == 64
    assert found.cost.planning_gradients <= 0.3 * goal.budget
    assert 0.98 * goal.budget < found.cost.datum_gradients <= goal.budget
    assert found.verdict.word in ("budget", "biased")


@pytest.mark.parametrize(("pooled", "share"), [(True, 1.0), (False, 1 / 128)])
def test_what_a_second_order_costs_is_shared_like_the_budget(pooled, share):
    """The error of one chain sees half of that chain's share, of the budget and of what is paid out of it."""
    goal = Goal(accuracy=None, budget=6400.0, num_chains=64, pooled=pooled)
    assert goal.share(6400.0) == pytest.approx(6400 * share)
    assert goal.left(spent=3200) == pytest.approx(3200 * share)


def test_the_second_order_gives_way_to_the_first():
    """Heavy tails, where it fails, are no better with half the step; what is plainer is halved."""
    planner = object.__new__(planners.Planner)
    planner.target = linear()
    planner._plainer = rule.Setting(rule.FIRST, 4, 0.1)
    assert planner._after_objection(rule.Setting(rule.SECOND, 2, 0.5)) == planner._plainer
    assert planner._after_objection(planner._plainer) == rule.Setting(rule.FIRST, 4, 0.05)
    planner._plainer = None  # of a resumed run
    assert planner._after_objection(rule.Setting(rule.SECOND, 2, 0.5)) == rule.Setting(rule.SECOND, 2, 0.25)
    everything = rule.Setting(rule.FULL, 0, rule.LARGEST_STEP)
    assert planner._after_objection(rule.Setting(rule.FIRST, 100, 0.25)) == everything  # 2 · 100/0.125 > 400/0.5


def test_probes_are_many_where_data_are_few():
    assert [num_probes(n) for n in (20, 250, 1000, 10**4, 10**7)] == [16, 16, 4, 2, 2]
