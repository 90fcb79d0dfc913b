"""The plan of a run: how many steps, which of them are kept, and how many each call of the compiled loop takes."""

from typing import NamedTuple

import numpy as np

from .._core.component import check_count, check_positive
from ..errors import InputError
from ..sampler import AbstractSampler

_DEFAULT_STEPS = 2_000
_MOST_STEPS = 2**31 - 1
_DEFAULT_DRAWS, _FEWEST_DRAWS = 1_000, 10
_DEFAULT_DRAW_BYTES = 2**30
_MOST_BYTES_PER_CALL = 16 * 2**20
_MOST_DRAWS_PER_CALL = 4096
_MOST_STEPS_PER_CALL = 2**30
_MOST_GROWTH_PER_CALL = 16
_SECONDS_PER_CALL, _MOST_SECONDS_PER_CALL = 1.0, 3.0
FIRST_CALL_STEPS = 8
"""The number of steps in the first call, and in a call whose steps are slow."""


class Plan(NamedTuple):
    """Which steps are taken and which of them are kept: every `thin`-th after the first `discard`."""

    num_steps: int
    discard: int
    thin: int

    @property
    def num_draws(self) -> int:
        """The number of draws that a chain keeps."""
        return max(0, self.num_steps - self.discard) // self.thin


def check_length(num_steps: int | None, data_passes: float | None) -> None:
    """Raise InputError for a length that is given twice or is not a number, before anything is prepared."""
    if num_steps is not None and data_passes is not None:
        raise InputError("give num_steps= or data_passes=, not both: each fixes the length of the run")
    if num_steps is not None:
        check_count("sample", "num_steps", num_steps, 1)
    if data_passes is not None:
        check_positive("sample", "data_passes", data_passes)


def check_plan(discard: float | int, thin: int | None) -> None:
    """Raise InputError unless `discard` and `thin` are valid for some length of the run."""
    if isinstance(discard, float | np.floating):
        if not 0 <= discard < 1:
            raise InputError(f"discard={discard} must be a share from 0.0 to below 1.0, or a whole number of steps")
    else:
        check_count("sample", "discard", discard, 0)
    if thin is not None:
        check_count("sample", "thin", thin, 1)


def check_total(num_steps: int) -> None:
    """Raise InputError for more steps than a run can count."""
    if num_steps > _MOST_STEPS:
        raise InputError(
            f"{num_steps:,} steps are more than the {_MOST_STEPS:,} that a run can count: take fewer, or start a "
            "new run from the last draws of this one, with another seed"
        )


def count_steps(
    sampler: AbstractSampler, num_steps: int | None, data_passes: float | None, *, resumed: bool = False
) -> int:
    """The number of steps of a run, or of its continuation, from `num_steps` or `data_passes`; 2,000 without either."""
    if data_passes is not None:
        check_positive("sample", "data_passes", data_passes)
        budget = round(float(data_passes) * sampler.target.num_data)
        paid = int(sampler.preparation_cost().datum_gradients) if resumed else 0
        num_steps = sampler.num_steps(budget + paid)
        if num_steps < 1:
            raise InputError(f"data_passes={data_passes} is less than one step: raise it, or take a smaller batch")
    num_steps = _DEFAULT_STEPS if num_steps is None else num_steps
    check_count("sample", "num_steps", num_steps, 1)
    return int(num_steps)


def make_plan(num_steps: int, discard: float | int, thin: int | None, draw_bytes: int) -> Plan:
    """The plan for the caller's arguments.

    Without `thin`, about 1,000 draws are kept; fewer, but at least 10, if 1,000 would take more than 1 GiB.

    Args:
        num_steps: steps per chain.
        discard: the discarded start, as a share or a number of steps.
        thin: steps per kept draw.
        draw_bytes: the size of one draw of all chains together.
    """
    check_total(num_steps)
    discard = int(discard * num_steps) if isinstance(discard, float | np.floating) else int(discard)
    if discard >= num_steps:
        raise InputError(f"discard={discard} throws away all of the {num_steps} steps: discard fewer, or run longer")
    if thin is None:
        wanted = max(_FEWEST_DRAWS, min(_DEFAULT_DRAWS, _DEFAULT_DRAW_BYTES // max(1, draw_bytes)))
        thin = max(1, (num_steps - discard) // wanted)
    if thin > num_steps - discard:
        raise InputError(f"thin={thin} keeps no draw of the {num_steps - discard} steps after discard: lower it")
    return Plan(num_steps, discard, int(thin))


def draws_per_call(draw_bytes: int) -> int:
    """The number of draws, each of this size for all chains together, that the device holds between two calls."""
    return max(1, min(_MOST_BYTES_PER_CALL // max(draw_bytes, 1), _MOST_DRAWS_PER_CALL))


def next_chunk(plan: Plan, done: int, since: int, quota: int, room: int) -> tuple[int, int, bool]:
    """(steps to the first draw, number of draws, whether the first draw is not yet due) for the next call.

    Args:
        plan: the plan.
        done: steps taken so far.
        since: steps since the last draw.
        quota: about how many steps the call should take.
        room: the most draws that it can keep.
    """
    if done < plan.discard:
        return min(quota, min(plan.discard, plan.num_steps) - done), 1, True
    to_draw = plan.thin - since
    left = (plan.num_steps - done - to_draw) // plan.thin + 1
    if quota < to_draw or left < 1:
        return min(quota, plan.num_steps - done), 1, True
    return to_draw, max(1, min(1 + (quota - to_draw) // plan.thin, room, left)), False


def next_quota(taken: int, seconds: float, quota: int) -> int:
    """The number of steps in the next call: about one second's worth, and at most 16 times as many as in the last one.

    Each call also pays a fixed allocation cost, comparable to one step for large networks. Slow steps are therefore
    taken up to 8 at a time, as long as an interrupt need not wait more than three seconds.
    """
    rate = taken / max(seconds, 1e-6)
    wanted = max(1, int(_SECONDS_PER_CALL * rate), min(FIRST_CALL_STEPS, int(_MOST_SECONDS_PER_CALL * rate)))
    return min(wanted, _MOST_GROWTH_PER_CALL * max(quota, taken), _MOST_STEPS_PER_CALL)
