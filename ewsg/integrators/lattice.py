"""Overdamped Langevin dynamics on a lattice: SGLRW when the force is stochastic."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core import pytree
from .._core.types import Key, Position, Scalar
from .signed import AbstractSigned


class Lattice(AbstractSigned):
    r"""The stochastic gradient lattice random walk (Mensch et al. 2026, arXiv 2602.15925), with two outcomes.

    θ_i' = θ_i ± δ,   δ = √(2hT),   P(+) = (1 + clip(h·force_i/δ, −1, 1))/2

    as in the authors' code in `posteriors` (`sgmcmc/sglrw.py`). Targets exp(−V/T) as h → 0. While nothing is clipped a
    step has the mean h·force and the mean square 2hT exactly, and as P(+) is linear in the force, only the mean of a
    stochastic force matters for the law of one coordinate's step: its noise is felt only in the correlation between
    coordinates. In one dimension a Gaussian has its exact variance for every h, with minibatches too (its law is
    binomial, the Ehrenfest urn). Clipping, once |force_i| > √(2T/h), makes the drift too weak. A chain keeps to
    its lattice: with a constant h, θ_i − θ_i(0) is always a multiple of δ.

    Args:
        step_size: h, or a function of the step counter (`ewsg.schedules`, optax).
        temperature: T.
        units: "sum": h is for ∇V. "mean": h is for ∇V/n at temperature T/n, the same chain with h_sum = h_mean/n.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> walk = ewsg.Lattice(step_size=0.02)
        >>> run = ewsg.sample(target, ewsg.Uniform(2), walk, init=jnp.array(4.0), num_steps=20, num_chains=2, seed=0)
        >>> bool(jnp.allclose(jnp.abs(jnp.diff(run.draws)), 0.2, atol=1e-5))
        True
    """

    def sizes(self, key: Key, position: Position, scale: Scalar) -> Position:
        del key
        wide = pytree.wide_dtype(position)
        return jax.tree.map(lambda leaf: jnp.full(leaf.shape, scale, wide), position)

    def upward(self, size: Float[Array, "*d"], force: Float[Array, "*d"], scale: Scalar) -> Float[Array, "*d"]:
        del size
        return (1 + jnp.clip(force * scale / (2 * self.temperature), -1, 1)) / 2
