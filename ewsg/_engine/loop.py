"""The one compiled loop: chains by `vmap`, steps by a loop whose bounds are traced. It knows no algorithm."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Int

from .. import _random
from .._core import pytree
from .._core.accumulate import Compensated, Counts
from .._core.compiler import options
from .._core.types import Key, Position
from .._random.streams import Keys, chain_keys
from ..collect import AbstractCollector
from ..sampler import AbstractSampler
from .state import (
    CARRY_SPECS,
    CHAIN_AXES,
    EACH,
    ROWS_SPECS,
    SAME,
    STATE_AXES,
    Carry,
    Chain,
    Chunk,
    Limits,
    Status,
)
from .statistics import keeps_all, step_stats

_STEPS_PER_BLOCK = 32


@functools.partial(jax.jit, static_argnames="vectors")
def start(
    sampler: AbstractSampler, collector: AbstractCollector, key: Key, positions: Position, vectors: bool = True
) -> tuple[Carry, Keys]:
    """All chains at their starting points, and their keys, derived from the root key.

    Args:
        sampler: the transition.
        collector: what is kept of each draw.
        key: the root key.
        positions: the starting points, stacked along a leading axis.
        vectors: whether diagnostics may have one number per parameter; those of version 0.1.0 do not.
    """
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    keys = chain_keys(key, num_chains)

    def chain(key: Key, position: Position) -> Chain:
        state = sampler.init(key, position)
        each = vectors and keeps_all(collector, position, num_chains)
        stats = jax.eval_shape(
            lambda k, s: step_stats(*sampler.step(k, s), position, sampler.temperature, each), key, state
        )
        dtype = jax.tree.leaves(position)[0].dtype
        return Chain(
            state=state,
            status=jnp.int32(Status.ok),
            gradients=Counts.zero(),
            directional=Counts.zero(),
            window=Compensated.zeros(stats),
            recent=jax.tree.map(jnp.zeros_like, stats),
            anchor=position,
            noise_ratio=jnp.zeros((), dtype),
            summary=collector.init(position),
        )

    chains = jax.vmap(chain, out_axes=CHAIN_AXES)(keys.start, positions)
    return Carry(chains, jnp.int32(0), jnp.int32(0), jnp.int32(0)), keys


@functools.cache
def advance(mesh: Mesh | None, large: bool) -> Callable[..., tuple[Carry, Any]]:
    """`steps`, compiled; with a mesh, each device takes its share of the chains. `carry` and `rows` are donated."""
    run = steps
    if mesh is not None:
        run = jax.shard_map(
            steps,
            mesh=mesh,
            in_specs=(SAME, SAME, EACH, CARRY_SPECS, ROWS_SPECS, SAME, SAME),
            out_specs=(CARRY_SPECS, ROWS_SPECS),
            check_vma=False,
        )
    return jax.jit(run, donate_argnums=(3, 4), compiler_options=options(large))


def steps(
    sampler: AbstractSampler,
    collector: AbstractCollector,
    keys: Keys,
    carry: Carry,
    rows: Any,
    chunk: Chunk,
    limits: Limits,
) -> tuple[Carry, Any]:
    """Take the steps of a chunk; the state after them, and the rows of its draws."""
    first, num_draws, thin, partial = chunk.first, chunk.num_draws, chunk.thin, chunk.partial
    carry = _begin_recording(carry, jnp.asarray(chunk.begins))

    def step(_, carry: Carry) -> Carry:
        step_keys = jax.vmap(_random.fold, in_axes=(0, None))(keys.steps, carry.step)
        move = jax.vmap(functools.partial(_advance_chain, sampler), (0, CHAIN_AXES), CHAIN_AXES)
        chains = move(step_keys, carry.chains)
        return carry._replace(chains=chains, step=carry.step + 1, since=carry.since + 1)

    def block(left_carry, open_end):
        left, carry = left_carry
        count = jnp.minimum(left, _STEPS_PER_BLOCK - carry.since % _STEPS_PER_BLOCK)
        carry = jax.lax.fori_loop(0, count, step, carry)
        whole = carry.since % _STEPS_PER_BLOCK == 0
        look = whole | ((left == count) & ~open_end)
        recent = (carry.since - 1) % _STEPS_PER_BLOCK + 1
        judge = jax.vmap(functools.partial(_judge, limits, look, recent), (CHAIN_AXES,), CHAIN_AXES)
        chains = judge(carry.chains)
        return left - count, carry._replace(chains=pytree.where(whole, _flush(chains), chains))

    def draw(k, carry_rows):
        carry, rows = carry_rows
        count = jnp.where(k == 0, first, thin)
        due = ~(partial & (k == num_draws - 1))
        blocks = functools.partial(block, open_end=~(due | chunk.ends))
        _, carry = jax.lax.while_loop(lambda left_carry: left_carry[0] > 0, blocks, (count, carry))
        chains = _probe(sampler, keys, carry, due & (carry.draws % limits.probe_every == 0))
        carry = carry._replace(chains=chains, draws=carry.draws + due.astype(jnp.int32))
        row = _rows(collector, carry)
        rows = jax.tree.map(lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, k, 0), rows, row)
        keep = jax.vmap(functools.partial(_keep, collector), (CHAIN_AXES, None, None), CHAIN_AXES)
        carry = carry._replace(chains=keep(carry.chains, carry.draws, due), since=jnp.where(due, 0, carry.since))
        return carry, rows

    return jax.lax.fori_loop(0, num_draws, draw, (carry, rows))


def row_shapes(collector: AbstractCollector, carry: Carry) -> Any:
    """The shapes of one draw of all chains, with a leading axis of chains."""
    return jax.eval_shape(functools.partial(_rows, collector), carry)


def collected(collector: AbstractCollector, carry: Carry) -> Any:
    """The collector's result for every chain, on the host; NaN for those that failed."""
    shapes = jax.eval_shape(_collected, collector, carry)
    found = _collected(collector, carry) if jax.tree.leaves(shapes) else shapes
    return jax.tree.map(np.asarray, found)


@jax.jit
def _collected(collector: AbstractCollector, carry: Carry) -> Any:
    def result(chain: Chain) -> Any:
        return _blank_failed(collector.result(chain.summary, carry.draws), chain.status)

    return jax.vmap(result, (CHAIN_AXES,))(carry.chains)


def _begin_recording(carry: Carry, begins: Bool[Array, ""]) -> Carry:
    """When recording begins, reset the statistics and anchor the configurational temperature at the position."""
    chains = carry.chains
    sums = (chains.window, chains.recent)
    window, recent = pytree.where(begins, pytree.zeros_like(sums), sums)
    anchor = pytree.where(begins, chains.state.phase.position, chains.anchor)
    chains = chains._replace(window=window, recent=recent, anchor=anchor)
    return carry._replace(chains=chains, since=jnp.where(begins, 0, carry.since))


def _advance_chain(sampler: AbstractSampler, key: Key, chain: Chain) -> Chain:
    """One step of one chain."""
    state, info = sampler.step(key, chain.state)
    center = pytree.zeros_like(chain.anchor) if sampler.target.is_centred else chain.anchor
    stats = step_stats(state, info, center, sampler.temperature, "virial" in chain.recent)
    return chain._replace(
        state=state,
        gradients=chain.gradients.add(info.estimate.cost.datum_gradients),
        directional=chain.directional.add(info.estimate.cost.datum_directional),
        recent=pytree.add_scaled(chain.recent, 1, stats),
    )


def _judge(limits: Limits, look: Array, recent: Int[Array, ""], chain: Chain) -> Chain:
    """Update the status of a chain when `look` is set; a failed chain is reset to its anchor with zero momentum.

    A diverging chain is far from the origin and also hot. A chain in a posterior far from the origin is not hot, and a
    chain on its way from a bad start is not that far away, so only both together count as a divergence. NaN and
    infinity persist, so an occasional check is enough. Only the phase is reset: the rest of a method's state (n
    indicators for FlyMC) may be too large for a select.
    """
    phase = chain.state.phase
    far = pytree.max_abs(phase.position).astype(jnp.float32) > limits.distance
    hot = _recent_heat(chain) > limits.temperature * recent.astype(jnp.float32)
    outcome = jnp.where(pytree.all_finite(phase), jnp.where(far & hot, Status.diverged, Status.ok), Status.nonfinite)
    status = jnp.where(look & (chain.status == Status.ok), outcome, chain.status).astype(jnp.int32)
    rest = pytree.zeros_like(phase)._replace(position=chain.anchor)
    held = pytree.where(status == Status.ok, phase, rest)
    return chain._replace(state=chain.state._replace(phase=held), status=status)


def _recent_heat(chain: Chain) -> Array:
    """The sum over the recent steps of the kinetic or, without a momentum, the configurational temperature.

    0 for methods that have neither: they move by accepting proposals and cannot diverge.
    """
    for name in ("kinetic_temperature", "configurational_temperature"):
        if name in chain.recent:
            return jnp.asarray(chain.recent[name]).astype(jnp.float32)
    return jnp.float32(0)


def _flush(chain: Chain) -> Chain:
    """Add the recent sums to the compensated ones."""
    return chain._replace(window=chain.window.add(chain.recent), recent=pytree.zeros_like(chain.recent))


def _probe(sampler: AbstractSampler, keys: Keys, carry: Carry, due: Array) -> Chain:
    """Measure the noise ratio of every chain again, if that is due."""

    def refresh(chains: Chain) -> Array:
        probe_keys = jax.vmap(_random.fold, in_axes=(0, None))(keys.probe, carry.draws)
        ratio = jax.vmap(sampler.noise_ratio, (0, STATE_AXES))(probe_keys, chains.state)
        return jnp.broadcast_to(ratio, chains.noise_ratio.shape).astype(chains.noise_ratio.dtype)

    ratio = jax.lax.cond(due, refresh, lambda chains: chains.noise_ratio, carry.chains)
    return carry.chains._replace(noise_ratio=ratio)


def _rows(collector: AbstractCollector, carry: Carry) -> dict[str, Any]:
    """The rows of all chains at a draw."""
    return jax.vmap(functools.partial(_row, collector), (CHAIN_AXES, None))(carry.chains, carry.since)


def _row(collector: AbstractCollector, chain: Chain, since: Int[Array, ""]) -> dict[str, Any]:
    """The row of one chain at a draw; all values of a failed chain are NaN."""
    means = jax.tree.map(lambda total: total / since.astype(total.dtype), _flush(chain).window.value())
    row = {
        "draw": collector.row(chain.state.phase.position),
        "stats": means | {"noise_ratio": chain.noise_ratio},
    }
    return _blank_failed(row, chain.status)


def _keep(collector: AbstractCollector, chain: Chain, count: Int[Array, ""], due: Array) -> Chain:
    """Hand a draw to the collector and reset the window, if a draw is due."""

    def update(summary: Any) -> Any:
        new = collector.update(summary, chain.state.phase.position, count)
        return pytree.where(chain.status == Status.ok, new, summary)

    summary = jax.lax.cond(due, update, lambda summary: summary, chain.summary)
    sums = (chain.window, chain.recent)
    window, recent = pytree.where(due, pytree.zeros_like(sums), sums)
    return chain._replace(summary=summary, window=window, recent=recent)


def _blank_failed(tree: Any, status: Int[Array, ""]) -> Any:
    """Replace every real number of a failed chain by NaN."""

    def blank(leaf: Array) -> Array:
        real = jnp.issubdtype(leaf.dtype, jnp.floating)
        return jnp.where(status == Status.ok, leaf, jnp.nan) if real else leaf

    return jax.tree.map(blank, tree)
