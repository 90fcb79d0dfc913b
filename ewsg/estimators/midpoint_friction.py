"""Friction against the heat of subsampling at the midpoint of the kick: with `ABOBA`, the method NOGIN."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from .. import _random
from .._core import pytree
from .._core.component import check_positive
from .._core.settings import plain
from .._core.types import Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import AbstractMinibatch, batch_noise, draw_batch


class MidpointFriction(AbstractMinibatch):
    r"""force = mean of the G_i − c (h/2T) Ĉ r̄,   r̄ = (r + r')/2 with r' the momentum after the kick.

    G_i = n∇(−V_i) over b uniform data, Ĉ = f · their sample covariance, f = Cov(force)/Cov(G_i); with the kick's
    r' = r + h·force − decay + noise, r̄ = (I + K)⁻¹ (r + (h·mean − decay + noise)/2), K = c (h²/4T) Ĉ

    c = 2/(1 + η) for a kick that contains its own damping η, η² = 1 − noise_scale²/T, and 1 for one that does not: then
    the kick as a whole preserves N(0, T I) exactly if the noise of the force is N(0, Ĉ). r̄ is bounded whatever Ĉ is:
    the friction takes at most all of r and turns it round, so that no step size makes it explode, where the explicit
    friction of `CovarianceFriction` needs a `bound`. Costs b datum gradients per step, each kept as a row, and one
    solve of min(b, d) equations.

    With `ABOBA` this is NOGIN (Matthews and Weare 2018, arXiv 1805.08863), in our reading of the authors' code
    (c-matthews/nogin), where r' solves a system with the matrix (1 + tanh(γh/2)) I + (h²/4) C. It is exact for a
    Gaussian target with Gaussian noise of constant covariance, for every stable h, and by the paper of second order
    otherwise. In `BAOAB` and `UBU` the damping comes after the kick, and only the momentum's law in a kick is exact.

    Args:
        batch_size: b, at least 2.
        factor: multiplies the friction; 1 is balance.
        replace: draw with replacement (default), or b distinct data.

    Example:
        >>> import jax.numpy as jnp, ewsg
        >>> target = ewsg.Target(lambda mu, x: -0.5 * (x - mu) ** 2, None, jnp.arange(10.0))
        >>> sampler = ewsg.compose(target, ewsg.MidpointFriction(4), ewsg.ABOBA(step_size=0.1, friction=3.0))
        >>> int(sampler.estimator.cost(10).datum_gradients)
        4
    """

    batch_size: int = eqx.field(static=True, converter=plain)
    factor: float = eqx.field(default=1.0, converter=plain)
    replace: bool = eqx.field(static=True, default=True, converter=plain)

    def __check_init__(self):
        check_positive("MidpointFriction", "factor", self.factor, zero=True)
        if self.batch_size < 2:
            raise InputError("MidpointFriction: batch_size must be at least 2: one datum has no sample covariance")

    def check(self, num_data: int, has_momentum: bool) -> None:
        super().check(num_data, has_momentum)
        if not has_momentum:
            raise InputError("MidpointFriction acts on a momentum, but this integrator has none: use ABOBA")

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        indices = draw_batch(_random.fold(key, 0), target, self.batch_size, self.replace)
        each = pytree.rows(target.forces(kick.position, indices))
        mean = jnp.mean(each, axis=0)
        _, unravel = ravel_pytree(kick.position)
        friction = kick.over_root(unravel(-self._drag(each, mean, kick, target.num_data)))
        force = pytree.add_scaled(unravel(mean), 1, friction)
        return force, state, EstimateInfo(indices, self.cost(target.num_data), {}, friction)

    def _drag(
        self, each: Float[Array, "b d"], mean: Float[Array, " d"], kick: Kick, num_data: int
    ) -> Float[Array, " d"]:
        """c (h/2T) Ĉ r̄ in the coordinates where the metric is I."""
        start, push = (kick.over_root(tree) for tree in (kick.momentum, kick.decay))
        dtype = pytree.wide_dtype(mean)
        root = 1.0 if kick.metric is None else jnp.sqrt(pytree.rows(kick.metric, leading=0)).astype(dtype)
        h, half, noise_scale = (
            pytree.as_dtype(number, dtype)
            for number in (kick.step_size, self._half_rate(kick, num_data), kick.noise_scale)
        )
        deviations = (each - mean[None]).astype(dtype) * jnp.reshape(root, (1, -1))
        ahead = h * root * mean.astype(dtype)
        if kick.noise is not None:
            ahead = ahead - _row(push, dtype) + noise_scale * _row(kick.noise, dtype)
        factor = jnp.sqrt(half * h) * deviations  # K = factorᵀ factor
        middle = _midpoint(factor, _row(start, dtype) + ahead / 2)
        return (2 * half * (deviations.T @ (deviations @ middle))).astype(mean.dtype)

    def _half_rate(self, kick: Kick, num_data: int) -> Scalar:
        """c (h/4T) f/(b − 1), and (n − 1)/n of it for distinct data, whose sample covariance is too large."""
        finite = 1.0 if self.replace else (num_data - 1) / num_data
        share = finite * self.noise_factor(num_data) / (self.batch_size - 1)
        own = 1.0
        if kick.noise is not None:
            own = 2 / (1 + jnp.sqrt(jnp.maximum(1 - kick.noise_scale**2 / kick.temperature, 0.0)))
        return self.factor * own * share * kick.step_size / (4 * kick.temperature)

    def cost(self, num_data: int) -> Cost:
        return Cost(self.batch_size)

    def noise_factor(self, num_data: int) -> float:
        return batch_noise(num_data, self.batch_size, self.replace)


def _row(tree: Position, dtype: Any) -> Float[Array, " d"]:
    return pytree.rows(tree, leading=0).astype(dtype)


def _midpoint(factor: Float[Array, "b d"], vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """(I + factorᵀ factor)⁻¹ vector, from the smaller of the two Gram matrices."""
    b, d = factor.shape
    if d <= b:
        return jnp.linalg.solve(jnp.eye(d, dtype=factor.dtype) + factor.T @ factor, vector)
    gram = jnp.eye(b, dtype=factor.dtype) + factor @ factor.T
    return vector - factor.T @ jnp.linalg.solve(gram, factor @ vector)
