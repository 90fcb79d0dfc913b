"""Barker's dynamics: SGBD when the force is stochastic."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _random
from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from .signed import AbstractSigned


class Barker(AbstractSigned):
    r"""Stochastic gradient Barker dynamics (Mauri and Zanella 2024, arXiv 2405.08999), without their correction.

    θ_i' = θ_i ± z_i,   P(+) = 1/(1 + exp(−z_i·force_i/T)),   z_i = √(2hT) (1 + sξ_i)/√(1 + s²),   ξ ~ N(0, I)

    as in the authors' code (maurilorenzo/sgbd), where z ~ N(σ, (0.1σ)²): s = 0.1 and σ² = 2hT/(1 + s²), so that a step
    has the mean square 2hT, and the mean h·force to first order. Targets exp(−V/T) as h → 0; where the force is
    constant, the step is reversible for exp(−V/T) whatever h. A large force makes only the direction certain: the chain
    does not diverge where a gradient is steep. The noise of a stochastic force does not lengthen the steps, but as P(+)
    is not linear in the force it weakens the drift, which widens the law about as much as SGLD's while steps are small.
    (`CorrectedBarker` has the authors' correction for this, for which the sd of the noise must be known.)

    Args:
        step_size: h, or a function of the step counter (`ewsg.schedules`, optax).
        temperature: T.
        units: "sum": h is for ∇V. "mean": h is for ∇V/n at temperature T/n, the same chain with h_sum = h_mean/n.
        spread: s, the relative spread of the sizes.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> move = ewsg.Barker(step_size=0.02)
        >>> run = ewsg.sample(target, ewsg.Uniform(2), move, init=jnp.array(4.0), num_steps=20, num_chains=2, seed=0)
        >>> bool((jnp.abs(jnp.diff(run.draws)) < 0.4).all())
        True
    """

    spread: float = eqx.field(default=0.1, converter=plain)

    def __check_init__(self):
        check_positive("Barker", "spread", self.spread, zero=True)

    def sizes(self, key: Key, position: Position, scale: Scalar) -> Position:
        wide = pytree.wide_dtype(position)
        unit = pytree.as_dtype(scale / jnp.sqrt(1 + self.spread**2), wide)
        return jax.tree.map(
            lambda xi: unit * (1 + pytree.as_dtype(self.spread, wide) * xi.astype(wide)),
            _random.normal_like(key, position),
        )

    def upward(self, size: Float[Array, "*d"], force: Float[Array, "*d"], scale: Scalar) -> Float[Array, "*d"]:
        del scale
        return jax.nn.sigmoid(size * force / self.temperature)
