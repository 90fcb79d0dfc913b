"""What the loop carries: chains and the records kept of them, keys, limits, and how all are shared out over devices."""

from enum import IntEnum
from typing import Any, NamedTuple

from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from .._core.accumulate import Compensated, Counts
from .._core.types import HostOrDevice, Position
from ..sampler import SamplerState
from .placement import AXIS


class Status(IntEnum):
    """What became of a chain: what it was when it was looked at, so that a fast explosion may end as `nonfinite`."""

    ok = 0
    nonfinite = 1
    diverged = 2


class Chain(NamedTuple):
    """One chain, and what is recorded about it.

    Plain sums of up to a block of steps (`recent`) are added to the compensated ones since the last draw (`window`).
    """

    state: SamplerState
    status: Int[Array, ""]
    gradients: Counts
    directional: Counts
    window: Compensated
    recent: Any
    anchor: Position
    noise_ratio: Array
    summary: Any


STATE_AXES = SamplerState._make((0, 0, None))
_COUNTS_AXES = Counts._make((None, 0))
CHAIN_AXES = Chain._make((STATE_AXES, 0, _COUNTS_AXES, _COUNTS_AXES, *(0,) * 5))
"""All of a chain has a leading axis but the step counter and what is counted for every chain (see `Kick.step`)."""


class Carry(NamedTuple):
    """All chains; steps taken since the start and since the last kept draw, and draws kept."""

    chains: Chain
    step: Int[Array, ""]
    since: Int[Array, ""]
    draws: Int[Array, ""]


EACH, SAME = PartitionSpec(AXIS), PartitionSpec()
"""Some of the chains on every device; the same everywhere."""
_COUNTS_SPECS = Counts._make((SAME, EACH))
_CHAIN_SPECS = Chain._make((SamplerState._make((EACH, EACH, SAME)), EACH, _COUNTS_SPECS, _COUNTS_SPECS, *(EACH,) * 5))
CARRY_SPECS = Carry._make((_CHAIN_SPECS, *(SAME,) * 3))
"""How a carry is shared out over devices: every one has some of the chains."""
ROWS_SPECS = PartitionSpec(None, AXIS)


class Limits(NamedTuple):
    """When a chain has diverged, being both farther and hotter than this; draws between two probes of the noise."""

    distance: Float[HostOrDevice, ""]
    temperature: Float[HostOrDevice, ""]
    probe_every: Int[HostOrDevice, ""]


class Chunk(NamedTuple):
    """What one call of `advance` does: `first` steps and a draw, then (num_draws − 1) times `thin` steps and a draw.

    All counts are traced, so that one compilation serves any run of the same shapes. With `partial` the last draw is
    not due yet: its row is scratch, and its window goes on in the next call; unless that `ends` what was planned, its
    chains are not looked at before their block is full, so that nothing depends on how a run is cut into calls.
    """

    first: Int[HostOrDevice, ""]
    num_draws: Int[HostOrDevice, ""]
    thin: Int[HostOrDevice, ""]
    partial: Bool[HostOrDevice, ""]
    ends: Bool[HostOrDevice, ""]
