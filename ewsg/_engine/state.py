"""The state that the loop carries, and its layout: vmap axes, and sharding over devices."""

from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import jax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Float, Int

from .._core.accumulate import Compensated, Counts
from .._core.types import HostOrDevice, Position
from .._random.streams import Keys
from ..sampler import SamplerState
from .placement import AXIS

HOT_RATIO = 1_000.0
"""A chain this many times hotter than the target does not sample from it, even if all its values are finite."""
Tree = TypeVar("Tree")


class Status(IntEnum):
    """The status of a chain when it was last checked; a fast divergence may end as `nonfinite`."""

    ok = 0
    nonfinite = 1
    diverged = 2


class Chain(NamedTuple):
    """One chain, and the statistics recorded about it.

    Statistics are summed plainly over a block of steps (`recent`); the sums of blocks are added up with compensation
    since the last draw (`window`).
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


def _layout(kind: type[Tree], **fields: Any) -> Tree:
    """The vmap axis, or the sharding, of each field by name; a missing or unknown field raises TypeError."""
    return kind(**fields)


STATE_AXES = _layout(SamplerState, phase=0, estimator=0, step=None)
_COUNTS_AXES = _layout(Counts, every=None, own=0)
CHAIN_AXES = _layout(
    Chain,
    state=STATE_AXES,
    status=0,
    gradients=_COUNTS_AXES,
    directional=_COUNTS_AXES,
    window=0,
    recent=0,
    anchor=0,
    noise_ratio=0,
    summary=0,
)
"""vmap axes of `Chain`: everything is batched except the step counter and the cost counters that chains share."""


class Carry(NamedTuple):
    """All chains; the numbers of steps since the start (`step`) and the last kept draw (`since`), and of draws kept."""

    chains: Chain
    step: Int[Array, ""]
    since: Int[Array, ""]
    draws: Int[Array, ""]


EACH, SAME = PartitionSpec(AXIS), PartitionSpec()
"""`EACH`: split over devices by chain. `SAME`: replicated."""
ROWS_SPECS = PartitionSpec(None, AXIS)
"""Rows of draws have the axes (draw, chain)."""


def _specs_of(axes: Any) -> Any:
    """The sharding of a tree with these vmap axes: batched leaves are split over devices, the others replicated."""
    return jax.tree.map(lambda axis: SAME if axis is None else EACH, axes, is_leaf=lambda axis: axis is None)


CARRY_SPECS = _layout(Carry, chains=_specs_of(CHAIN_AXES), step=SAME, since=SAME, draws=SAME)


class Limits(NamedTuple):
    """A chain both farther and hotter than this has diverged; the noise is probed at every `probe_every`-th draw."""

    distance: Float[HostOrDevice, ""]
    temperature: Float[HostOrDevice, ""]
    probe_every: Int[HostOrDevice, ""]


class Checkpoint(NamedTuple):
    """Everything needed to continue a run: the chains, their keys, and their limits."""

    carry: Carry
    keys: Keys
    limits: Limits


class Chunk(NamedTuple):
    """The work of one call of the loop: `first` steps and a draw, then (num_draws − 1) times `thin` steps and a draw.

    All counts are traced, so that one compilation serves any run of the same shapes.

    Attributes:
        first: the number of steps to the first draw.
        num_draws: the number of draws.
        thin: the number of steps between draws.
        begins: the discarded part has just ended; recording begins before the first of these steps.
        partial: the last draw is not yet due. Its row is scratch, and its window continues in the next call.
        ends: the last of these steps is the last of the discarded part or of the plan; it matters only if `partial`.
            Chains are checked only at full blocks of 32 steps, at draws and at such ends, so that results do not depend
            on how a run is cut into calls.
    """

    first: Int[HostOrDevice, ""]
    num_draws: Int[HostOrDevice, ""]
    thin: Int[HostOrDevice, ""]
    begins: Bool[HostOrDevice, ""]
    partial: Bool[HostOrDevice, ""]
    ends: Bool[HostOrDevice, ""]
