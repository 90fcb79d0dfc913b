"""Which steps are kept as draws."""

import numpy as np

from ewsg._engine.draws import Plan, next_chunk


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
