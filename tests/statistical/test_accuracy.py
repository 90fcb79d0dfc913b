"""What paired selection must reach on real posteriors over two seeds, and that the summary knows when it does not."""

import jax.numpy as jnp
import pytest

import ewsg
from ewsg import diagnostics, problems

SEEDS = (0, 1)


def kls(name, estimator, integrator, num_chains, seeds=SEEDS):
    """KL(reference ‖ chains) for every seed: 15 snapshots 100 steps apart after 1,000 steps from the mode."""
    target, answer = problems.load(name).target, problems.answer(name)
    options = {"num_chains": num_chains, "num_steps": 2500, "discard": 1000, "thin": 100}
    found = []
    for seed in seeds:
        run = ewsg.sample(target, estimator, integrator, init=jnp.asarray(answer.start), seed=seed, **options)
        assert run.ok.all()
        found.append(diagnostics.gaussian_kl(answer.mean, answer.cov, run))
    return found


@pytest.mark.slow
@pytest.mark.needs_data("pima")
@pytest.mark.parametrize(
    ("rule", "integrator", "limit"),
    [("weight", ewsg.Underdamped, 0.03), ("weight", ewsg.BAOAB, 0.01), ("sequential", ewsg.BAOAB, 0.006)],
)
def test_paired_on_pima(rule, integrator, limit):
    """Floor 0.0009 by Monte Carlo; the full gradient under Euler has 0.03 itself."""
    assert max(kls("pima", ewsg.Paired(20, rule), integrator(0.01, 10.0), 2000)) <= limit


@pytest.mark.slow
@pytest.mark.needs_data("pima")
def test_sghmc_on_pima():
    """One seed and 500 chains are enough to see a KL 140 times its floor."""
    assert kls("pima", ewsg.Uniform(40), ewsg.Underdamped(0.01, 10.0), 500, seeds=[0])[0] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["weight", "sequential"])
def test_paired_on_skewed_data(rule):
    assert max(kls("skewed", ewsg.Paired(50, rule), ewsg.BAOAB(1e-4, 100.0), 1000)) <= 0.03


@pytest.mark.slow
@pytest.mark.needs_data("pima")
def test_the_summary_warns_of_sghmc_and_not_of_paired():
    """Pima at h = 0.01: 40 data per step each."""
    problem, answer = problems.load("pima"), problems.answer("pima")
    options = {"init": jnp.asarray(answer.start), "num_chains": 16, "num_steps": 4000, "discard": 1000}
    integrator = ewsg.BAOAB(0.01, 10.0)
    hot = ewsg.sample(problem.target, ewsg.Uniform(40), integrator, **options).summary()
    assert any("hotter" in s and "take step_size=" in s for s in hot.warnings)
    paired = ewsg.sample(problem.target, ewsg.Paired(20), integrator, **options).summary()
    assert paired.warnings == []
    assert 0 < paired.diagnostics["predicted_sd_error"] < 0.05
    small = ewsg.sample(problem.target, ewsg.Paired(4), integrator, **options)
    summary = small.summary()
    assert any("too noisy for paired selection" in s for s in summary.warnings)
    assert summary.diagnostics["predicted_sd_error"] > 0.05
