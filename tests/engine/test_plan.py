"""Which steps are kept as draws, and how many a call takes."""

import jax.numpy as jnp
import numpy as np
import pytest
from short_runs import sample

from ewsg import sampling
from ewsg._engine import plan as plans
from ewsg._engine.plan import Plan, make_plan, next_chunk, next_quota


def test_next_chunk_covers_every_plan():
    """Whatever the quota and the room, the chunks take each step once and keep each draw once."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        steps = int(rng.integers(1, 60))
        discard = int(rng.integers(0, steps))
        plan = Plan(steps, discard, int(rng.integers(1, steps - discard + 1)))
        done = since = draws = 0
        while done < steps:
            first, count, partial = next_chunk(plan, done, since, int(rng.integers(1, 30)), int(rng.integers(1, 5)))
            assert first >= 1
            assert count >= 1
            done += first + (count - 1) * plan.thin
            draws += 0 if partial else count
            since = since + first if partial else 0
            if done == discard:
                since = 0
            assert done >= discard or partial
        assert done == steps
        assert draws == plan.num_draws


def test_default_thinning_bounds_what_is_kept():
    """1,000 draws; of a network whose draw takes 10 MiB, 102; of one that takes 1 GiB, 10."""
    for draw_bytes, kept in ((100, 1000), (10 * 2**20, 102), (2**30, 10)):
        plan = make_plan(1_000_000, 0.5, None, draw_bytes)
        assert plan.num_draws == pytest.approx(kept, rel=0.01)


@pytest.mark.untyped
def test_default_thinning_knows_what_a_draw_of_all_chains_takes(gaussian, monkeypatch):
    """Two chains of two float32, their virials and slopes are 48 bytes: 20 draws fit into 960 bytes, 10 of float64."""
    monkeypatch.setattr(plans, "_DEFAULT_DRAW_BYTES", 960)
    monkeypatch.setattr(sampling, "complete", lambda chains, plan, *rest: plan)
    plan = sample(gaussian, discard=0, thin=None)
    assert plan.num_draws == 960 // (2 * 3 * jnp.zeros(2).nbytes)
    plan = sample(gaussian, discard=0, thin=None, num_steps=120, collect=lambda theta: theta[:1])
    assert plan.num_draws == 960 // (2 * jnp.zeros(1).nbytes)


@pytest.mark.parametrize(
    ("taken", "seconds", "quota", "wanted"),
    [
        (1000, 0.1, 1000, 10_000),  # a second's worth
        (8, 1e-4, 8, 128),  # but not more than sixteen times as many as before
        (8, 2.0, 8, 8),  # slow steps eight at a time
        (8, 5.6, 8, 4),  # as many as take three seconds
        (1, 9.0, 8, 1),  # one, if it takes longer
    ],
)
def test_how_many_steps_a_call_takes(taken, seconds, quota, wanted):
    assert next_quota(taken, seconds, quota) == wanted
