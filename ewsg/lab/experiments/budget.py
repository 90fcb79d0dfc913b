"""The number of draws that a budget of data passes pays for."""

from collections.abc import Sequence

from ...recipes import Method
from ...sampler import compose
from ...target.target import Target

_SNAPSHOTS = 60


def snapshots(
    target: Target, method: Method, passes: Sequence[float], most: int = _SNAPSHOTS
) -> tuple[int, dict[float, int]]:
    """`thin=` for about `most` draws in the largest budget, and how many of them each budget has paid for."""
    sampler = compose(target, *method)
    steps = {p: sampler.num_steps(round(p * target.num_data)) for p in passes}
    thin = max(1, max(steps.values()) // most)
    return thin, {p: count // thin for p, count in steps.items() if count >= thin}
